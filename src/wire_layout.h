// How the elements of a message lie on the wire: fragments that fit in a slot, each of chunks after which a colour is raised.
// Both ends work it out for themselves from the same numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onehop::detail {

struct WirePiece {
  int transfer = 0;  // index in the message
  std::int64_t first = 0;
  std::int64_t last = 0;  // elements [first, last) of it
};

struct WireChunk {
  std::vector<WirePiece> pieces;
  std::int64_t begin = 0;
  std::int64_t end = 0;  // bytes in the fragment
};

struct WireFragment {
  std::vector<WireChunk> chunks;
  std::int64_t bytes = 0;
};

// The size of one transfer of a message.
struct WireSize {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 1;
};

// Cuts between elements only: a chunk ends at or before chunk_bytes unless a single element is longer; no fragment exceeds
// slot_bytes, which must hold the longest element.
[[nodiscard]] std::vector<WireFragment> lay_out(std::span<const WireSize> transfers, std::int64_t slot_bytes,
                                                std::int64_t chunk_bytes);

}  // namespace onehop::detail
