// Ranks of which one is killed while kernels of the others wait for it.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <vector>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::testing {

// Every rank does the work that `prepare` returns, but rank 1, which is killed. The work must throw PeerLost soon.
inline void expect_loss_of_rank_1(int ranks, const std::function<std::function<void()>(const Group&)>& prepare) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const SharedCounter waiting;
  ForkOptions options;
  options.meanwhile = [&waiting, ranks](const std::vector<int>& processes) {
    for (int polls = 0; *waiting < ranks - 1 && polls < 4000; ++polls) nap(0.01);
    nap(0.1);
    kill(processes[1], SIGKILL);
  };
  const auto ended = fork_ranks(
      ranks,
      [&](const Group& group) {
        const std::function<void()> work = prepare(group);
        group.barrier();
        const double begin = base::steady_seconds();
        if (group.rank() == 1) nap(60);
        ++*waiting;
        expect_says<PeerLost>(work, "rank 1");
        EXPECT_LT(base::steady_seconds() - begin, 2.5);
        EXPECT_ANY_THROW(work());
      },
      options);
  for (std::size_t rank = 0; rank < ended.size(); ++rank) EXPECT_EQ(ended[rank].ok, rank != 1) << ended[rank].message;
  EXPECT_EQ(ended[1].signal, SIGKILL);
}

}  // namespace onehop::testing
