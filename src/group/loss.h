// Reports the loss of a rank to the other ranks of a group.
#pragma once

#include "onehop/group.h"

namespace onehop {

// Tells the ranks of `group` that wait, or will wait, for this one that rank `lost` was lost, so that they raise
// PeerLost with its number. A wait that loses a rank does so by itself, in its own group; an algorithm on parts of a
// group calls this for the whole, because ranks in other parts may wait for this one. Ranks of other machines are told
// if messages between them go over UCX. Ignores numbers that are not those of ranks.
void report_loss(const Group& group, int lost) noexcept;

}  // namespace onehop
