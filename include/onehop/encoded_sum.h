// The middle of a compressed sum: what came encoded from other ranks and the own plain numbers are added up, and the sum is
// encoded again. In one pass that leaves the nearest cache only for sources and results, with the bits that encoding, decoding and
// adding one after the other would give.
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

// `elements` float32 numbers. `result` becomes what the encoded sum decodes to, and the encoded sum goes to `wire` unless that is
// null. `result` may be the plain source. Nothing need be aligned. The caller has made sure that all are long enough
// (`encoded_bytes`).
void add_encoded(const EncodedSum& sum, std::int64_t elements, std::byte* wire, std::byte* result) noexcept;

}  // namespace onehop
