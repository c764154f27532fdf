// Tests of ranks on two hosts.
#pragma once

#include <gtest/gtest.h>

#include "tests/mpi/world.h"

namespace onehop::testing {

// Ranks 0 and 1 share memory; rank 2 is on another host.
class MpiHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    const Group& all = world();
    if (all.size() < 3 || all.shares_memory(0) != all.shares_memory(1) || all.shares_memory(0) == all.shares_memory(2))
      GTEST_SKIP() << "for two hosts, the first with ranks 0 and 1";
    all.set_timeout(10);
  }
  void TearDown() override { world().set_timeout(60); }
};

}  // namespace onehop::testing
