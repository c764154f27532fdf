// Plans of arrays on devices: against plans of the same schedules on arrays of the processor.
#include "collectives/device_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/device/standin/killed_rank.h"
#include "tests/device/standin/on_device.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::collectives {
namespace {

using device::Kind;
using testing::OnDevice;
using testing::Variable;

// Every rank sends the elements of random slices of array 0 to places of array 1 that no other transfer writes, in
// rounds that each send what the one before wrote, too.
Schedule random_schedule(int ranks, std::int64_t element_bytes, unsigned seed) {
  constexpr std::int64_t size = 240;
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
  };
  Schedule schedule;
  schedule.ranks = ranks;
  schedule.arrays = {{"a", element_bytes, ElementType::bytes, {size}},
                     {"b", element_bytes, ElementType::bytes, {size}}};
  for (int r = 0; r < 3; ++r) {
    Round& round = schedule.rounds.emplace_back();
    const int written = r % 2 == 0 ? 1 : 0;
    for (int to = 0; to < ranks; ++to) {
      for (std::int64_t part = 0; part < 6; ++part) {
        if (below(3) == 0) continue;
        const std::array<std::int64_t, 3> extents{1 + below(2), 2, 1 + below(5)};
        const std::array<std::int64_t, 3> strides{20, 8, 1};
        const std::array<std::int64_t, 3> reversed{-17, 40, 3};
        Slice from = Slice::box(100 + below(40), extents, reversed);
        if (part == 1) {
          std::vector<std::int64_t> list(static_cast<std::size_t>(from.elements()));
          for (auto& index : list) index = below(size);
          from = Slice::list(list);
        }
        round.transfers.push_back({.from = {static_cast<int>(below(ranks)), 1 - written, from},
                                   .to = {to, written, Slice::box(40 * part, extents, strides)}});
      }
    }
  }
  return schedule;
}

using Arrays = std::vector<std::vector<std::byte>>;

Arrays arrays_of(const Schedule& schedule, int rank) {
  Arrays arrays;
  for (const ArraySpec& spec : schedule.arrays) {
    arrays.emplace_back(static_cast<std::size_t>(spec.elements_on(rank) * spec.element_bytes));
    for (std::size_t i = 0; i < arrays.back().size(); ++i)
      arrays.back()[i] =
          static_cast<std::byte>(i * 31 + i / 251 + arrays.size() * 7 + static_cast<std::size_t>(rank) * 101);
  }
  return arrays;
}

// Runs a schedule three times in both kinds of memory, in two streams in turn, and compares all bytes and counters.
void expect_same(const Group& group, const OnDevice& on, const Schedule& schedule, bool has_kernels) {
  Arrays expected = arrays_of(schedule, group.rank());
  std::vector<std::span<std::byte>> spans(expected.begin(), expected.end());
  Plan plan(group, schedule, spans);
  std::vector<device::Memory> memory;
  std::vector<DeviceArray> there;
  for (const auto& array : expected) {
    memory.push_back(on.put(array));
    there.push_back({memory.back().data(), memory.back().bytes()});
  }
  DevicePlan found(group, schedule.part(group.rank()), on.device, there);
  EXPECT_EQ(found.reason().empty(), has_kernels) << found.reason();
  const device::Stream other = on.device->make_stream();
  for (int run = 0; run < 3; ++run) {
    plan.run();
    testing::nap(0.001 * ((group.rank() + run) % 3));
    found.start(run == 1 ? other : on.stream);
    found.finish(on.stream);
  }
  found.wait();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(on.get<std::byte>(memory[i]), expected[i]) << schedule.name << ", array " << i;
  EXPECT_EQ(found.counters().runs, 3);
  EXPECT_EQ(found.counters().bytes_sent, plan.counters().bytes_sent);
  EXPECT_EQ(found.counters().bytes_received, plan.counters().bytes_received);
  EXPECT_EQ(found.counters().messages_sent, plan.counters().messages_sent);
  EXPECT_EQ(found.counters().bytes_local, plan.counters().bytes_local);
  group.barrier();
}

void expect_same_schedules(const Group& group, const OnDevice& on, bool has_kernels) {
  unsigned seed = 1;
  for (const std::int64_t element_bytes : {1, 2, 4, 8, 12, 48})
    expect_same(group, on, random_schedule(group.size(), element_bytes, seed++), has_kernels);
  HaloSpec halo;
  halo.extents = {6, 8, 20, 60 * group.size()};
  halo.grid = {1, 1, 1, group.size()};
  halo.widths.assign(4, {1, 2});
  halo.periodic.assign(4, true);
  expect_same(group, on, onehop::halo(halo), has_kernels);
}

class DevicePlanOn : public ::testing::TestWithParam<Kind> {};

