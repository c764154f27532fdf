// All-reduces of arrays that all ranks share: the same bits as through slots, for arrays that come and go, and with
// ranks whose arrays are not shared.
#include "collectives/shared_arrays.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "onehop/collectives/collectives.h"
#include "onehop/error.h"
#include "tests/support/ranks.h"
#include "tests/support/reductions.h"

namespace onehop::collectives {
namespace {

using onehop::testing::fork_ranks;
using onehop::testing::on_ranks;
using onehop::testing::on_threads;
using namespace testing;  // NOLINT

TEST(SharedReductions, PlacesFitBehindTheHeader) {
  const SharedPlace far{0xffffffffU, 65535, (std::int64_t{1} << 48U) - 1};
  const SharedPlace near{1, 0, 0};
  const detail::PlacesOnWire both(far, near);
  ASSERT_TRUE(both.given());
  for (const auto& [found, wanted] : {std::pair(both.source(), far), std::pair(both.result(), near)}) {
    EXPECT_EQ(found.memory, wanted.memory);
    EXPECT_EQ(found.descriptor, wanted.descriptor);
    EXPECT_EQ(found.offset, wanted.offset);
  }
  EXPECT_FALSE(detail::PlacesOnWire(SharedPlace{}, near).given());
  EXPECT_FALSE(detail::PlacesOnWire(near, SharedPlace{1, 65536, 0}).given());
  EXPECT_FALSE(detail::PlacesOnWire(near, SharedPlace{1, 3, std::int64_t{1} << 48U}).given());
  EXPECT_FALSE(detail::PlacesOnWire().given());
}

// A shared array that holds `source` at an offset.
struct Array {
  Array(const Group& group, const Bytes& source, std::size_t offset)
      : owner(group.allocate(static_cast<std::int64_t>(source.size() + offset))),
        bytes(owner.bytes().subspan(offset, source.size())) {
    std::ranges::copy(source, bytes.begin());
  }
  SharedArray owner;
  std::span<std::byte> bytes;
};

void reduce_everything(const Group& group) {
  const int ranks = group.size();
  const Collectives collectives(group);
  for (const ElementType type : types) {
    for (const ReduceOp op : ops) {
      if (!makes_sense(type, op)) continue;
      for (const std::int64_t elements : {20000 + ranks, 300001}) {
        if (elements > 100000 && (type != ElementType::float32 || op != ReduceOp::sum)) continue;
        const auto sources = random_sources(type, elements, ranks, 4);
        const Bytes wanted = expected(type, op, sources);
        const Collective operation = collectives.allreduce({elements, type, op, Codec::raw, ReduceAlgorithm::two_shot});
        const Array source(group, of_rank(sources, group), 0);
        const Array result(group, Bytes(wanted.size()), static_cast<std::size_t>(64 * group.rank()));
        const Array in_place(group, of_rank(sources, group), static_cast<std::size_t>(8 * group.rank()));
        for (int run = 0; run < 2; ++run) {
          Collective copy = operation;
          std::ranges::fill(result.bytes, std::byte{1});
          copy.run(source.bytes, result.bytes);
          ASSERT_TRUE(std::ranges::equal(result.bytes, wanted)) << to_string(type) << " " << to_string(op);
          ASSERT_TRUE(std::ranges::equal(source.bytes, of_rank(sources, group)));
        }
        Collective copy = operation;
        copy.run(in_place.bytes, in_place.bytes);
        ASSERT_TRUE(std::ranges::equal(in_place.bytes, wanted)) << to_string(type) << " " << to_string(op);
      }
    }
  }
}

TEST(SharedReductions, HaveTheSameBitsInProcesses) {
  for (const int ranks : {2, 3, 5}) on_ranks(ranks, reduce_everything);
}

TEST(SharedReductions, HaveTheSameBitsInThreads) {
  for (const int ranks : {1, 2, 4}) on_threads(ranks, reduce_everything);
}

constexpr std::int64_t elements = 60000;

Bytes numbers(std::int32_t value) {
  Bytes bytes(elements * 4);
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(&bytes[4 * i], &value, 4);
  return bytes;
}

Collective sum_of(const Collectives& collectives, std::int64_t count = elements) {
  return collectives.allreduce({count, ElementType::int32, ReduceOp::sum});
}

// The other rank writes its half of the result into this rank's array, which shows there before finish().
TEST(SharedReductions, WriteIntoTheArraysOfOthers) {
  on_ranks(2, [](const Group& group) {
    const Collectives collectives(group);
    Collective operation = sum_of(collectives);
    const Array array(group, numbers(group.rank() + 1), 0);
    const std::int64_t bytes_before = collectives.counters().bytes_sent;
    operation.start(array.bytes, array.bytes);
    if (group.rank() == 0) {
      const auto begin = std::chrono::steady_clock::now();
      std::int32_t last = 1;
      while (last == 1 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
        std::memcpy(&last, const_cast<const std::byte*>(array.bytes.data()) + array.bytes.size() - 4, 4);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(last, 3);
    }
    operation.finish();
    EXPECT_TRUE(std::ranges::equal(array.bytes, numbers(3)));
    EXPECT_EQ(collectives.counters().bytes_sent - bytes_before, elements * 4);
  });
}

// Memory at an address and with a descriptor that other memory had before is not taken for it.
TEST(SharedReductions, ArraysComeAndGo) {
  on_ranks(3, [](const Group& group) {
    const Collectives collectives(group);
    Collective operation = sum_of(collectives);
    for (int run = 0; run < 60; ++run) {
      const Array array(group, numbers(run + group.rank()), 0);
      operation.run(array.bytes, array.bytes);
      ASSERT_TRUE(std::ranges::equal(array.bytes, numbers(3 * run + 3))) << run;
      if (run % 4 != 0) continue;
      const Array result(group, numbers(0), 4096);
      operation.run(array.bytes, result.bytes);
      ASSERT_TRUE(std::ranges::equal(result.bytes, numbers(9 * run + 9))) << run;
    }
  });
}

// Also with ordinary arrays on any of the ranks, which change from one operation to the next.
TEST(SharedReductions, OrdinaryArraysTakePart) {
  on_ranks(3, [](const Group& group) {
    const Collectives collectives(group);
    Collective operation = sum_of(collectives);
    const Array source(group, numbers(group.rank()), 0);
    const Array result(group, numbers(0), 0);
    Bytes ordinary_source = numbers(group.rank());
    Bytes ordinary_result = numbers(0);
    for (int run = 0; run < 64; ++run) {
      const bool shares_source = (run >> group.rank() & 1) == 0;
      const bool shares_result = (run >> (group.rank() + 3) & 1) == 0;
      const std::span<std::byte> from = shares_source ? source.bytes : std::span(ordinary_source);
      const std::span<std::byte> to = shares_result ? result.bytes : std::span(ordinary_result);
      std::ranges::fill(to, std::byte{0});
      operation.run(from, to);
      ASSERT_TRUE(std::ranges::equal(to, numbers(3))) << run;
    }
  });
}

TEST(SharedReductions, AMismatchLeavesTheArrays) {
  on_ranks(2, [](const Group& group) {
    const Collectives collectives(group);
    const Array array(group, numbers(group.rank()), 0);
    Collective good = sum_of(collectives);
    Collective bad = sum_of(collectives, elements - group.rank());
    for (int round = 0; round < 3; ++round) {
      const auto part = array.bytes.first(static_cast<std::size_t>(bad.source_bytes()));
      EXPECT_THROW(bad.run(part, part), Mismatch);
      ASSERT_TRUE(std::ranges::equal(array.bytes, numbers(round == 0 ? group.rank() : 1 << (round - 1))));
      good.run(array.bytes, array.bytes);
      ASSERT_TRUE(std::ranges::equal(array.bytes, numbers(1 << round)));
    }
  });
}

TEST(SharedReductions, ARankThatIsKilledIsLost) {
  const auto ended = fork_ranks(2,
                                [](const Group& group) {
                                  const Collectives collectives(group);
                                  const Array array(group, Bytes(8 << 20), 0);
                                  Collective operation =
                                      collectives.allreduce({2 << 20, ElementType::int32, ReduceOp::sum});
                                  for (;;) operation.run(array.bytes, array.bytes);
                                },
                                {.meanwhile = [](const std::vector<int>& processes) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(300));
                                  kill(processes[0], SIGKILL);
                                }});
  EXPECT_EQ(ended[0].signal, SIGKILL);
  EXPECT_EQ(ended[1].exit_code, 3) << ended[1].message;
}

}  // namespace
}  // namespace onehop::collectives
