// Faults while channels and plans are prepared: ranks that request different things, and errors on one rank only.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::Clock;
using testing::end_of_channel;
using testing::Ended;
using testing::fork_ranks;
using testing::on_ranks;
using testing::RingPlan;
using testing::seconds_since;
using Direction = ChannelSpec::Direction;

// -- ranks that do not fit together --------------------------------------------------------------------------------

TEST(Faults, DifferentPlansAreReportedOnEveryRank) {
  const auto ended = fork_ranks(3, [](const Group& group) {
    RingPlan ring(group, 1000, group.rank() == 1 ? 50 : 100);
    ring.plan->run();
  });
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.exit_code, 1);
    EXPECT_NE(rank.message.find("rank 1"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("800"), std::string::npos) << rank.message;  // 100 sites of 8 bytes
    EXPECT_NE(rank.message.find("400"), std::string::npos) << rank.message;
    EXPECT_EQ(rank.message, ended[0].message);
  }
}

TEST(Faults, ImpossibleSlotsAreBadInput) {
  on_ranks(2, [](const Group& group) {
    for (const auto& [slots, slot_bytes] : {std::pair<int, std::int64_t>{2, std::int64_t{1} << 62}, {1 << 30, 64}}) {
      ChannelSpec send = end_of_channel(Direction::send, 1 - group.rank(), 64);
      send.slots = slots;
      send.slot_bytes = slot_bytes;
      const std::vector<ChannelSpec> specs = {send, end_of_channel(Direction::receive, 1 - group.rank(), 64)};
      EXPECT_THROW(static_cast<void>(open_channels(group, specs)), BadInput);
    }
  });
}

// An exchange in place whose two messages list their slices in different orders. Before it, an odd number of uses has
// passed through a ring of four slots, which announces only every second release.
Schedule crossed_exchange(std::int64_t half) {
  const auto place = [](int rank, std::int64_t offset, std::int64_t count) {
    return Place{rank, 0, Slice::range(offset, count)};
  };
  const auto both_ways = [&](std::int64_t offset, std::int64_t count) {
    return std::pair(Transfer{place(0, offset, count), place(1, offset, count), Combine::replace, Codec::raw},
                     Transfer{place(1, offset, count), place(0, offset, count), Combine::replace, Codec::raw});
  };
  Schedule schedule{"", 2, {{"u", 8, ElementType::bytes, {100}}}, {}, {}};
  const auto [there, back] = both_ways(90, 1);
  schedule.rounds.push_back({{there, back}});
  const auto [low_there, low_back] = both_ways(0, half);
  const auto [high_there, high_back] = both_ways(half, half);
  schedule.rounds.push_back({{low_there, high_there, high_back, low_back}});
  return schedule;
}

