// Applies sums of Pauli strings to a state.
#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/engine.h"
#include "quantum/engine/complex_product.h"
#include "quantum/kernels/kernels.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;

// A block of both states fits L2, a piece of both fits L1. All strings that lead from one block into another pass over
// its pieces, one after the other.
constexpr std::uint64_t block_size = std::uint64_t{1} << 13;
constexpr std::uint64_t piece_size = std::uint64_t{1} << 10;
// From this many strings with the same x_mask on, a Walsh-Hadamard transform makes their sum.
constexpr std::size_t many = 32;

// The strings with one x_mask: out[j] += w(j) in[j ^ x], where w(j) is the sum of factor * (-1)^parity(j & z).
struct SharedX {
  std::uint64_t x_mask = 0;
  std::vector<std::pair<std::uint64_t, Number>> strings;  // z_mask and factor
};

std::vector<SharedX> shared_x(std::span<const LocalPauli> paulis, std::span<const Number> coefficients) {
  // P|i> = i^ys (-1)^parity(i & z) |i ^ x>, and with j = i ^ x the sign is (-1)^parity(j & z) (-1)^ys.
  static constexpr Number powers[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  std::map<std::uint64_t, SharedX> groups;
  for (std::size_t k = 0; k < paulis.size(); ++k) {
    SharedX& group = groups[paulis[k].x_mask];
    group.x_mask = paulis[k].x_mask;
    const Number power = powers[std::popcount(paulis[k].x_mask & paulis[k].z_mask) % 4];
    group.strings.emplace_back(paulis[k].z_mask, times(coefficients[k], power));
  }
  std::vector<SharedX> result;
  for (auto& [x, group] : groups) result.push_back(std::move(group));
  return result;
}

// Adds strings to a block.
template <typename T>
class Block {
 public:
  Block(std::span<const std::complex<T>> in, std::span<std::complex<T>> out, std::uint64_t size)
      : in_(in), out_(out), size_(size), piece_(std::min(size, piece_size)), kernels_(kernels<T>()) {}

  // `groups`: with the same bits of x_mask outside the block.
  void add(std::span<const SharedX> groups, std::uint64_t begin) {
    for (std::uint64_t at = begin; at < begin + size_; at += piece_) {
      strings_.clear();
      for (const SharedX& group : groups) {
        if (group.strings.size() < many) add_to_piece(group, at);
      }
      if (!strings_.empty()) kernels_.signed_add(strings_.data(), strings_.size(), out_.data() + at, piece_);
    }
    for (const SharedX& group : groups) {
      if (group.strings.size() >= many) add_sum(group, begin);
    }
  }

  // The groups from `first` on that lead to the same block.
  [[nodiscard]] std::span<const SharedX> alike(std::span<const SharedX> groups) const {
    const std::uint64_t far = groups.front().x_mask & ~(size_ - 1);
    const auto other =
        std::ranges::find_if(groups, [&](const SharedX& group) { return (group.x_mask & ~(size_ - 1)) != far; });
    return groups.first(static_cast<std::size_t>(other - groups.begin()));
  }

 private:
  // The strings wait in `strings_`, unless the piece is too small for that.
  void add_to_piece(const SharedX& group, std::uint64_t begin) {
    const std::uint64_t low = piece_ - 1;
    const std::complex<T>* const from = in_.data() + (begin ^ (group.x_mask & ~low));
    for (const auto& [z, factor] : group.strings) {
      add_one(from, out_.data() + begin, group.x_mask & low, z & low,
              std::popcount(begin & z) % 2 != 0 ? -factor : factor);
    }
  }

  void add_sum(const SharedX& group, std::uint64_t begin) {
    const std::uint64_t low = size_ - 1;
    const std::complex<T>* const from = in_.data() + (begin ^ (group.x_mask & ~low));
    std::complex<T>* const to = out_.data() + begin;
    const std::uint64_t x = group.x_mask & low;
    weights_.assign(size_, 0);
    for (const auto& [z, factor] : group.strings) {
      weights_[z & low] += std::popcount(begin & z) % 2 != 0 ? -factor : factor;
    }
    walsh_transform(weights_);
    for (std::uint64_t j = 0; j < size_; ++j) to[j] += times(std::complex<T>(weights_[j]), from[j ^ x]);
  }

  void add_one(const std::complex<T>* from, std::complex<T>* to, std::uint64_t x, std::uint64_t z, Number factor) {
    if (piece_ < 8) {
      for (std::uint64_t j = 0; j < piece_; ++j) {
        const Number signed_factor = std::popcount(j & z) % 2 != 0 ? -factor : factor;
        to[j] += times(std::complex<T>(signed_factor), from[j ^ x]);
      }
      return;
    }
    if (factor.real() != 0) strings_.push_back({from, x, z, static_cast<T>(factor.real()), false});
    if (factor.imag() != 0) strings_.push_back({from, x, z, static_cast<T>(factor.imag()), true});
  }

  std::span<const std::complex<T>> in_;
  std::span<std::complex<T>> out_;
  std::uint64_t size_;
  std::uint64_t piece_;
  const Kernels<T>& kernels_;
  std::vector<Number> weights_;
  std::vector<SignedString<T>> strings_;
};

}  // namespace

template <typename T>
void add_paulis(std::span<const std::complex<T>> in, std::span<const LocalPauli> paulis,
                std::span<const Number> coefficients, std::span<std::complex<T>> out, const EngineOptions& options) {
  if (!std::has_single_bit(in.size()) || in.size() != out.size() || paulis.size() != coefficients.size()) {
    throw BadInput(
        "add_paulis: expected two states of equal size, a power of two, and a coefficient for each string, " +
        std::string("found ") + std::to_string(in.size()) + " and " + std::to_string(out.size()) + " amplitudes, " +
        std::to_string(paulis.size()) + " strings and " + std::to_string(coefficients.size()) + " coefficients");
  }
  const auto groups = shared_x(paulis, coefficients);
  base::parallel_for(base::thread_count(options.threads), in.size(), block_size,
                     [&](std::uint64_t begin, std::uint64_t end) {
                       Block<T> block(in, out, end - begin);
                       for (std::span<const SharedX> rest = groups; !rest.empty();) {
                         const auto first = block.alike(rest);
                         block.add(first, begin);
                         rest = rest.subspan(first.size());
                       }
                     });
}

template void add_paulis<float>(std::span<const std::complex<float>>, std::span<const LocalPauli>,
                                std::span<const Number>, std::span<std::complex<float>>, const EngineOptions&);
template void add_paulis<double>(std::span<const std::complex<double>>, std::span<const LocalPauli>,
                                 std::span<const Number>, std::span<std::complex<double>>, const EngineOptions&);

}  // namespace onehop::quantum
