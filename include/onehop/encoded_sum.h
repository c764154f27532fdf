// The middle step of a compressed all-reduce: decodes the contributions of other ranks, adds them to this rank's plain
// numbers, and encodes the sum. It makes one pass over the data, with the same bits as encoding, decoding and adding in
// separate steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onehop/codec.h"

namespace onehop {

struct EncodedSum {
  Codec codec = Codec::q8;                    // any but raw
  std::span<const std::byte* const> sources;  // in the order in which they are added; one at least
  int plain =
      -1;  // the source that is float32 numbers, rounded as if they had travelled; all others are encoded. -1: none
  bool mean = false;  // the sum is divided by the number of sources
};

// Adds `elements` float32 numbers. Writes the encoded sum to `wire`, unless that is null, and its decoded value to
// `result`. `result` may be the plain source. No alignment is needed. The caller guarantees that all buffers are long
// enough (`encoded_bytes`).
void add_encoded(const EncodedSum& sum, std::int64_t elements, std::byte* wire, std::byte* result) noexcept;

}  // namespace onehop
