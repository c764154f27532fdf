// Messages that senders write straight into the receiver's array: compared with a naive executor of the same schedule,
// with ranks that keep pace and ranks that do not; what must not be written before its time; what passes through slots.
#include "src/plan/direct/direct_put.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "onehop/verify.h"
#include "tests/support/faults.h"
#include "tests/support/plan_check.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::allocate;
using testing::cut;
using testing::expect_plan_moves;
using testing::Memory;
using testing::on_ranks;
using testing::random_memory;
using testing::SharedCopies;

void pause_at_random(std::mt19937& random) {
  if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
}

// Faces of whole planes, and of rows of 1600 bytes.
HaloSpec long_rows(int ranks, int dimension) {
  HaloSpec spec{.extents = {16, 24, 200}, .grid = {1, 1, 1}, .widths = {}, .periodic = {}};
  spec.grid[static_cast<std::size_t>(dimension)] = ranks;
  spec.widths = {{1, 1}, {2, 1}, {0, 0}};
  spec.periodic = {true, true, false};
  spec.element_bytes = {8};
  return spec;
}

TEST(DirectPut, HalosMoveWhatTheNaiveExecutorMoves) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const int dimension : {0, 1}) {
      for (const PlanOptions& options : {PlanOptions{}, cut(2, 10000, 3000), cut(1, 8192, 8192)}) {
        const Schedule schedule = halo(long_rows(ranks, dimension));
        const Memory memory = random_memory(schedule, 11);
        on_ranks(ranks, [&](const Group& group) {
          const SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
          expect_plan_moves(group, schedule, schedule, options, memory, mine.arrays);
        });
      }
    }
  }
}

// `bytes` from the first array of every rank to the second of the next.
Schedule ring(int ranks, std::int64_t bytes) {
  Schedule schedule{
      "ring", ranks, {{"out", 1, ElementType::bytes, {bytes}}, {"in", 1, ElementType::bytes, {bytes}}}, {}, {}};
  Round& round = schedule.rounds.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) {
    round.transfers.push_back({{rank, 0, Slice::range(0, bytes)}, {(rank + 1) % ranks, 1, Slice::range(0, bytes)}});
  }
  return schedule;
}

std::byte value_of(int rank, int run, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(rank) * 59 + static_cast<std::size_t>(run) * 7 + i * 13) &
                                0xff);
}

void fill(std::span<std::byte> bytes, int rank, int run) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value_of(rank, run, i);
}

bool holds(std::span<const std::byte> bytes, int rank, int run) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != value_of(rank, run, i)) return false;
  }
  return true;
}

// A ghost belongs to its rank until the rank starts the next run, however far ahead the sender is.
TEST(DirectPut, NothingIsWrittenBeforeTheReceiverStarts) {
  for (const int ranks : {2, 3}) {
    on_ranks(ranks, [&](const Group& group) {
      constexpr std::int64_t bytes = 50000;
      const SharedArray out = group.allocate(bytes);
      const SharedArray in = group.allocate(bytes);
      const std::array<std::span<std::byte>, 2> arrays{out.bytes().first(bytes), in.bytes().first(bytes)};
      Plan plan(group, ring(ranks, bytes), arrays, cut(2, 20000, 7000));
      std::mt19937 random(static_cast<unsigned>(group.rank()));
      const int previous = (group.rank() + ranks - 1) % ranks;
      for (int run = 0; run < 300; ++run) {
        fill(arrays[0], group.rank(), run);
        fill(arrays[1], 77, run);
        pause_at_random(random);
        ASSERT_TRUE(holds(arrays[1], 77, run)) << "run " << run;
        if (run % 3 == 0) {
          plan.start();
          pause_at_random(random);
          plan.finish();
        } else {
          plan.run();
        }
        ASSERT_TRUE(holds(arrays[1], previous, run)) << "run " << run;
        // The run is complete for this rank: its source may be overwritten at once.
      }
    });
  }
}

// The number of fragments that a rank writes into arrays in some runs of a ring in which all ranks keep pace.
std::int64_t puts_in_a_ring(const Group& group, const PlanOptions& options, bool shared_in) {
  constexpr std::int64_t bytes = 40000;
  const SharedArray out = group.allocate(bytes);
  const SharedArray in = group.allocate(bytes);
  std::vector<std::byte> ordinary(bytes);
  const std::array<std::span<std::byte>, 2> arrays{
      out.bytes().first(bytes), shared_in ? in.bytes().first(bytes) : std::span<std::byte>(ordinary)};
  Plan plan(group, ring(group.size(), bytes), arrays, options);
  // In lockstep, so that both ways are taken: the last rank to start finds the next one exposed.
  for (int run = 0; run < 200; ++run) {
    fill(arrays[0], group.rank(), run);
    plan.run();
    EXPECT_TRUE(holds(arrays[1], (group.rank() + group.size() - 1) % group.size(), run));
  }
  std::int64_t puts = 0;
  for (const PlanChannel& channel : plan.channels()) puts += channel.direct_puts;
  return puts;
}

