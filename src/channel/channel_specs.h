// The requests for channels, and checks that both ends of each channel agree.
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

// Whether every request of a rank is possible by itself: with a valid peer and sizes, and with a tag of its own.
[[nodiscard]] bool is_possible(std::span<const Wanted> own, int ranks);

// The channel of a request, without a number. The slots are those of the sender.
[[nodiscard]] ChannelShape shape_of(const Wanted& end);

// Orders the channels of a rank, and gives them numbers from `first_id` on that no other channel between the same two
// ranks has. The other rank does so with the same result.
void number(std::span<ChannelShape> shapes, std::uint32_t first_id);

// Matches the requests of all ranks into channels, and returns those with an end on `rank`, without numbers. Throws the
// same error on every rank: BadInput for an impossible spec, Mismatch for ends that do not fit.
[[nodiscard]] std::vector<ChannelShape> match(std::span<const Wanted> all, int rank, int ranks);

}  // namespace onehop::detail
