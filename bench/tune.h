// `onehop tune`: the same messages with other settings, in turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"
#include "onehop/tuning.h"

namespace onehop::bench {

// Settings to try for messages of one size.
struct StoreChoice {
  StoreKind stores = StoreKind::plain;
  std::int64_t chunk_bytes = 0;
  std::int64_t slot_bytes = 0;  // 0: as the tuning in force says
  int slots = 0;                // 0: the same
};
[[nodiscard]] std::string name_of(const StoreChoice& choice);

// Collective over a group of two ranks. Samples of one way (`both_ways` false: to and fro; true: both at once), in the order of
// `choices`, µs. The message is read where it lies, part by part.
[[nodiscard]] std::vector<Samples> try_stores(const Group& group, std::int64_t bytes, bool both_ways,
                                              const std::vector<StoreChoice>& choices, const Effort& effort);

// Settings of waiting to try.
struct WaitChoice {
  int spins = 0;
  int spins_oversubscribed = 0;
  int yields = 0;
};
[[nodiscard]] std::string name_of(const WaitChoice& choice);

// Collective over any group in shared memory: a step of a ring of 64 bytes, with `compute_us` of computing on each rank before,
// which differs from rank to rank by half.
[[nodiscard]] std::vector<Samples> try_waits(const Group& group, double compute_us,
                                             const std::vector<WaitChoice>& choices, const Effort& effort);

}  // namespace onehop::bench
