// `onehop bench collectives`: reduce-scatter, all-gather, broadcast and all-to-all of float32.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/native/measure.h"
#include "bench/native/mpi/peers.h"
#include "measure/checked_candidate.h"
#include "onehop/collectives/collectives.h"

namespace onehop::bench {

[[nodiscard]] CollectiveKind collective_kind_from_string(std::string_view name);  // throws BadInput

// Lengths of a rank's source and result for arrays of `bytes` bytes, which the ranks divide into blocks of whole cache
// lines: the source of an all-gather and the result of a reduce-scatter are a block.
struct CollectiveLengths {
  std::size_t source = 0;
  std::size_t result = 0;
};
[[nodiscard]] CollectiveLengths collective_lengths(CollectiveKind kind, std::int64_t bytes, int ranks);

// In every repetition, one number in each cache line of the source is written, and one in each line of the result is
// compared. From 16 KiB on, the clock runs only during the operation. Collective over any group.
[[nodiscard]] std::vector<Samples> collective(const Group& group, CollectiveKind kind, std::int64_t bytes,
                                              const Effort& effort, bool peers,
                                              const std::vector<OtherOperation>& others);

}  // namespace onehop::bench
