// Failing collectives: another operation on one rank, a rank that dies, invalid arguments.
#include "onehop/collectives/collectives.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "tests/support/ranks.h"
#include "tests/support/reductions.h"

namespace onehop::collectives {
namespace {

using onehop::testing::fork_ranks;
using onehop::testing::on_threads;
using namespace testing;  // NOLINT

// The sum of rank + 1 over the ranks, in every element.
void sum_works(const Collectives& collectives, std::int64_t elements) {
  const Group& group = collectives.group();
  std::vector<float> x(static_cast<std::size_t>(elements), static_cast<float>(group.rank() + 1));
  const auto bytes = std::as_writable_bytes(std::span(x));
  collectives.allreduce({.elements = elements}).run(bytes, bytes);
  const auto expected = static_cast<float>(group.size() * (group.size() + 1) / 2);
  EXPECT_EQ(std::count(x.begin(), x.end(), expected), elements) << "rank " << group.rank();
}

constexpr auto npos = std::string::npos;

// The text of the Mismatch that a call throws, or an empty one.
std::string mismatch_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "";
}

// One rank runs another operation: every rank throws a Mismatch that names it, and none hangs.
TEST(Collectives, MismatchOnEveryRank) {
  // Without a tuning that may be on this machine.
  const Reduction usual{.elements = 50000, .algorithm = ReduceAlgorithm::two_shot, .shape = {200, 250}};
  const auto with = [&](auto change) {
    Reduction other = usual;
    change(other);
    return other;
  };
  const Reduction others[] = {
      with([](Reduction& r) { r.elements = 50001; }),
      with([](Reduction& r) { r.elements = 2; }),
      with([](Reduction& r) { r.type = ElementType::int32; }),
      with([](Reduction& r) { r.op = ReduceOp::max; }),
      with([](Reduction& r) { r.algorithm = ReduceAlgorithm::one_shot; }),
      with([](Reduction& r) { r.shape = {250, 200}; }),
      with([](Reduction& r) { r.shape = {}; }),
  };
  for (const Reduction& other : others) {
    on_threads(3, [&](const Group& group) {
      group.set_timeout(20);
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
      const Reduction& mine = group.rank() == 1 ? other : usual;
      Bytes array(static_cast<std::size_t>(mine.elements * bytes_of(mine.type)));
      Collective operation = collectives.allreduce(mine);
      try {
        operation.run(array, array);
        FAIL() << "no Mismatch on rank " << group.rank();
      } catch (const Mismatch& error) {
        EXPECT_NE(std::string(error.what()).find("rank 1 runs an all-reduce of"), std::string::npos) << error.what();
      }
      sum_works(collectives, 50000);
      sum_works(collectives, 30);
    });
  }
  on_threads(2, [&](const Group& group) {  // and if all data is in the header lines
    const Collectives collectives(group);
    Bytes array(24 * 4);
    const std::int64_t rows = group.rank() == 0 ? 4 : 6;
    EXPECT_THROW(collectives.allreduce({.elements = 24, .shape = {rows, 24 / rows}}).run(array, array), Mismatch);
  });
  on_threads(2, [&](const Group& group) {
    const Collectives collectives(group);
    Bytes array(100);
    const ElementType type = group.rank() == 0 ? ElementType::float32 : ElementType::int32;
    EXPECT_THROW(collectives.broadcast(100, 1, {type, {25}}).run(array, array), Mismatch);
  });
  on_threads(2, [&](const Group& group) {
    const Collectives collectives(group);
    Bytes array(100);
    if (group.rank() == 0) {
      EXPECT_THROW(collectives.barrier(), Mismatch);
    } else {
      EXPECT_THROW(collectives.broadcast(100, 1).run(array, array), Mismatch);
    }
  });
}

// Lengths of blocks that no header has: where two ranks disagree, every rank throws, and the two are named where they
// are.
TEST(Collectives, MismatchOfBlockLengths) {
  on_threads(3, [&](const Group& group) {
    group.set_timeout(20);
    const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
    const int me = group.rank();
    for (const std::int64_t more : {-8, 8, 5000, 50000}) {
      std::vector<std::int64_t> to(3, 5008);
      const std::vector<std::int64_t> from(3, 5008);
      if (me == 0) to[2] += more;
      const Bytes source(static_cast<std::size_t>(to[0] + to[1] + to[2]), std::byte{5});
      Bytes result(std::size_t{3} * 5008, std::byte{9});
      const std::string named =
          me == 1 ? "other ranks disagree"
                  : "rank 0 sends " + std::to_string(5008 + more) + " bytes to rank 2, which expects 5008";
      for (int times = 0; times < 2; ++times) {
        EXPECT_NE(mismatch_of([&] { collectives.all_to_all(to, from).run(source, result); }).find(named), npos);
      }
      EXPECT_EQ(result, Bytes(result.size(), std::byte{9}));  // nothing was moved
      sum_works(collectives, 5000);
      // The same total on all ranks, but not the same blocks.
      std::vector<std::int64_t> each{50000, 50000, 100000};
      if (me == 1) std::swap(each[1], each[2]);
      Bytes own(static_cast<std::size_t>(each[static_cast<std::size_t>(me)]));
      Bytes all(200000, std::byte{9});
      EXPECT_NE(mismatch_of([&] { collectives.allgather(each).run(own, all); }).find("expects"), npos);
      EXPECT_EQ(all, Bytes(all.size(), std::byte{9}));
    }
    sum_works(collectives, 60000);
  });
}

// The memory of slots comes with the first operation that needs it, and a rank sends nothing before all ranks have it.
TEST(Collectives, SendsAheadOnceAllRanksHaveSlots) {
  on_threads(2, [](const Group& group) {
    const Collectives collectives(group);
    const Bytes source(40000);
    Bytes result(80000);
    Collective operation = collectives.allgather(40000);
    for (const std::int64_t ahead : {0, 40000}) {
      const std::int64_t before = collectives.counters().bytes_sent;
      operation.start(source, result);
      EXPECT_EQ(collectives.counters().bytes_sent - before, ahead);
      operation.finish();
      collectives.barrier();
    }
  });
}

// After a Mismatch, the next operation that is the same on all ranks works, for all data that was on its way and for
// any deviating rank.
TEST(Collectives, GoOnAfterMismatch) {
  constexpr std::int64_t lengths[] = {1, 20, 50, 5000, 60000};  // in one line, in two, in four, in a chunk, in many
  for (const int odd : {0, 1, 2}) {
    on_threads(3, [&](const Group& group) {
      group.set_timeout(20);
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
      for (const std::int64_t usual : lengths) {
        for (const std::int64_t other : lengths) {
          if (usual == other) continue;
          std::vector<float> x(static_cast<std::size_t>(group.rank() == odd ? other : usual), 7.0F);
          const auto bytes = std::as_writable_bytes(std::span(x));
          Collective operation = collectives.allreduce({.elements = static_cast<std::int64_t>(x.size())});
          for (int times = 0; times < 2; ++times) EXPECT_THROW(operation.run(bytes, bytes), Mismatch);
          EXPECT_EQ(x, std::vector<float>(x.size(), 7.0F));  // nothing was combined
          EXPECT_THROW(operation.finish(), BadInput);
          sum_works(collectives, other);
        }
        if (group.rank() == odd) {
          EXPECT_THROW(collectives.barrier(), Mismatch);
        } else {
          EXPECT_THROW(sum_works(collectives, usual), Mismatch);
        }
      }
      collectives.barrier();
      sum_works(collectives, 60000);
    });
  }
}

// The same for operations that only move data, whose first chunks are sent with the headers.
TEST(Collectives, GoOnAfterMismatchOfMovedData) {
  constexpr std::int64_t lengths[] = {8, 3000, 20000};  // bytes of a block: in a chunk, and in many
  for (const int odd : {0, 1, 2}) {
    on_threads(3, [&](const Group& group) {
      group.set_timeout(20);
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
      const auto made = [&](int kind, std::int64_t bytes) {
        const std::vector<std::int64_t> each(3, bytes);
        if (kind == 0) return collectives.allgather(bytes);
        if (kind == 1) return collectives.all_to_all(each, each);
        return collectives.broadcast(bytes, kind - 2);
      };
      constexpr int kinds = 5;
      for (int usual = 0; usual < kinds; ++usual) {
        for (int other = 0; other < kinds; ++other) {
          if (usual == 1 && other == 1) continue;  // lengths of an all-to-all may differ
          for (const std::int64_t length : lengths) {
            const bool differs = group.rank() == odd;
            Collective operation = made(differs ? other : usual, differs ? length : length + 16);
            Bytes source(static_cast<std::size_t>(operation.source_bytes()), std::byte{5});
            Bytes result(static_cast<std::size_t>(operation.result_bytes()), std::byte{9});
            for (int times = 0; times < 2; ++times) EXPECT_THROW(operation.run(source, result), Mismatch);
            EXPECT_EQ(result, Bytes(result.size(), std::byte{9}));  // nothing was moved
            Collective same = made(other, length);
            Bytes mine(static_cast<std::size_t>(same.source_bytes()), static_cast<std::byte>(group.rank()));
            Bytes moved(static_cast<std::size_t>(same.result_bytes()));
            same.run(mine, moved);
            for (std::size_t i = 0; i < moved.size(); ++i) {
              const auto from = other >= 2 ? other - 2 : static_cast<int>(i / static_cast<std::size_t>(length));
              ASSERT_EQ(moved[i], static_cast<std::byte>(from)) << usual << ' ' << other << ' ' << length << ' ' << i;
            }
            sum_works(collectives, 5000);
          }
        }
      }
    });
  }
}

TEST(Collectives, DeadRankIsPeerLost) {
  for (const std::int64_t elements : {2, 1000, 3000000}) {
    const auto ended = fork_ranks(3, [&](const Group& group) {
      const Collectives collectives(group);
      Bytes array(static_cast<std::size_t>(elements) * 4);
      Collective operation = collectives.allreduce({elements});
      for (int run = 0; run < 10; ++run) {
        if (run == 5 && group.rank() == 2) kill(getpid(), SIGKILL);
        operation.run(array, array);
      }
    });
    EXPECT_EQ(ended[2].signal, SIGKILL);
    for (const std::size_t rank : {0U, 1U}) {
      EXPECT_EQ(ended[rank].exit_code, 3) << ended[rank].message;
      EXPECT_NE(ended[rank].message.find("rank 2"), std::string::npos) << ended[rank].message;
    }
  }
}

TEST(Collectives, SaysWhatIsWrong) {
  const Group group = Group::alone();
  const Collectives collectives(group);
  EXPECT_THROW((void)collectives.allreduce({-1}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({10, ElementType::bytes}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({10, ElementType::int32, ReduceOp::mean}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({std::int64_t{1} << 62}), BadInput);
  EXPECT_THROW((void)collectives.broadcast(5, 1), BadInput);
  EXPECT_THROW((void)collectives.allgather(std::vector<std::int64_t>{1, 2}), BadInput);
  EXPECT_THROW((void)reduce_op_from_string("average"), BadInput);
  Bytes array(44);
  Collective operation = collectives.allreduce({10});
  EXPECT_THROW(operation.run(array, array), BadInput);
  const std::span<std::byte> all(array);
  EXPECT_THROW(operation.run(all.subspan(0, 40), all.subspan(4, 40)), BadInput);
  EXPECT_THROW(operation.finish(), BadInput);
  operation.start(all.subspan(0, 40), all.subspan(0, 40));
  EXPECT_THROW(collectives.barrier(), BadInput);
  operation.finish();
  const Part parts[] = {{array.data(), array.data(), 11}};
  EXPECT_THROW(operation.start(parts), BadInput);
}

}  // namespace
}  // namespace onehop::collectives
