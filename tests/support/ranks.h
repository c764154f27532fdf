// Ranks for tests: forked processes, or threads of this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onehop/group.h"

namespace onehop::testing {

// How one forked rank ended.
struct Ended {
  bool ok = false;      // the function returned, and no expectation of GoogleTest failed in it
  int signal = 0;       // the signal that killed it, or 0
  int exit_code = 0;    // 3 for PeerLost, 2 for BadInput, 1 for any other exception or a failed expectation
  std::string message;  // what the exception said
};

struct ForkOptions {
  // Called in the parent while the ranks run, with their process numbers: to kill one, say.
  std::function<void(const std::vector<int>&)> meanwhile;
};

// Runs `rank_main` in `ranks` forked processes, each with a group made as `onehop launch` makes it. Ranks that hang are
// killed and count as failed.
std::vector<Ended> fork_ranks(int ranks, const std::function<void(const Group&)>& rank_main,
                              const ForkOptions& options = {});

// The same, expecting (EXPECT) that every rank ends well. The thread sanitizer sees no race between processes, so its
// build skips these ranks.
void on_ranks(int ranks, const std::function<void(const Group&)>& rank_main);

// Runs `rank_main` in `ranks` threads of this process, with a group made from an all-gather between threads. The first
// exception of a rank is thrown here once all have ended.
void on_threads(int ranks, const std::function<void(const Group&)>& rank_main);

}  // namespace onehop::testing
