// Sums on devices: on the processor, and on cards of the stand-in drivers.
#include "collectives/device_reduce.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "onehop/error.h"
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

float number(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101);
}

std::vector<float> numbers_of(int rank, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = number(rank, i);
  return numbers;
}

// Whole numbers, whose sum is exact.
std::vector<float> sum_of(int ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < count; ++i) sum[i] += number(r, i);
  return sum;
}

class DeviceReduceOn : public ::testing::TestWithParam<Kind> {};

TEST_P(DeviceReduceOn, AddsArraysOfAllLengths) {
  for (const int ranks : {2, 4, 8}) {
    testing::on_ranks(ranks, [](const Group& group) {
      const OnDevice on(GetParam(), group.rank() % 2);
      DeviceReduce reduce(Collectives(group), on.device);
      const std::size_t longest = group.size() == 2 ? 300001 : 40000;  // several rounds of all groups, and fewer
      for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, longest}) {
        for (const int shots : {0, 1, 2}) {
          const device::Memory array = on.put(numbers_of(group.rank(), count));
          const Reduction reduction{.elements = static_cast<std::int64_t>(count)};
          EXPECT_TRUE(reduce.choose(reduction, shots).reason.empty()) << reduce.choose(reduction, shots).reason;
          reduce.run(on.stream, array.data(), array.data(), reduction, shots);
          reduce.wait(on.stream);
          EXPECT_EQ(on.get(array), sum_of(group.size(), count)) << count << " numbers, " << shots << " shots";
        }
      }
      group.barrier();
    });
  }
}

TEST_P(DeviceReduceOn, RoundsByTheCodec) {
  testing::on_ranks(2, [](const Group& group) {
    constexpr std::size_t count = 5000;
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    for (const auto& [codec, relative] :
         {std::pair{Codec::fp16, 1.0 / 2048}, {Codec::q8, 1.0 / 126}, {Codec::q4, 0.15}}) {
      const device::Memory array = on.put(numbers_of(group.rank(), count));
      reduce.run(on.stream, array.data(), array.data(), {.elements = count, .codec = codec});
      reduce.wait(on.stream);
      const std::vector<float> found = on.get(array);
      const std::vector<float> exact = sum_of(2, count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(found[i], exact[i], 3 * relative * 100) << to_string(codec);
    }
    group.barrier();
  });
}

TEST_P(DeviceReduceOn, GoesThroughTheProcessorsMemoryOtherwise) {
  testing::on_ranks(3, [](const Group& group) {
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    const Reduction reduction{.elements = 1000};
    EXPECT_SAYS(reduce.choose(reduction).reason, "2, 4 or 8 ranks, not of 3");
    const device::Memory array = on.put(numbers_of(group.rank(), 1000));
    reduce.run(on.stream, array.data(), array.data(), reduction);
    EXPECT_EQ(on.get(array), sum_of(3, 1000));
    group.barrier();
  });
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    EXPECT_SAYS(reduce.choose({.elements = 8, .type = ElementType::int64}).reason, "not int64");
    EXPECT_SAYS(reduce.choose({.elements = 8, .op = ReduceOp::max}).reason, "sums, not max");
    const device::Memory array = on.put(numbers_of(group.rank(), 8));
    reduce.run(on.stream, array.data(), array.data(), {.elements = 8, .op = ReduceOp::max});
    std::vector<float> most = numbers_of(0, 8);
    for (std::size_t i = 0; i < 8; ++i) most[i] = std::max(most[i], number(1, i));
    EXPECT_EQ(on.get(array), most);
    // Wrong input is refused before anything is launched, and the group remains of use.
    EXPECT_THROW(reduce.run(on.stream, array.data(), array.data(), {.elements = -1}), BadInput);
    EXPECT_THROW(reduce.run(on.stream, array.data(), array.data(), {.elements = 8}, 3), BadInput);
    const Reduction wrong{.elements = 8, .type = ElementType::int32, .codec = Codec::q8};
    testing::expect_says<BadInput>([&] { reduce.run(on.stream, array.data(), array.data(), wrong); },
                                   "the codec q8 is not for int32");
    reduce.run(on.stream, array.data(), array.data(), {.elements = 8});
    reduce.wait(on.stream);
    group.barrier();
    // What one rank alone refuses ends the others' sum.
    const auto sum = [&] {
      reduce.run(on.stream, array.data() + 2 * group.rank(), array.data(), {.elements = 4});
      reduce.wait(on.stream);
    };
    if (group.rank() == 1) {
      testing::expect_says<BadInput>(sum, "arrays of float32 at multiples of 4 bytes");
    } else {
      EXPECT_THROW(sum(), Error);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, DeviceReduceOn, ::testing::Values(Kind::processor, Kind::cuda, Kind::hip));

class DeviceReduceOnCards : public ::testing::TestWithParam<Kind> {};

TEST_P(DeviceReduceOnCards, ClosingEndsAtTheTimeLimitIfAnotherRankDoesNotCome) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    auto reduce = std::make_unique<DeviceReduce>(Collectives(group), on.device);
    const device::Memory array = on.put(numbers_of(group.rank(), 100));
    reduce->run(on.stream, array.data(), array.data(), {.elements = 100});
    reduce->wait(on.stream);
    group.set_timeout(group.rank() == 0 ? 1 : 60);
    if (group.rank() == 0) {
      reduce->run(on.stream, array.data(), array.data(), {.elements = 100});
      const auto begin = std::chrono::steady_clock::now();
      reduce.reset();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    }
    group.barrier();
  });
}

