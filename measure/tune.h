// `onehop tune`: times the same messages with different settings, in turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/rounds.h"
#include "onehop/tuning.h"

namespace onehop::measure {

// Settings to try for messages of one size.
struct StoreChoice {
  StoreKind stores = StoreKind::plain;
  std::int64_t chunk_bytes = 0;
  std::int64_t slot_bytes = 0;  // 0: that of the tuning in use
  int slots = 0;                // 0: that of the tuning in use
};
[[nodiscard]] std::string name_of(const StoreChoice& choice);

// Returns samples in µs in the order of `choices`: of one way of a ping-pong, or with `both_ways` of messages in both
// directions at once. The receiver reads the message in the slots, part by part. Collective over a group of two ranks.
[[nodiscard]] std::vector<Samples> try_stores(const Group& group, std::int64_t bytes, bool both_ways,
                                              const std::vector<StoreChoice>& choices, const Effort& effort);

// Settings to try for waiting.
struct WaitChoice {
  int spins = 0;
  int spins_oversubscribed = 0;
  int yields = 0;
};
[[nodiscard]] std::string name_of(const WaitChoice& choice);

// Times one step of a ring of messages of 64 bytes. Before it, even ranks compute for `compute_us`, odd ranks for half
// as long. Collective over any group in shared memory.
[[nodiscard]] std::vector<Samples> try_waits(const Group& group, double compute_us,
                                             const std::vector<WaitChoice>& choices, const Effort& effort);

}  // namespace onehop::measure