TEST(Faults, CrossedExchangeInPlaceLongerThanAllSlots) {
  on_ranks(2, [](const Group& group) {
    group.set_timeout(2);
    PlanOptions options{.slots = 4, .slot_bytes = 64};
    std::vector<std::int64_t> u(100);
    const std::vector<std::span<std::byte>> arrays = {std::as_writable_bytes(std::span(u))};
    // Ten fragments of eight elements.
    Plan plan(group, crossed_exchange(40), arrays, options);
    const std::int64_t rank = group.rank();
    for (std::int64_t run = 0; run < 20; ++run) {
      for (std::size_t i = 0; i < u.size(); ++i) u[i] = static_cast<std::int64_t>(i) + 1000 * rank + 10'000 * run;
      plan.run();
      for (std::size_t i = 0; i < 80; ++i) {
        ASSERT_EQ(u[i], static_cast<std::int64_t>(i) + 1000 * (1 - rank) + 10'000 * run) << i << " in run " << run;
      }
    }
  });
}

// -- errors on one rank only ---------------------------------------------------------------------------------------

// Lets this process map at most so many bytes more.
void limit_address_space(std::uint64_t bytes) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

// Every rank runs `prepare`. It fails on rank 1, which throws `Own`; all others report the same step and message.
template <class Own>
void expect_heard_by_all(const Group& group, const std::string& words, const std::function<void()>& prepare) {
  const auto begin = Clock::now();
  std::string text;
  if (group.rank() == 1) {
    try {
      prepare();
    } catch (const Own& error) {
      text = error.what();
    }
    EXPECT_EQ(text.find("rank 1:"), std::string::npos) << text;
  } else {
    try {
      prepare();
    } catch (const BadInput& error) {
      ADD_FAILURE() << "rank " << group.rank() << " did nothing wrong: " << error.what();
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_NE(text.find("failed on rank 1: "), std::string::npos) << text;
  }
  EXPECT_NE(text.find(words), std::string::npos) << "rank " << group.rank() << ": " << text;
  EXPECT_LT(seconds_since(begin), 50);
}

TEST(Faults, WhatGoesWrongOnOneRankIsHeardByAll) {
  on_ranks(3, [](const Group& group) {
    const bool wrong = group.rank() == 1;
    expect_heard_by_all<BadInput>(group, "needs a group made from MPI", [&] {
      static_cast<void>(open_channels(group, {}, wrong ? TransportKind::mpi : TransportKind::automatic));
    });
    expect_heard_by_all<BadInput>(group, "has 799 bytes on rank 1", [&] {
      HaloSpec spec{.extents = {240}, .grid = {3}, .widths = {{10, 10}}, .periodic = {true}};
      std::vector<std::byte> memory(wrong ? 799 : 800);
      const std::vector<std::span<std::byte>> arrays = {memory};
      const Plan plan(group, halo(spec), arrays);
    });
    expect_heard_by_all<BadInput>(group, "of 0 (onehop chooses) or more", [&] {
      PlanOptions options;
      options.slots = wrong ? -1 : 0;
      const RingPlan ring(group, 100, 10, options);
    });
    expect_heard_by_all<BadInput>(group, "expected elements below 100", [&] {
      Schedule schedule = crossed_exchange(12);
      schedule.ranks = 3;
      if (wrong) schedule.rounds[0].transfers[0].to.slice = Slice::range(100, 1);
      std::vector<std::byte> memory(800);
      const std::vector<std::span<std::byte>> arrays = {memory};
      const Plan plan(group, schedule, arrays);
    });
    // An error that the caller finds earlier, as the Python package does.
    if (wrong) refuse_channels(group, "no memory to show");
    if (!wrong) {
      expect_heard_by_all<Error>(group, "no memory to show", [&] { static_cast<void>(open_channels(group, {})); });
    }
    // The steps of the ranks still match.
    RingPlan ring(group);
    ring.plan->run();
  });
}

// A plan that permutes index bits looks first for arrays in shared memory.
TEST(Faults, WhatGoesWrongBeforeArraysAreSharedIsHeardByAll) {
  on_ranks(2, [](const Group& group) {
    PermuteBitsSpec spec{.bits = 7, .local_bits = 6, .permutation = {6, 1, 2, 3, 4, 5, 0}};
    const Schedule schedule = permute_bits(spec);
    const auto bytes = static_cast<std::int64_t>(64 * spec.element_bytes);
    for (const bool wrong : {true, false}) {
      const SharedArray array = group.allocate(bytes);
      const auto prepare = [&] {
        const auto short_by = static_cast<std::size_t>(wrong ? group.rank() : 0);
        const std::vector<std::span<std::byte>> arrays = {
            array.bytes().first(static_cast<std::size_t>(bytes) - short_by)};
        Plan(group, schedule, arrays).run();
      };
      if (wrong) {
        expect_heard_by_all<BadInput>(group, std::to_string(bytes - 1) + " bytes on rank 1", prepare);
      } else {
        prepare();
      }
    }
  });
}

// Rank 0 has too little address space to map the array of rank 1, into which it would write directly.
TEST(Faults, WhatGoesWrongAfterChannelsAreOpenIsHeardByAll) {
  on_ranks(3, [](const Group& group) {
    constexpr std::int64_t length = 8 << 20;
    const SharedArray array = group.allocate(group.rank() == 1 ? 8 * length : 8000);
    const Slice slice = Slice::range(0, 1000);
    const Schedule schedule{"one way",
                            3,
                            {{"u", 8, ElementType::bytes, {1000, length, 1000}}},
                            {Round{{{{0, 0, slice}, {1, 0, slice}}}}},
                            {}};
    const std::vector<std::span<std::byte>> arrays = {array.bytes()};
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    if (group.rank() == 0) limit_address_space(32 << 20);
    try {
      const Plan plan(group, schedule, arrays);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("cannot map"), std::string::npos) << text;
      EXPECT_EQ(text.starts_with("making a plan failed on rank 0: "), group.rank() != 0) << text;
    }
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    RingPlan ring(group);
    ring.plan->run();
  });
}

TEST(Faults, DifferentTransportsAreAMismatch) {
  on_ranks(3, [](const Group& group) {
    const auto kind = group.rank() == 2 ? TransportKind::mock : TransportKind::shared_memory;
    testing::expect_says<Mismatch>([&] { static_cast<void>(open_channels(group, {}, kind)); },
                                   "rank 0 opens its channels over shared_memory, but rank 2 over mock");
    group.barrier();
  });
}

TEST(Faults, ARankInAnotherStepIsNamed) {
  on_ranks(2, [](const Group& group) {
    if (group.rank() == 1) {
      group.barrier();
      return;
    }
    testing::expect_says<Mismatch>([&] { static_cast<void>(open_channels(group, {})); },
                                   "rank 1 is in another collective step");
    EXPECT_THROW(group.barrier(), Error) << "the ranks are out of step";
  });
}

// -- memory --------------------------------------------------------------------------------------------------------

TEST(Faults, TooLittleMemoryIsAnErrorOnEveryRank) {
  const auto ended = fork_ranks(2, [](const Group& group) {
    EXPECT_THROW(static_cast<void>(group.allocate(std::int64_t{1} << 46)), Error);
    // Only rank 0 would need memory for the slots; rank 1 reports the error too.
    std::vector<ChannelSpec> specs = {group.rank() == 0 ? end_of_channel(Direction::receive, 1, std::int64_t{1} << 37)
                                                        : end_of_channel(Direction::send, 0, std::int64_t{1} << 37)};
    specs[0].slot_bytes = std::int64_t{1} << 37;
    static_cast<void>(open_channels(group, specs));
  });
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.exit_code, 1) << rank.message;
    EXPECT_NE(rank.message.find("rank 0"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("not enough memory"), std::string::npos) << rank.message;
    EXPECT_NE(rank.message.find("GiB"), std::string::npos) << rank.message;
  }
}

}  // namespace
}  // namespace onehop
