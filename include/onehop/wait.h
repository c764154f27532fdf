// Waits until one of several channels is ready.
#pragma once

#include <functional>
#include <string>

#include "onehop/group.h"

namespace onehop {

struct WaitReason {
  int peer = 0;        // the rank that this one waits for
  std::string what;    // for error messages: "was waiting for rank 1 in ..."
  bool polls = false;  // a channel needs progress(), which `ready` calls; this rank does not sleep then
};

// Waits until `ready()` returns true: spins, yields the processor, then sleeps until a peer sends or releases on a
// channel of this rank, at most 20 ms at a time. While this process has channels over MPI, their messages make progress
// and a sleep lasts at most 0.1 ms. `ready` polls the channels with Receiver::ready and Sender::ready. Throws PeerLost
// if the peer or another rank was lost, Timeout after the group's time limit, and whatever `ready` throws.
void wait_until(const Group& group, const WaitReason& reason, const std::function<bool()>& ready);

// Sets whether all waits of the calling thread sleep after one yield. For threads that communicate while others compute
// on all processors: the scheduler lets a thread that was asleep run as soon as it is woken, and a thread that yields
// only after the time slice of one that computes.
void set_sleep_early(bool early) noexcept;

}  // namespace onehop
