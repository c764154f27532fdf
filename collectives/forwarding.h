// How ranks that are all on hosts of their own gather blocks of unequal lengths, or the one block of a broadcast: its
// owner sends each part of a block to one rank only, which passes it on to the others. The parts are such that the rank
// which sends most sends as little as possible: that is the longest block, or (ranks - 1) / ranks of all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/arrays.h"

namespace onehop::collectives::detail {

// A part of a block: `by` passes it on. If that is the owner, it sends the part to all others itself.
struct Pass {
  int owner = 0;
  int by = 0;
  Range range;  // in the blocks of all ranks, one behind the other
};
// For three or more blocks of these lengths in bytes.
[[nodiscard]] std::vector<Pass> passes_of(std::span<const std::int64_t> lengths);

// A chunk on its way over a path. It may be sent when `after` chunks have arrived from rank `from` over its path of
// `phase`; -1: it is this rank's.
struct Hop {
  Range range;
  int from = -1;
  std::size_t after = 0;
  std::size_t phase = 0;
};

// What a rank sends to each other one, and receives from it, in this order: first from owners, then what is passed on.
struct Forwarding {
  struct Paths {
    std::array<std::vector<Hop>, 2> out;
    std::array<std::vector<Hop>, 2> in;
  };
  std::vector<Paths> with;  // by rank
};
[[nodiscard]] Forwarding forwarding_of(std::span<const std::int64_t> lengths, int rank, std::int64_t chunk);
// For one block, which is passed on from rank to rank: its chunks take both paths in turns, so that twice as many are
// under way.
[[nodiscard]] Forwarding chain_of(std::int64_t length, int root, int ranks, int rank, std::int64_t chunk);

}  // namespace onehop::collectives::detail
