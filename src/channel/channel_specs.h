// Exchanges the requests of all ranks before channels are opened, and checks that both ends of each channel agree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "src/channel/transport/transport.h"
#include "src/group/group_state.h"

namespace onehop::detail {

// One end of a channel, as ranks exchange it: the spec with all defaults filled in.
struct Wanted {
  std::int32_t owner = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;
  std::int32_t sends = 0;
  std::int64_t bytes = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;
  std::uint64_t signature = 0;
  std::int32_t slots = 0;
  std::int32_t stores = 0;
  std::int32_t adaptive = 0;  // whether the sender may change the kind of stores
  std::int32_t unused = 0;    // ranks exchange all bytes
};

// Fills in the values that `spec` leaves to onehop.
[[nodiscard]] Wanted wanted(const ChannelSpec& spec, int owner);

// Collective: returns the requests of all ranks. `transports` names this rank's transports, which must be the same on
// all ranks. Throws Error if a rank has refused (below), Mismatch if ranks differ in their transports or one is in
// another collective step. Appends the memory that each rank had left to `left`, for check_memory.
[[nodiscard]] std::vector<Wanted> exchange(GroupState& group, std::span<const Wanted> own,
                                           const std::string& transports, std::vector<MemoryLeft>& left);

// Takes part in the same step on a rank that cannot open channels, and sends `why` to the others.
void exchange_refusal(GroupState& group, const std::string& why);

// For an earlier step that a rank may refuse in the same way: throws Error if one has.
void throw_refusal(const Gathered& gathered, const std::string& step);

// Matches the requests of all ranks into channels, in the same order on every rank, and returns those with an end on
// `rank`. Throws the same error on every rank: BadInput for an impossible spec, Mismatch for ends that do not fit.
[[nodiscard]] std::vector<ChannelShape> match(std::span<const Wanted> all, int rank, int ranks, std::uint32_t first_id);

}  // namespace onehop::detail
