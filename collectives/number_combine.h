// Combination of two arrays of numbers, for every type of number.
#pragma once

#include <cstddef>
#include <optional>

#include "onehop/collectives/array_collectives.h"

namespace onehop::collectives::detail {

struct NumberCombine {
  // result[i] = first[i] op then[i]; `result` may be one of the others. Of a mean, the sum. Null: no such operation.
  void (*combine)(const std::byte* first, const std::byte* then, std::byte* result, std::size_t elements) = nullptr;
  // In place: what the operation gives for one rank, and a mean from the sum of so many ranks; null: nothing changes.
  void (*begin)(std::byte* numbers, std::size_t elements) = nullptr;
  void (*divide)(std::byte* numbers, std::size_t elements, int ranks) = nullptr;
  // Writes the neutral element; null: there is none.
  void (*neutral)(std::byte* numbers, std::size_t elements) = nullptr;
};

[[nodiscard]] NumberCombine number_combine(NumberType type, ArrayOp op);

}  // namespace onehop::collectives::detail