TEST_P(DeviceReduceOnCards, DoesNotWaitForTheDevice) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    const char* const waits = GetParam() == Kind::cuda ? "cuStreamSynchronize" : "hipStreamSynchronize";
    const device::Memory array = on.put(numbers_of(group.rank(), 100));
    group.barrier();
    const int before = on.standin->calls(waits);
    const char* const follows = GetParam() == Kind::cuda ? "cuStreamWaitEvent" : "hipStreamWaitEvent";
    const int followed = on.standin->calls(follows);
    const device::Stream other = on.device->make_stream();
    // Rank 0 launches all before rank 1 launches any. Sums in another stream come after those before.
    if (group.rank() == 1) group.barrier();
    for (int i = 0; i < 3; ++i) reduce.run(i == 1 ? other : on.stream, array.data(), array.data(), {.elements = 100});
    EXPECT_GE(on.standin->calls(follows), followed + 2);
    if (group.rank() == 0) {
      EXPECT_FALSE(on.device->is_done(on.stream));
      group.barrier();
    }
    EXPECT_EQ(on.standin->calls(waits), before);
    reduce.wait(on.stream);
    std::vector<float> expected = sum_of(2, 100);
    for (float& one : expected) one *= 4;
    EXPECT_EQ(on.get(array), expected);
    group.barrier();
  });
}

TEST_P(DeviceReduceOnCards, UsesTheProcessorWhereCardsCannotReachEachOther) {
  const bool cuda = GetParam() == Kind::cuda;
  for (const std::string name :
       {cuda ? "cuIpcOpenMemHandle_v2" : "hipIpcOpenMemHandle", cuda ? "cuIpcGetMemHandle" : "hipIpcGetMemHandle"}) {
    testing::on_ranks(2, [&](const Group& group) {
      const Variable failing("STANDIN_FAIL", group.rank() == 1 ? name + ":0" : "");
      const OnDevice on(GetParam());
      DeviceReduce reduce(Collectives(group), on.device);
      const std::string reason = reduce.choose({.elements = 10}).reason;
      EXPECT_SAYS(reason, "rank 1 ");
      EXPECT_SAYS(reason, name);
      const device::Memory array = on.put(numbers_of(group.rank(), 10));
      reduce.run(on.stream, array.data(), array.data(), {.elements = 10});
      EXPECT_EQ(on.get(array), sum_of(2, 10));
      group.barrier();
    });
  }
}

// Who closes first keeps its window until the others have unmapped it.
TEST_P(DeviceReduceOnCards, ClosesInAnyOrder) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    const std::int64_t free = on.device->free_memory();
    std::optional<DeviceReduce> reduce(std::in_place, Collectives(group), on.device);
    for (const int first : {0, 1}) {
      if (group.rank() == first) reduce.reset();
      group.barrier();
    }
    EXPECT_EQ(on.standin->freed_while_mapped(), 0);
    EXPECT_EQ(on.device->free_memory(), free);
    group.barrier();
  });
}

// A sum that nobody waits for is still in its stream, where it waits for rank 1.
TEST_P(DeviceReduceOnCards, ClosesAlthoughARankIsLost) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const auto ended = testing::fork_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    std::optional<DeviceReduce> reduce(std::in_place, Collectives(group), on.device);
    const device::Memory array = on.put(numbers_of(group.rank(), 100));
    group.barrier();
    if (group.rank() == 1) testing::nap(0.1);
    if (group.rank() == 1) std::_Exit(0);
    const double begin = base::steady_seconds();
    reduce->run(on.stream, array.data(), array.data(), {.elements = 100});
    reduce.reset();
    EXPECT_LT(base::steady_seconds() - begin, 2.0);
  });
  EXPECT_TRUE(ended[0].ok) << ended[0].message;
}

