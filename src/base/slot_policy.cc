#include "src/base/slot_policy.h"

#include <algorithm>
#include <bit>

namespace onehop::base {
namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

// Double buffering: the sender fills one slot while the receiver reads the other. Short messages get more slots
// (ChannelLimits::small_slots), so that the sender rarely has to read `released`; for long ones that time is small
// against the copy, and more slots would only take memory.
constexpr int usual_slots = 2;
// A slot is never empty: bare signals have messages of 0 bytes, and lengths are divided by that of a slot.
constexpr std::int64_t shortest_slot = 8;
// A default must not take memory without limit: a channel of two such slots takes 128 MiB. Longer messages pass in
// fragments, unless the program asks for a larger slot.
constexpr std::int64_t longest_slot = 64 * mib;

// A permutation in place between machines packs everything for another rank, and gets more memory than in shared
// memory: two slots of 4 MiB, in which messages of up to 8 MiB go in at most two parts. A longer message is sent in
// many small parts, so that packing, sending and unpacking overlap and packed data is still in a cache when it is sent
// (two slots of 4 MiB took 5 to 8 % longer). Both take 8 MiB for each other rank.
constexpr std::int64_t slot_bytes_between_machines = 4 * mib;
constexpr int slots_of_long_messages = 8;
constexpr std::int64_t slot_bytes_of_long_messages = 1 * mib;
// Bytes that a message packs before the turn of the next one that takes elements from the same lines: few enough that
// the lines are still in the second-level cache then, and enough that pages do not change all the time (16 KiB took up
// to a tenth longer).
constexpr std::int64_t chunk_bytes_side_by_side = 64 * kib;

// A rank sends its contributions to as many chunks ahead as a path has slots, so ranks may drift apart by four chunks
// before one waits for another.
constexpr int collective_path_slots = 4;
// The longest chunk of an operation that the program leaves to onehop; a longer slot would stay empty in part.
constexpr std::int64_t longest_collective_slot = 256 * kib;
// The shortest chunk: 64 elements of 8 bytes.
constexpr std::int64_t shortest_collective_slot = 512;
// Limit for all long paths to a rank together, unless their slots have the least size (then they take 4 KiB per rank).
// Up to four ranks have the longest slots within it.
constexpr std::int64_t collective_staging_bytes = 6 * mib;
// The reduce phase and the allgather phase have a path each.
constexpr std::int64_t collective_paths = 2;

// Returns the length of a slot that takes messages of `bytes` bytes in pieces of at most `limit`, and any unit whole.
std::int64_t slot_for(std::int64_t bytes, std::int64_t unit_bytes, std::int64_t limit) {
  return std::max({std::min(bytes, limit), unit_bytes, shortest_slot});
}

// Returns the longest power of two that keeps all long paths of a rank within collective_staging_bytes.
std::int64_t collective_slot_bytes(int ranks, int slots) {
  const std::int64_t peers = std::max(ranks - 1, 1);
  const std::int64_t fits = std::max<std::int64_t>(collective_staging_bytes / (collective_paths * peers * slots), 1);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fits)));
  return std::clamp(power, shortest_collective_slot, longest_collective_slot);
}

}  // namespace

SlotSizes channel_slots(std::int64_t bytes, const SlotSizes& requested, const ChannelLimits& limits) {
  SlotSizes sizes = requested;
  if (sizes.slots == 0) sizes.slots = bytes <= limits.small_bytes ? limits.small_slots : usual_slots;
  if (sizes.slot_bytes == 0) sizes.slot_bytes = slot_for(bytes, 1, longest_slot);
  if (sizes.chunk_bytes == 0) sizes.chunk_bytes = limits.chunk_bytes;
  // The flag of a slot must be able to count its chunks, also if the program asks for short ones.
  sizes.chunk_bytes = std::max(sizes.chunk_bytes, sizes.slot_bytes / limits.max_chunks + 1);
  return sizes;
}

SlotSizes plan_slots(const PlanMessage& message, const SlotSizes& requested, std::int64_t tuned_slot_bytes) {
  SlotSizes sizes = requested;
  std::int64_t limit = requested.slot_bytes != 0 ? requested.slot_bytes : tuned_slot_bytes;
  if (message.permutes_between_machines && requested.slot_bytes == 0) {
    limit = slot_bytes_between_machines;
    if (requested.slots == 0 && message.bytes > usual_slots * slot_bytes_between_machines) {
      sizes.slots = slots_of_long_messages;
      limit = slot_bytes_of_long_messages;
    }
  }
  sizes.slot_bytes = slot_for(message.bytes, message.unit_bytes, limit);
  if (sizes.chunk_bytes == 0 && message.side_by_side) sizes.chunk_bytes = chunk_bytes_side_by_side;
  return sizes;
}

SlotSizes collective_slots(int ranks, const SlotSizes& requested) {
  SlotSizes sizes = requested;
  if (sizes.slots == 0) sizes.slots = collective_path_slots;
  if (sizes.slot_bytes == 0) sizes.slot_bytes = collective_slot_bytes(ranks, sizes.slots);
  sizes.chunk_bytes = sizes.slot_bytes;
  return sizes;
}

}  // namespace onehop::base