TEST(DirectPut, OnlySharedDestinationsAreWrittenDirectlyAndOnlyIfWanted) {
  on_ranks(2, [](const Group& group) {
    EXPECT_GT(puts_in_a_ring(group, {}, true), 0);
    EXPECT_EQ(puts_in_a_ring(group, {}, false), 0);
    PlanOptions without;
    without.direct_puts = false;
    EXPECT_EQ(puts_in_a_ring(group, without, true), 0);
  });
}

// What a rank holds in one round, it sends on in the next: ghosts that are sources later.
TEST(DirectPut, RoundsFollowEachOther) {
  constexpr std::int64_t bytes = 30000;
  for (const int ranks : {2, 4}) {
    Schedule schedule = ring(ranks, bytes);
    Round& second = schedule.rounds.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      second.transfers.push_back({{rank, 1, Slice::range(0, bytes)}, {(rank + 1) % ranks, 0, Slice::range(0, bytes)}});
    }
    const Memory memory = random_memory(schedule, 3);
    on_ranks(ranks, [&](const Group& group) {
      const SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
      expect_plan_moves(group, schedule, schedule, {}, memory, mine.arrays);
    });
  }
}

// Two ranks exchange the same elements in place: what one sends would be overwritten by the other's put.
TEST(DirectPut, ExchangesInPlacePassThroughSlots) {
  constexpr std::int64_t bytes = 30000;
  Schedule schedule{"exchange", 2, {{"x", 1, ElementType::bytes, {bytes}}}, {}, {}};
  schedule.rounds.push_back({{{{0, 0, Slice::range(0, bytes)}, {1, 0, Slice::range(0, bytes)}},
                              {{1, 0, Slice::range(0, bytes)}, {0, 0, Slice::range(0, bytes)}}}});
  ASSERT_TRUE(verify(schedule).empty());
  const Memory memory = random_memory(schedule, 5);
  on_ranks(2, [&](const Group& group) {
    const SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
    EXPECT_EQ(expect_plan_moves(group, schedule, schedule, {}, memory, mine.arrays), 0);
  });
}

TEST(DirectPut, SumsCodecsAndShortPiecesPassThroughSlots) {
  constexpr std::int64_t numbers = 8192;
  Schedule sums = ring(2, numbers);
  for (ArraySpec& array : sums.arrays) array = {array.name, 4, ElementType::float32, {numbers}};
  Schedule encoded = sums;
  Schedule scattered = sums;
  for (Transfer& transfer : sums.rounds[0].transfers) transfer.combine = Combine::add;
  for (Transfer& transfer : encoded.rounds[0].transfers) transfer.codec = Codec::fp16;
  for (Transfer& transfer : scattered.rounds[0].transfers) {
    transfer.from.slice = transfer.to.slice =
        Slice::subarray(std::array<std::int64_t, 2>{numbers / 16, 16}, std::array<std::int64_t, 2>{0, 0},
                        std::array<std::int64_t, 2>{numbers / 16, 15});
  }
  for (const Schedule& schedule : {sums, encoded, scattered}) {
    Memory memory = allocate(schedule);
    for (auto& rank : memory) {
      for (auto& array : rank) {
        for (std::int64_t i = 0; i < numbers; ++i) {
          const auto number = static_cast<float>(i % 17);
          std::memcpy(array.data() + i * 4, &number, 4);
        }
      }
    }
    on_ranks(2, [&](const Group& group) {
      const SharedCopies mine(group, memory[static_cast<std::size_t>(group.rank())]);
      EXPECT_EQ(expect_plan_moves(group, schedule, schedule, {}, memory, mine.arrays), 0);
    });
  }
}

TEST(DirectPut, AnArrayLivesAsLongAsThePlan) {
  on_ranks(2, [](const Group& group) {
    constexpr std::int64_t bytes = 30000;
    SharedArray out = group.allocate(bytes);
    SharedArray in = group.allocate(bytes);
    const std::array<std::span<std::byte>, 2> arrays{out.bytes().first(bytes), in.bytes().first(bytes)};
    Plan plan(group, ring(2, bytes), arrays);
    out = {};
    in = {};
    for (int run = 0; run < 50; ++run) {
      fill(arrays[0], group.rank(), run);
      plan.run();
      ASSERT_TRUE(holds(arrays[1], 1 - group.rank(), run));
    }
  });
}