// A graph of a card, by the functions of its driver.
struct Graph {
  Graph(const OnDevice& device, const std::function<void(const device::Stream&)>& work) : on(device) {
    const bool cuda = on.device->kind() == Kind::cuda;
    const auto* const begin = cuda ? "cuStreamBeginCapture_v2" : "hipStreamBeginCapture";
    const auto* const end = cuda ? "cuStreamEndCapture" : "hipStreamEndCapture";
    launch_ = on.standin->symbol(cuda ? "cuGraphLaunch" : "hipGraphLaunch");
    const device::Stream captured = on.device->make_stream();
    reinterpret_cast<int (*)(void*, int)>(on.standin->symbol(begin))(captured.native(), 0);
    work(captured);
    reinterpret_cast<int (*)(void*, void**)>(on.standin->symbol(end))(captured.native(), &graph_);
  }
  void replay() const { reinterpret_cast<int (*)(void*, void*)>(launch_)(graph_, on.stream.native()); }

  const OnDevice& on;

 private:
  void* launch_ = nullptr;
  void* graph_ = nullptr;
};

TEST_P(DeviceReduceOnCards, AGraphIsCapturedAndReplayed) {
  testing::on_ranks(2, [](const Group& group) {
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    const device::Memory array = on.put(numbers_of(group.rank(), 3000));
    const Reduction reduction{.elements = 3000};
    reduce.run(on.stream, array.data(), array.data(), reduction);
    const Graph graph(on, [&](const device::Stream& captured) {
      reduce.run(captured, array.data(), array.data(), reduction);
      testing::expect_says<BadInput>(
          [&] { reduce.run(captured, array.data(), array.data(), {.elements = 8, .op = ReduceOp::max}); },
          "cannot be captured in a graph: kernels compute sums, not max");
    });
    for (int i = 0; i < 2; ++i) graph.replay();
    reduce.run(on.stream, array.data(), array.data(), reduction);
    reduce.wait(on.stream);
    std::vector<float> expected = sum_of(2, 3000);
    for (float& one : expected) one *= 8;
    EXPECT_EQ(on.get(array), expected);
    group.barrier();
  });
}

TEST_P(DeviceReduceOnCards, ADeadRankEndsGraphs) {
  testing::expect_loss_of_rank_1(2, [](const Group& group) {
    const auto on = std::make_shared<OnDevice>(GetParam());
    const auto reduce = std::make_shared<DeviceReduce>(Collectives(group), on->device);
    const device::Memory array = on->put(numbers_of(group.rank(), 1000));
    const auto graph = std::make_shared<Graph>(*on, [&](const device::Stream& captured) {
      reduce->run(captured, array.data(), array.data(), {.elements = 1000});
    });
    for (int i = 0; i < 3; ++i) graph->replay();
    return [=] {
      graph->replay();
      reduce->wait(on->stream);
      static_cast<void>(array);
    };
  });
}

TEST_P(DeviceReduceOnCards, AnErrorOfTheDriverEndsTheGroup) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const auto ended = testing::fork_ranks(4, [](const Group& group) {
    const OnDevice on(GetParam());
    DeviceReduce reduce(Collectives(group), on.device);
    const device::Memory array = on.put(numbers_of(group.rank(), 10));
    group.barrier();
    const auto sum = [&] {
      reduce.run(on.stream, array.data(), array.data(), {.elements = 10});
      reduce.wait(on.stream);
    };
    if (group.rank() == 1) {
      const char* const name = GetParam() == Kind::cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel";
      const Variable failing("STANDIN_FAIL", std::string(name) + ":1");
      testing::expect_says<Error>(sum, name, "from", std::string(name_of(GetParam())) + ":0");
      testing::expect_says<Error>(sum, "cannot be used again");
    } else if (group.rank() == 2) {
      testing::expect_says<PeerLost>([&] { group.barrier(); }, "rank 1 (process", "has aborted this group");
    } else {
      testing::expect_says<PeerLost>(sum, "rank 1");
    }
    testing::nap(0.5);
  });
  for (const auto& one : ended) EXPECT_TRUE(one.ok) << one.message;
}

INSTANTIATE_TEST_SUITE_P(, DeviceReduceOnCards, ::testing::Values(Kind::cuda, Kind::hip));

TEST_P(DeviceReduceOn, ADeadRankEndsTheKernelsOfTheOthers) {
  testing::expect_loss_of_rank_1(4, [](const Group& group) {
    const auto on = std::make_shared<OnDevice>(GetParam());
    const auto reduce = std::make_shared<DeviceReduce>(Collectives(group), on->device);
    const device::Memory array = on->put(numbers_of(group.rank(), 1000));
    return [=] {
      reduce->run(on->stream, array.data(), array.data(), {.elements = 1000});
      reduce->wait(on->stream);
    };
  });
}

}  // namespace
}  // namespace onehop::collectives
