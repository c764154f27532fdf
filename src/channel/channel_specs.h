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

// One end, as it travels: the spec with the sender's choices filled in.
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
};

// `spec` with every choice made that was left to onehop.
[[nodiscard]] Wanted wanted(const ChannelSpec& spec, int owner);

// Collective: everybody's requests. `transports` names what this rank opens its channels over, which must be the same
// everywhere. Throws Error where a rank has refused (below), Mismatch where ranks differ in their transports or one is
// in another collective step. `left`: what memory each rank had left, for Reservation's check_memory.
[[nodiscard]] std::vector<Wanted> exchange(GroupState& group, std::span<const Wanted> own,
                                           const std::string& transports, std::vector<MemoryLeft>& left);

// The part of a rank in the same step that cannot have any channels: `why` goes to the others.
void exchange_refusal(GroupState& group, const std::string& why);

// For a step that comes before this one and that a rank may refuse in the same way: throws Error where one has.
void throw_refusal(const Gathered& gathered, const std::string& step);

// All ranks' requests, matched into channels in an order that is the same everywhere; returns those that `rank` has an
// end of. Throws the same error on every rank: BadInput for an impossible spec, Mismatch for ends that do not fit.
[[nodiscard]] std::vector<ChannelShape> match(std::span<const Wanted> all, int rank, int ranks, std::uint32_t first_id);

}  // namespace onehop::detail