// Memory of this process that ranks can map, whichever group made it.
TEST(DirectPut, AnArrayOfAnotherGroupIsWrittenDirectly) {
  on_ranks(3, [](const Group& group) {
    constexpr std::int64_t bytes = 40000;
    const SharedArray out = Group::alone().allocate(bytes);
    const SharedArray in = group.split(0, 0).allocate(bytes);
    const std::array<std::span<std::byte>, 2> arrays{out.bytes().first(bytes), in.bytes().first(bytes)};
    Plan plan(group, ring(group.size(), bytes), arrays);
    for (int run = 0; run < 200; ++run) {
      fill(arrays[0], group.rank(), run);
      plan.run();
      ASSERT_TRUE(holds(arrays[1], (group.rank() + 2) % 3, run));
    }
    EXPECT_GT(plan.channels().front().direct_puts, 0);
  });
}

// Two ranks write the same ghosts of a third.
TEST(DirectPut, OverlappingGhostsAreRefused) {
  constexpr std::int64_t bytes = 20000;
  Schedule schedule{"overlap", 3, {{"u", 4, ElementType::int32, {2 * bytes}}}, {}, {}};
  schedule.rounds.push_back({{{{0, 0, Slice::range(0, bytes)}, {2, 0, Slice::range(0, bytes)}},
                              {{1, 0, Slice::range(0, bytes)}, {2, 0, Slice::range(bytes - 1, bytes)}}}});
  for (const bool combine : {false, true}) {
    for (Transfer& transfer : schedule.rounds[0].transfers) {
      transfer.combine = combine ? Combine::max : Combine::replace;
    }
    on_ranks(3, [&](const Group& group) {
      const SharedArray u = group.allocate(8 * bytes);
      std::string said;
      try {
        Plan(group, schedule, std::array{u.bytes()}).run();
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_EQ(said.empty(), combine) << said;
      if (!combine) {
        const std::string words = "writes element 19999 of array u on rank 2, which round 0, transfer 0 (rank 0";
        EXPECT_NE(said.find(words), std::string::npos) << said;
      }
    });
  }
}

// One array of the plan begins inside the other. Elements in common may be read twice, and used in different rounds.
TEST(DirectPut, ArraysThatShareWrittenElementsAreRefused) {
  constexpr std::int64_t bytes = 20000;
  on_ranks(2, [](const Group& group) {
    const SharedArray memory = group.allocate(2 * bytes);
    const auto at = [&](std::int64_t begin) {
      return memory.bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
    };
    testing::expect_says<BadInput>([&] { Plan(group, ring(2, bytes), std::array{at(0), at(bytes - 8)}); },
                                   "overlap in memory on rank " + std::to_string(group.rank()) +
                                       ", and round 0 writes through array 1 what it reads through array 0");
  });
  // Both arrays are the same memory, of which each is another half.
  Schedule halves = ring(2, bytes);
  for (Transfer& transfer : halves.rounds[0].transfers) {
    transfer.from.slice = Slice::range(0, bytes / 2);
    transfer.to.slice = Slice::range(bytes / 2, bytes / 2);
  }
  on_ranks(2, [&](const Group& group) {
    const SharedArray memory = group.allocate(bytes);
    const std::span<std::byte> all = memory.bytes().first(static_cast<std::size_t>(bytes));
    Plan plan(group, halves, std::array{all, all});
    for (int run = 0; run < 20; ++run) {
      fill(all.first(all.size() / 2), group.rank(), run);
      plan.run();
      ASSERT_TRUE(holds(all.subspan(all.size() / 2), 1 - group.rank(), run));
    }
  });
}

// Most of the time it is writing into the array of the other when the signal comes.
TEST(DirectPut, ASenderThatIsKilledWhileItWritesIsLostAndTheArrayUndefined) {
  const testing::SharedCounter runs;  // preparing takes long on a busy machine
  const auto ended =
      testing::fork_ranks(2,
                          [&runs](const Group& group) {
                            constexpr std::int64_t bytes = 8 << 20;
                            const SharedArray out = group.allocate(bytes);
                            const SharedArray in = group.allocate(bytes);
                            Plan plan(group, ring(2, bytes), std::array{out.bytes(), in.bytes()});
                            for (;; (*runs)++) plan.run();
                          },
                          {.meanwhile = [&runs](const std::vector<int>& processes) {
                            const auto begin = std::chrono::steady_clock::now();
                            while (*runs == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            }
                            std::this_thread::sleep_for(std::chrono::milliseconds(100));
                            kill(processes[0], SIGKILL);
                          }});
  EXPECT_EQ(ended[0].signal, SIGKILL);
  EXPECT_EQ(ended[1].exit_code, 3) << ended[1].message;
  EXPECT_NE(ended[1].message.find("rank 0"), std::string::npos) << ended[1].message;
  EXPECT_NE(ended[1].message.find("the elements that this plan writes are undefined now"), std::string::npos)
      << ended[1].message;
}

}  // namespace
}  // namespace onehop
