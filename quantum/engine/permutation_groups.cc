#include "quantum/engine/permutation_groups.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace onehop::quantum {
namespace {

// A subspace of vector numbers over GF(2), each basis vector with a name: a mask that says how it was combined.
class Subspace {
 public:
  // Returns what is left of `value` after subtracting basis vectors, and the XOR of their names.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> reduced(std::uint32_t value) const {
    std::uint32_t names = 0;
    for (const auto& [vector, name] : basis_) {
      if ((value & std::bit_floor(vector)) == 0) continue;
      value ^= vector;
      names ^= name;
    }
    return {value, names};
  }

  // Adds a vector unless it is in the subspace. Returns whether it was added.
  bool add(std::uint32_t value, std::uint32_t name) {
    const auto [rest, names] = reduced(value);
    if (rest == 0) return false;
    // Every leading bit occurs in one basis vector only, so that reduced() may go through them in any order.
    for (auto& [vector, other] : basis_) {
      if ((vector & std::bit_floor(rest)) == 0) continue;
      vector ^= rest;
      other ^= name ^ names;
    }
    basis_.emplace_back(rest, name ^ names);
    return true;
  }

  [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::uint32_t>>& basis() const { return basis_; }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> basis_;
};

class VectorGroups {
 public:
  VectorGroups(PermutationStep& step, int lane_bits)
      : step_(step), lane_bits_(lane_bits), lanes_(1U << lane_bits), lane_mask_(lanes_ - 1) {
    for (int b = 0; b < lane_bits_; ++b) {
      if (inputs_.add(step_.lane_sources[1U << b] >> lane_bits_, 1U << pivots_.size())) pivots_.push_back(b);
    }
  }

  [[nodiscard]] int rank() const { return static_cast<int>(pivots_.size()); }

  void fill() {
    step_.rank = rank();
    find_outputs();
    const std::uint32_t size = 1U << rank();
    for (std::uint32_t j = 0; j < size; ++j) step_.inputs.push_back(combined(j));
    for (int k = 0; k < rank(); ++k) {
      for (std::uint32_t i = 0; i < size; ++i) {
        for (std::uint32_t lane = 0; lane < lanes_; ++lane) step_.stages.push_back(shuffled(k, i, lane));
      }
    }
  }

 private:
  // The vector numbers whose sources differ by members of inputs_: the kernel of the sources modulo inputs_.
  void find_outputs() {
    Subspace images;  // of single bits, modulo inputs_
    Subspace kernel;
    for (std::uint32_t bit = 1; bit < step_.sources.size(); bit *= 2) {
      const auto [image, used] = images.reduced(inputs_.reduced(step_.sources[bit] >> lane_bits_).first);
      if (image == 0) {
        kernel.add(bit ^ used, 0);
      } else {
        images.add(image, bit ^ used);
      }
    }
    step_.outputs.assign(1, 0);
    for (const auto& [vector, name] : kernel.basis()) {
      step_.group_mask |= std::bit_floor(vector);
      const std::size_t known = step_.outputs.size();
      for (std::size_t i = 0; i < known; ++i) step_.outputs.push_back(step_.outputs[i] ^ vector);
    }
  }

  // The member of inputs_ with these coordinates: the sources of the pivots' lanes.
  [[nodiscard]] std::uint32_t combined(std::uint32_t coordinates) const {
    return step_.lane_sources[to_lane(coordinates)] >> lane_bits_;
  }
  [[nodiscard]] std::uint32_t coordinates(std::uint32_t source) const {
    return inputs_.reduced(source >> lane_bits_).second;
  }

  // From coordinates to lanes, and back: coordinate k is lane bit pivots_[k].
  [[nodiscard]] std::uint32_t to_lane(std::uint32_t coordinates) const {
    std::uint32_t lane = 0;
    for (std::size_t k = 0; k < pivots_.size(); ++k) lane |= (coordinates >> k & 1) << pivots_[k];
    return lane;
  }
  [[nodiscard]] std::uint32_t from_lane(std::uint32_t lane) const {
    std::uint32_t result = 0;
    for (std::size_t k = 0; k < pivots_.size(); ++k) result |= (lane >> pivots_[k] & 1) << k;
    return result;
  }

  // The lane of input j that the first stage moves to `lane`, before the exchanges: they move it to vector
  // from_lane(lane), whose lanes are in the order that last_lane() undoes.
  [[nodiscard]] std::uint32_t first_lane(std::uint32_t j, std::uint32_t lane) const {
    const std::uint32_t output = step_.sources[step_.outputs[from_lane(lane)]];
    const std::uint32_t rest = lane & ~to_lane(~0U);
    // The lane of the result: its source is input j.
    const std::uint32_t pivots = j ^ coordinates(step_.lane_sources[rest]) ^ coordinates(output);
    return (output ^ step_.lane_sources[rest | to_lane(pivots)]) & lane_mask_;
  }

  // The lane of result vector i that the exchanges leave where `lane` shall be.
  [[nodiscard]] std::uint32_t last_lane(std::uint32_t i, std::uint32_t lane) const {
    const std::uint32_t input = coordinates(step_.sources[step_.outputs[i]]) ^ coordinates(step_.lane_sources[lane]);
    return (lane & ~to_lane(~0U)) | to_lane(input);
  }

  [[nodiscard]] std::uint32_t shuffled(int stage, std::uint32_t i, std::uint32_t lane) const {
    const std::uint32_t number_bit = 1U << stage;
    const std::uint32_t lane_bit = 1U << pivots_[static_cast<std::size_t>(stage)];
    if (stage == rank() - 1) lane = last_lane(i, lane);
    // The exchange of the bit of the vector's number with the lane bit.
    const bool from_second = (lane & lane_bit) != 0;
    lane = (i & number_bit) != 0 ? lane | lane_bit : lane & ~lane_bit;
    if (stage == 0) lane = first_lane(from_second ? i | number_bit : i & ~number_bit, lane);
    return lane + (from_second ? lanes_ : 0);
  }

  PermutationStep& step_;
  int lane_bits_;
  std::uint32_t lanes_;
  std::uint32_t lane_mask_;
  std::vector<int> pivots_;  // lane bits whose source vectors are independent
  Subspace inputs_;          // spanned by them; a name is a mask of pivots
};

}  // namespace

void group_vectors(PermutationStep& step, int lane_bits) {
  VectorGroups groups(step, lane_bits);
  if (groups.rank() >= 2) groups.fill();
}

}  // namespace onehop::quantum
