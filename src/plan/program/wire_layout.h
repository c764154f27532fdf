// Layout of a message on the wire: fragments that fit in a slot, cut into chunks after which the flag is stored. Both
// ends compute it from the same numbers.
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

// The size of one transfer of a message, which may be cut after every `unit_elements` elements.
struct WireSize {
  std::int64_t elements = 0;
  std::int64_t unit_bytes = 1;
  std::int64_t unit_elements = 1;
  std::int64_t bytes = 0;  // of all elements; the last unit may be less than a whole one
  std::int64_t turn = 0;   // units that it lays out before the next transfer, of the same size, takes its turn; 0: all
  bool begins_fragment = false;  // nothing that comes before shares a fragment with it
};

// Cuts between units only: a chunk ends at or before chunk_bytes unless a single unit is longer; no fragment exceeds
// slot_bytes, which must hold the longest unit. Consecutive transfers with the same `turn` and size take turns.
[[nodiscard]] std::vector<WireFragment> lay_out(std::span<const WireSize> transfers, std::int64_t slot_bytes,
                                                std::int64_t chunk_bytes);

}  // namespace onehop::detail
