// Random permutations of index bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>

#include "onehop/patterns.h"

namespace onehop::testing {

struct RandomPermutation {
  PermuteBitsSpec spec;
  [[nodiscard]] int ranks() const { return 1 << (spec.bits - spec.local_bits); }
};

inline RandomPermutation random_permutation(std::mt19937& random, int max_bits, int max_rank_bits) {
  RandomPermutation made;
  PermuteBitsSpec& spec = made.spec;
  spec.bits = 1 + static_cast<int>(random() % static_cast<unsigned>(max_bits));
  spec.local_bits = std::max(0, spec.bits - static_cast<int>(random() % static_cast<unsigned>(max_rank_bits + 1)));
  spec.permutation.resize(static_cast<std::size_t>(spec.bits));
  std::iota(spec.permutation.begin(), spec.permutation.end(), 0);
  std::shuffle(spec.permutation.begin(), spec.permutation.end(), random);
  constexpr std::int64_t sizes[] = {1, 4, 8, 16, 24, 40};
  spec.element_bytes = sizes[random() % 6];
  return made;
}

}  // namespace onehop::testing
