// Size of a transfer on the wire, and where it may be cut: only between blocks of the codec.
#pragma once

#include <cstdint>

#include "onehop/schedule.h"

namespace onehop::detail {

// The codec that a transfer uses: raw for a local copy, which is never rounded.
[[nodiscard]] inline Codec wire_codec(const Transfer& transfer) {
  return transfer.from.rank == transfer.to.rank ? Codec::raw : transfer.codec;
}

// Numbers in one element of the array, for example 2 for complex numbers; its bytes if the array has no type.
[[nodiscard]] std::int64_t numbers_per_element(const ArraySpec& array);

// The smallest number of elements that fills whole blocks of the codec.
[[nodiscard]] std::int64_t elements_per_cut(const ArraySpec& array, Codec codec);

// Throws BadInput if the codec does not take the array's type, and for results of 2^63 and more.
[[nodiscard]] std::int64_t bytes_on_wire(const ArraySpec& array, Codec codec, std::int64_t elements);

}  // namespace onehop::detail
