// The trace of a run (src/base/trace.h), as groups see it.
#pragma once

#include <cstdint>

#include "onehop/group.h"

namespace onehop::detail {

// Begins the trace when the world is made. `all`: every rank asks for a trace, so all compare their clocks with that of
// rank 0, which is collective where ranks have several hosts.
void begin_trace(GroupState& world, bool all);

// Adds to the bytes that this rank has sent to a rank of the group.
void trace_sent(const Group& group, int rank, std::int64_t bytes);

}  // namespace onehop::detail
