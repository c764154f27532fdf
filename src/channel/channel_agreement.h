// The collective step with which ranks agree on the channels that they open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/channel/channel_specs.h"
#include "src/group/group_state.h"

namespace onehop::detail {

// Collective: returns the channels with an end on this rank, numbered, in the same order on the other rank of each.
// `transports` names this rank's transports, which must be the same on all ranks. Checks that the slots fit into memory
// if `backed`. Throws the same error on every rank: Error if a rank has refused (below) or memory is short, Mismatch if
// ranks differ in their transports, if ends do not fit, or if one is in another collective step, and BadInput for an
// impossible request.
//
// Ranks gather digests of their requests, whose size does not depend on how many requests there are. The sum of the
// digests of all senders equals that of all receivers if every request has its counterpart. If it does not, ranks
// gather the requests themselves: they find out which do not fit, or that ends fit though they ask for other slots.
[[nodiscard]] std::vector<ChannelShape> agree_on_channels(GroupState& group, std::span<const Wanted> own,
                                                          const std::string& transports, bool backed);

// Takes part in the same step on a rank that cannot open channels, and sends `why` to the others.
void exchange_refusal(GroupState& group, const std::string& why);

// For an earlier step that a rank may refuse in the same way: throws Error if one has.
void throw_refusal(GroupState& group, const Gathered& gathered, const std::string& step);

}  // namespace onehop::detail
