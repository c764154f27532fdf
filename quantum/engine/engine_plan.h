// Which items share a pass. A pass holds one tile after the other in cache: all combinations of a set of bits, the
// lowest ones among them. Items that mix only bits of the tile are applied there; what is diagonal in a bit does not
// need it in the tile.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/engine/gate_decomposition.h"

namespace onehop::quantum {

// The sizes of tiles, in bits of an index, and what is best put into them.
struct TileSizes {
  int tile = 0;          // all bits of a tile, at least 9; 0: no tiles, everything is applied directly
  int low = 0;           // its lowest bits, which are always in it; at least 4
  bool matrices = true;  // two-bit gates that are nothing special stay matrices, else they are taken apart
};
[[nodiscard]] TileSizes tile_sizes(int bits, int bytes_per_amplitude);

struct Pass {
  std::uint64_t tile = 0;   // the bits of the tile; 0: the one item is applied directly
  std::vector<Item> items;  // in an order in which they may be applied
};

[[nodiscard]] std::vector<Pass> make_passes(const Items& items, int bits, const TileSizes& sizes);

}  // namespace onehop::quantum
