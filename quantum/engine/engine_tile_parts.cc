// Divides the steps of a tile: into stretches that run on one block after the other, and into parts for threads.
#include <algorithm>
#include <bit>
#include <span>

#include "quantum/engine/engine_tile.h"

namespace onehop::quantum {
namespace {

std::size_t mask_of(std::span<const int> bits) {
  std::size_t mask = 0;
  for (const int bit : bits) mask |= std::size_t{1} << bit;
  return mask;
}

}  // namespace

template <typename T>
std::size_t TileProgram<T>::bits_of(const Step& step, bool with_signs) const {
  switch (step.kind) {
    case StepKind::butterflies: {
      const Butterflies& b = butterflies_[step.index];
      return mask_of({b.bits, static_cast<std::size_t>(b.count)});
    }
    case StepKind::two_pairs:
      return mask_of(two_pairs_[step.index].bits);
    case StepKind::pair: {
      const PairStep<T>& pair = pairs_[step.index].step;
      return pair.partner | pair.controls | (with_signs ? pair.sign : 0);
    }
    case StepKind::dense: {
      const DenseStep<T>& dense = dense_[step.index].step;
      return mask_of(dense.bits) | dense.controls;
    }
    case StepKind::lane_matrix: {
      const int bit = lane_matrices_[step.index].step.bit;
      return bit < 0 ? 0 : std::size_t{1} << bit;
    }
    case StepKind::vector_probes: {
      const BitProbes& probes = bit_probes_[step.index];
      return mask_of({probes.bits, static_cast<std::size_t>(probes.count)});
    }
    case StepKind::probed_butterflies:
      return bits_of({StepKind::butterflies, probed_butterflies_[step.index].butterflies}, with_signs);
    case StepKind::pair_probe: {
      const ProbeStep& probe = pair_probes_[step.index].step;
      return probe.partner | probe.controls | (with_signs ? probe.sign : 0);
    }
    case StepKind::permute:
      return permutations_[step.index].step.group_mask;
    default:
      return 0;
  }
}

template <typename T>
bool TileProgram<T>::is_local(const Step& step) const {
  if (step.kind == StepKind::permute || step.kind == StepKind::table) return false;
  return bits_of(step, true) >> (block_.bits - block_.lane_bits) == 0;
}

template <typename T>
void TileProgram<T>::find_stretches() {
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const bool local = is_local(steps_[s]);
    if (local && !stretches_.empty() && stretches_.back().local) {
      stretches_.back().end = s + 1;
      continue;
    }
    const std::size_t split = split_without(local ? 0 : bits_of(steps_[s], false));
    stretches_.push_back({s, s + 1, local, steps_[s].kind == StepKind::permute, split});
  }
}

template <typename T>
std::size_t TileProgram<T>::split_without(std::size_t unsplittable) const {
  std::size_t split = 0;
  int missing = std::countr_zero(parts_);
  for (int bit = shape_.bits - shape_.lane_bits - 1; bit >= 0 && missing > 0; --bit) {
    if ((unsplittable >> bit & 1) != 0) continue;
    split |= std::size_t{1} << bit;
    --missing;
  }
  return split;
}

template <typename T>
TileShape TileProgram<T>::shape_of_part(std::size_t split, std::size_t part) const {
  TileShape shape = shape_;
  shape.part_mask = split;
  shape.part = deposit_bits(part, split);
  return shape;
}

template class TileProgram<float>;
template class TileProgram<double>;

}  // namespace onehop::quantum
