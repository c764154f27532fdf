// How many slots a channel gets, how long they are, and after how many bytes its flag is stored, where the program
// leaves this to onehop. Channels, plans and collectives take their numbers from here. They differ in what a slot is
// for, so each has a function of its own; slot_policy.cc gives the reason for every number.
#pragma once

#include <cstdint>

namespace onehop::base {

// The memory of a channel. As a request, a 0 leaves the value to onehop; as an answer, to the channel (channel_slots).
struct SlotSizes {
  int slots = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;  // bytes between two flags

  friend bool operator==(const SlotSizes&, const SlotSizes&) = default;
};

// What the tuning of this machine and the format of the flag say about messages of some length.
struct ChannelLimits {
  std::int64_t small_bytes = 0;  // messages up to this size get `small_slots` slots
  int small_slots = 0;
  std::int64_t chunk_bytes = 0;
  std::int64_t max_chunks = 0;  // of one slot, if all have the full length
};

// A channel for messages of `bytes` bytes. Leaves no value open. A whole message is a slot, because the program writes
// it there in place.
[[nodiscard]] SlotSizes channel_slots(std::int64_t bytes, const SlotSizes& requested, const ChannelLimits& limits);

// The longest message that one rank of a plan sends to another.
struct PlanMessage {
  std::int64_t bytes = 0;
  std::int64_t unit_bytes = 1;             // length of the longest part that cannot be cut
  bool permutes_between_machines = false;  // belongs to a permutation of index bits, to a rank without shared memory
  bool side_by_side = false;               // has elements in the cache lines of messages to other ranks
};

// A channel of a plan. Messages are cut at `tuned_slot_bytes` (Tuning::slot_bytes), because the plan packs them into
// the slots, and the next fragment is packed while the last one is sent.
[[nodiscard]] SlotSizes plan_slots(const PlanMessage& message, const SlotSizes& requested,
                                   std::int64_t tuned_slot_bytes);

// A long path of a collective operation between two of `ranks` ranks. Leaves no value open. `requested.chunk_bytes` is
// ignored: a chunk of the operation is a slot, told by one flag.
[[nodiscard]] SlotSizes collective_slots(int ranks, const SlotSizes& requested);

}  // namespace onehop::base
