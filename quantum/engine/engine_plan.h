// Groups items into passes over the amplitudes. A pass loads one tile after the other into the cache: the amplitudes
// that differ in a set of index bits, which includes the lowest ones. It applies the items that mix only bits of the
// tile. An item may also depend on the value of other bits, as long as it is diagonal in them.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/engine/gate_decomposition.h"

namespace onehop::quantum {

// From this size on, threads share a tile that holds the whole state: they meet after most steps, which is slow where
// a core is busy with something else, and smaller states have too little work between two meetings.
inline constexpr int least_bits_in_parts = 16;

// The sizes of tiles in index bits.
struct TileSizes {
  int tile = 0;          // bits of a tile, at least 9; 0: no tiles, every operation is applied directly
  int low = 0;           // the number of lowest index bits that are always in the tile, at least 4
  bool matrices = true;  // keep general two-bit gates as matrices instead of decomposing them
  // Rotations of operations that vary are butterflies up to this tangent, whatever their angle.
  double steepest_varying = default_steepest_varying;
};
[[nodiscard]] TileSizes tile_sizes(int bits, int bytes_per_amplitude);
// For passes over two states: the tiles of both fit in the cache.
[[nodiscard]] TileSizes tile_sizes_of_two(int bits, int bytes_per_amplitude);
// On a device, for passes over one or two states: their tiles and another one fit into the 64 KiB of shared memory that
// a group has on every card, and rows are 128 bytes or more.
[[nodiscard]] TileSizes device_tile_sizes(int bits, bool is_double, int states = 1);

struct Pass {
  std::uint64_t tile = 0;   // a mask of the bits of the tile; 0: the pass applies its only item directly
  std::vector<Item> items;  // in a valid order
};

[[nodiscard]] std::vector<Pass> make_passes(const Items& items, int bits, const TileSizes& sizes);

// A number of passes that make_passes() cannot go below for these items, whatever tiles it chooses. `sizes` has tiles.
[[nodiscard]] int passes_at_least(const Items& items, int bits, const TileSizes& sizes);

}  // namespace onehop::quantum
