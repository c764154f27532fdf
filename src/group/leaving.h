// How a process leaves its groups. If it leaves in order, peers that need nothing more from it continue; otherwise they
// see it as lost.
#pragma once

#include "src/group/group_state.h"

namespace onehop::detail {

// Registers a new group of this process.
void entered(GroupState& group);

// Unregisters a group that closes. Tells its peers at once; after process_is_ending(), only if the exit status turns
// out to be 0.
void left(GroupState& group) noexcept;

// Notes on the pages of all groups of this process that it has lost the rank `lost` of the group `seen_in`. Ranks that
// wait for this one in other groups then name that rank once both are gone.
void note_loss(GroupState& seen_in, int lost) noexcept;

// Lets a group tell ranks elsewhere what they do not see on the page. Other threads may note a loss meanwhile.
void report_through(GroupState& group, std::shared_ptr<LossReports> reports);

// Tells the peers that this rank gives up, and wakes its own waits and theirs. Callable while other threads wait.
void aborted(GroupState& group) noexcept;

// Declares that the process only destroys its objects from now on, with a yet unknown exit status (Python's atexit).
void process_is_ending() noexcept;

}  // namespace onehop::detail
