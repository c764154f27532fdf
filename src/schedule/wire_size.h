// Size of a transfer on the wire, and the places where it may be cut: only between blocks of the codec.
#pragma once

#include <cstdint>

#include "onehop/schedule.h"

namespace onehop::detail {

// What a transfer is encoded with: inside a rank nothing crosses a wire, and nothing is rounded.
[[nodiscard]] inline Codec wire_codec(const Transfer& transfer) {
  return transfer.from.rank == transfer.to.rank ? Codec::raw : transfer.codec;
}

// Numbers in one element of the array: 2 for complex numbers, for example. Single bytes, where it has no type.
[[nodiscard]] std::int64_t numbers_per_element(const ArraySpec& array);

// The fewest elements that are whole blocks of the codec.
[[nodiscard]] std::int64_t elements_per_cut(const ArraySpec& array, Codec codec);

// Throws BadInput where the codec does not take the array's type, and beyond 2^63.
[[nodiscard]] std::int64_t bytes_on_wire(const ArraySpec& array, Codec codec, std::int64_t elements);

}  // namespace onehop::detail
