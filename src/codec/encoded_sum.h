// The middle step of a compressed all-reduce: decodes the contributions of other ranks, adds this rank's plain numbers,
// and encodes the sum. One pass over the data gives the same bits as separate steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onehop/codec.h"

namespace onehop {

struct EncodedSum {
  Codec codec = Codec::q8;                    // any but raw
  std::span<const std::byte* const> sources;  // at least one; added in this order
  // Index of the source that holds plain float32 numbers, which are rounded as if they had been sent. All other sources
  // are encoded. -1: none is plain.
  int plain = -1;
  bool mean = false;  // the sum is divided by the number of sources
};

// Adds `elements` float32 numbers. Writes the encoded sum to `wire`, unless that is null, and its decoded value to
// `result`. `result` may be the plain source. No alignment is needed. The caller guarantees that all buffers are long
// enough (`encoded_bytes`).
void add_encoded(const EncodedSum& sum, std::int64_t elements, std::byte* wire, std::byte* result) noexcept;

}  // namespace onehop
