// Lossless compression of float32 and bfloat16 numbers, for gradients on slow links. Neighbouring gradients have alike
// exponents, which take about 3 bits each here instead of 8; signs and mantissas are sent as they are. Every bit
// pattern comes back, NaNs included. docs/reference/lossless.md specifies the format.
//
// The length depends on the numbers, so this is no `Codec` of a transfer: plans need lengths that are known beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onehop/element_type.h"

namespace onehop {

// Bytes that suffice for `elements` numbers: whole chunks of 256 numbers, with 3 bytes more for each. Throws BadInput
// unless the type is float32 or bfloat16, and for results of 2^63 and more.
[[nodiscard]] std::int64_t lossless_most_bytes(ElementType type, std::int64_t elements);

// Encodes whole numbers into `wire`, which must have lossless_most_bytes(...), and returns the number of bytes written.
// No alignment is needed. Throws BadInput for a wrong length or type.
[[nodiscard]] std::int64_t lossless_encode(ElementType type, std::span<const std::byte> source,
                                           std::span<std::byte> wire);

// Decodes as many numbers as `target` holds, from exactly the bytes that they take. Throws BadInput if the bytes
// cannot be decoded or are too many or too few; `target` is then undefined.
void lossless_decode(ElementType type, std::span<const std::byte> wire, std::span<std::byte> target);

}  // namespace onehop
