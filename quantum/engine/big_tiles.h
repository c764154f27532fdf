// Groups operations for states of which memory holds only a part at a time: the amplitudes over all values of some
// bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

// The most operations of a stage that an engine takes at once: those of a Fourier transform of any state, which is
// enough for few passes; fewer make progress visible.
inline constexpr std::size_t most_together = 2048;

// Operations that mix only bits of `tile`, in a valid order.
struct BigPass {
  std::uint64_t tile = 0;
  std::vector<LocalOperation> operations;
};

// Tiles have `tile_bits` of `bits` bits, the lowest `low_bits` among them. Throws BadInput for an operation that mixes
// more bits than a tile can have.
[[nodiscard]] std::vector<BigPass> make_big_passes(std::span<const LocalOperation> operations, int bits, int tile_bits,
                                                   int low_bits);

// The first of them; the list keeps the operations of the others.
[[nodiscard]] BigPass take_big_pass(std::vector<LocalOperation>& operations, int bits, int tile_bits, int low_bits);

// The operations on the bits of a tile, counted within it, for one value of the other bits, which is at its place in
// `outside`. Those that do nothing there are left out.
[[nodiscard]] std::vector<LocalOperation> within(const BigPass& pass, std::uint64_t outside);

}  // namespace onehop::quantum