TEST_P(DevicePlanOn, MovesWhatPlansMove) {
  for (const int ranks : {1, 2, 3}) {
    testing::on_ranks(ranks, [](const Group& group) {
      const OnDevice on(GetParam(), group.rank() % 2);
      expect_same_schedules(group, on, true);
    });
  }
}

TEST_P(DevicePlanOn, RefusesOnAllRanks) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    const Schedule good = random_schedule(2, 4, 5);
    const device::Memory memory = on.put(std::vector<float>(240));
    const std::vector<DeviceArray> there(2, {memory.data(), memory.bytes()});
    Schedule sums = good;
    for (ArraySpec& spec : sums.arrays) spec.type = ElementType::float32;
    sums.rounds[0].transfers[0].combine = Combine::add;
    const auto make = [&](const Schedule& schedule, std::span<const DeviceArray> arrays) {
      return DevicePlan(group, schedule, on.device, arrays);
    };
    testing::expect_says<BadInput>([&] { make(sums, there); }, "found combine 'add'");
    testing::expect_says<BadInput>([&] { make(random_schedule(4, 4, 5), there); }, "a schedule of 2 ranks");
    std::vector<DeviceArray> shorter = there;
    shorter[0].bytes = 400;
    testing::expect_says<Error>([&] { make(good, group.rank() == 0 ? shorter : there); },
                                group.rank() == 0 ? "" : "rank 0: ", "expected 960 bytes of array 'a' on rank 0");
    testing::expect_says<Mismatch>([&] { make(random_schedule(2, 4, 5 + static_cast<unsigned>(group.rank())), there); },
                                   "expected the same schedule on all ranks");
    DevicePlan plan(group, good, on.device, there);
    testing::expect_says<BadInput>([&] { plan.finish(on.stream); }, "needs a start()");
    plan.start(on.stream);
    testing::expect_says<BadInput>([&] { plan.start(on.stream); }, "called twice");
    plan.finish(on.stream);
    plan.wait();
    group.barrier();
  });
}

TEST_P(DevicePlanOn, ADeadRankEndsTheKernelsOfTheOthers) {
  testing::expect_loss_of_rank_1(3, [](const Group& group) {
    const auto on = std::make_shared<OnDevice>(GetParam());
    const device::Memory memory = on->put(std::vector<float>(240));
    const std::vector<DeviceArray> there(2, {memory.data(), memory.bytes()});
    const auto plan = std::make_shared<DevicePlan>(group, random_schedule(3, 4, 5), on->device, there);
    return [=] {
      plan->start(on->stream);
      plan->finish(on->stream);
      plan->wait();
      static_cast<void>(memory);
    };
  });
}

// Rank 1 ends in order; what rank 0 has run is complete.
TEST_P(DevicePlanOn, ARankThatHasFinishedMayEnd) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const auto ended = testing::fork_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    const device::Memory memory = on.put(std::vector<float>(240));
    const std::vector<DeviceArray> there(2, {memory.data(), memory.bytes()});
    DevicePlan plan(group, random_schedule(2, 4, 5), on.device, there);
    plan.start(on.stream);
    plan.finish(on.stream);
    plan.wait();
    group.barrier();
    if (group.rank() == 1) return;
    testing::nap(0.5);
    plan.wait();
    testing::expect_says<PeerLost>([&] { plan.start(on.stream); }, "rank 1");
  });
  for (const auto& rank : ended) EXPECT_TRUE(rank.ok) << rank.message;
}

INSTANTIATE_TEST_SUITE_P(, DevicePlanOn, ::testing::Values(Kind::processor, Kind::cuda, Kind::hip));

TEST(DevicePlanOnCards, UsesTheProcessorWhereCardsCannotReachEachOther) {
  testing::on_ranks(3, [](const Group& group) {
    const Variable failing("STANDIN_FAIL", group.rank() == 1 ? "cuIpcOpenMemHandle_v2:0" : "");
    const OnDevice on(Kind::cuda);
    expect_same_schedules(group, on, false);
  });
}

// Rank 0 launches two runs before rank 1 launches any; no call waits for the device.
TEST(DevicePlanOnCards, DoesNotWaitForTheDevice) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(Kind::cuda);
    const device::Memory memory = on.put(std::vector<float>(240));
    const std::vector<DeviceArray> there(2, {memory.data(), memory.bytes()});
    DevicePlan plan(group, random_schedule(2, 4, 5), on.device, there);
    const int before = on.standin->calls("cuStreamSynchronize");
    if (group.rank() == 1) group.barrier();
    for (int run = 0; run < 2; ++run) {
      plan.start(on.stream);
      plan.finish(on.stream);
    }
    if (group.rank() == 0) {
      EXPECT_FALSE(on.device->is_done(on.stream));
      group.barrier();
    }
    EXPECT_EQ(on.standin->calls("cuStreamSynchronize"), before);
    plan.wait();
    group.barrier();
  });
}

}  // namespace
}  // namespace onehop::collectives
