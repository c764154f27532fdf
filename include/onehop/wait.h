// Waiting for whatever moves first: for programs that go on with any of several channels.
#pragma once

#include <functional>
#include <string>

#include "onehop/group.h"

namespace onehop {

struct WaitReason {
  int peer = 0;        // the rank whose end ends the wait
  std::string what;    // for messages: "was waiting for rank 1 in ..."
  bool polls = false;  // a channel needs progress(): `ready` calls it, and this rank does not sleep
};

// Waits until `ready()`: spins, gives way to others, then sleeps until a peer sends or releases on a channel of this rank (or for 20
// ms). Where this process has channels over MPI, their messages go on meanwhile, and it sleeps for at most 0.1 ms at a time.
// `ready` looks at the channels: Receiver::ready, Sender::ready. Throws PeerLost when the peer has ended, or another rank
// whose end was seen, Timeout after the group's limit, and what `ready` throws.
void wait_until(const Group& group, const WaitReason& reason, const std::function<bool()>& ready);

}  // namespace onehop
