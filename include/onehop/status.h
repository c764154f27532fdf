// What the ranks of a process wait for, seen from another process: `onehop status`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace onehop {

// A wait that has lasted for some milliseconds at least.
struct WaitStatus {
  int peer = -1;        // -1: several ranks, in a collective step
  std::string peer_is;  // "rank 1 (process 7 on node2)"
  std::string what;     // "channel 0 -> 1 (tag 3)"
  double seconds = 0;   // that this rank has waited for this peer
};

// A group of a process.
struct RankStatus {
  int rank = 0;
  int size = 1;
  std::uint64_t group = 0;        // the same for all ranks of a group; 0 while its ranks have not all joined
  std::uint64_t steps = 0;        // collective steps that the rank has begun
  bool left = false;              // it has closed or aborted the group
  int reported_lost = -1;         // the rank because of which it gave up
  std::vector<WaitStatus> waits;  // of its threads; empty if none waits for long
  std::vector<std::string> down;  // network interfaces through which nothing arrives from another host
};

// The groups of a process of this machine; none if it has no group. Throws Error if there is no such process or if it
// may not be examined, as those of other users.
[[nodiscard]] std::vector<RankStatus> status_of_process(pid_t process);

}  // namespace onehop
