// The all-reduce of cards: sums, bit by bit; flags over many launches; and ranks that do not come.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "onehop/codec.h"
#include "src/device/kernels.h"
#include "tests/device/thread_team.h"
#include "tests/support/ranks.h"

namespace onehop::device {
namespace {

using testing::Fault;
using testing::reduce_on_threads;
using testing::Windows;

// Of the launches and cases, with a sanitizer, which makes them ten times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t part = 7;
#else
constexpr std::uint32_t part = 1;
#endif

void launch(std::string_view codec, const Shape& shape, const AllReduceArguments& arguments) {
  const Kernel& kernel = find_kernel("onehop_all_reduce_" + std::string(codec));
  std::vector<Wide> shared(shape.shared_bytes / sizeof(Wide) + 1);
  for (std::uint32_t group = 0; group < shape.groups; ++group) {
    kernel.run_group(shape, group, &arguments, reinterpret_cast<std::byte*>(shared.data()));
  }
}

ElementType element_type(NumberType type) {
  return type == NumberType::float32   ? ElementType::float32
         : type == NumberType::float16 ? ElementType::float16
                                       : ElementType::bfloat16;
}

// To the type of the tensor and back, by the codecs of the processor.
std::vector<std::byte> narrowed(NumberType type, std::span<const float> x) {
  std::vector<std::byte> bytes(x.size() * bytes_of(type));
  const Codec codec = type == NumberType::float16 ? Codec::fp16 : Codec::bf16;
  if (type == NumberType::float32) {
    std::ranges::copy(std::as_bytes(x), bytes.data());
  } else {
    encode(codec, ElementType::float32, std::as_bytes(x), bytes);
  }
  return bytes;
}

std::vector<float> rounded(Codec codec, ElementType type, std::span<const std::byte> source, std::size_t count) {
  std::vector<float> x(count);
  if (codec == Codec::raw && type == ElementType::float32) {
    std::ranges::copy(source, std::as_writable_bytes(std::span(x)).data());
    return x;
  }
  if (codec == Codec::raw) codec = type == ElementType::float16 ? Codec::fp16 : Codec::bf16;
  std::vector<std::byte> wire(static_cast<std::size_t>(encoded_bytes(codec, type, static_cast<std::int64_t>(count))));
  encode(codec, type, source, wire);
  decode(codec, ElementType::float32, wire, std::as_writable_bytes(std::span(x)));
  return x;
}

struct Case {
  Codec codec;
  NumberType type;
  std::uint32_t shots;
  std::uint32_t groups;
  std::uint32_t threads;
  std::uint32_t tiles;
  std::size_t count;
  bool in_place;
};

std::vector<std::byte> source_of(const Case& one, unsigned rank) {
  std::mt19937 random(rank * 1000 + static_cast<unsigned>(one.count));
  std::vector<float> x(one.count);
  for (float& value : x) value = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-29F;
  if (one.count > 40) x[40] = rank == 1 ? std::numeric_limits<float>::infinity() : x[40];
  return narrowed(one.type, x);
}

std::vector<std::byte> expected_of(const Case& one, unsigned ranks) {
  std::vector<float> sum;
  for (unsigned r = 0; r < ranks; ++r) {
    const std::vector<float> x = rounded(one.codec, element_type(one.type), source_of(one, r), one.count);
    if (r == 0) sum = x;
    for (std::size_t i = 0; r > 0 && i < x.size(); ++i) sum[i] += x[i];
  }
  if (one.shots == 2 && one.codec != Codec::raw) {
    sum = rounded(one.codec, ElementType::float32, std::as_bytes(std::span(sum)), one.count);
  }
  return narrowed(one.type, sum);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const std::size_t counts[] = {1, 2047, 8 * 2048, 21 * 2048 + 5, 0};
  unsigned i = 0;
  for (const Codec codec :
       {Codec::raw, Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3}) {
    for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
      for (const std::uint32_t shots : {1U, 2U, 1U, 2U}) {
        cases.push_back({codec, type, shots, 1 + i % 3, 1 + i % 2 * 31, 1 + i / 2 % 2, counts[i % 5], i % 4 < 2});
        ++i;
      }
      ++i;
    }
  }
  return cases;
}

// Ranks are threads; one after the other they launch all cases. The number of meetings wraps within.
TEST(DeviceAllReduce, SumsInTheOrderOfRanks) {
  std::vector<Case> cases = all_cases();
  for (std::size_t i = 0; i < cases.size() / part; ++i) cases[i] = cases[part * i];
  cases.resize(cases.size() / part);
  for (const std::uint32_t ranks : {2U, 4U, 8U}) {
    Windows windows(ranks, 4, 0xfffffff0);
    std::vector<std::vector<std::byte>> expected;
    for (const Case& one : cases) expected.push_back(expected_of(one, ranks));
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          const Case& one = cases[i];
          std::vector<std::byte> source = source_of(one, rank);
          std::vector<std::byte> target(source.size());
          AllReduceArguments arguments = windows.arguments(rank);
          arguments.source = source.data();
          arguments.target = one.in_place ? source.data() : target.data();
          arguments.count = one.count;
          arguments.type = one.type;
          arguments.tiles = one.tiles;
          arguments.shots = one.shots;
          launch(to_string(one.codec), {one.groups, one.threads, all_reduce_shared_bytes}, arguments);
          if ((one.in_place ? source : target) != expected[i] && wrong++ < 3) {
            ADD_FAILURE() << "case " << i << " rank " << rank << " of " << ranks << ": " << to_string(one.codec);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(DeviceAllReduce, RunsOnThreads) {
  EXPECT_TRUE((reduce_on_threads<With<Fp16>::Steps, Fault::none>(4, 2)));
  EXPECT_TRUE((reduce_on_threads<With<Fp16>::Steps, Fault::none>(4, 1)));
  EXPECT_TRUE((reduce_on_threads<RawSteps, Fault::none>(4, 2)));
  EXPECT_TRUE((reduce_on_threads<RawSteps, Fault::none>(4, 1)));
}

TEST(DeviceMessages, MoveOnThreads) { EXPECT_TRUE(testing::move_on_threads<Fault::none>(20)); }

// The threads of both ranks run in another order in every phase.
TEST(DeviceAllReduce, DoesNotDependOnTheOrderOfThreads) {
  for (const std::uint32_t shots : {1U, 2U}) {
    const Case one{Codec::q6, NumberType::float16, shots, 2, 32, 2, 11 * tile_numbers + 9, false};
    Windows windows(2, one.groups, 0);
    std::vector<std::byte> targets[2];
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const std::vector<std::byte> source = source_of(one, rank);
        targets[rank].resize(source.size());
        AllReduceArguments arguments = windows.arguments(rank);
        arguments.source = source.data();
        arguments.target = targets[rank].data();
        arguments.count = one.count;
        arguments.type = one.type;
        arguments.shots = shots;
        const Shape shape{one.groups, one.threads, all_reduce_shared_bytes};
        std::vector<Wide> shared(shape.shared_bytes / sizeof(Wide) + 1);
        for (std::uint32_t group = 0; group < one.groups; ++group) {
          LoopTeam team(shape, group, shared.data(), 3 + 5 * rank + group);
          all_reduce<With<Q6>::Steps>(team, arguments);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(targets[0], expected_of(one, 2));
    EXPECT_EQ(targets[1], targets[0]);
  }
}

// Ranks are processes, which sleep at random. Sizes, types and shots change from launch to launch.
void launch_often(std::uint32_t ranks, std::uint32_t launches) {
  const WindowLayout layout{ranks, 2};
  const std::uint32_t first = 0U - launches;
  void* const memory = mmap(nullptr, ranks * layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto window = [&](std::uint32_t rank) { return static_cast<unsigned char*>(memory) + rank * layout.bytes(); };
  for (std::uint32_t r = 0; r < ranks; ++r) Windows::fill(window(r), layout, first);
  onehop::testing::on_ranks(static_cast<int>(ranks), [&](const Group& group) {
    const auto rank = static_cast<std::uint32_t>(group.rank());
    std::mt19937 same(7);  // on all ranks
    std::mt19937 own(100 + rank);
    AllReduceArguments arguments{};
    for (std::uint32_t r = 0; r < ranks; ++r) arguments.windows[r] = window(r);
    arguments.rank = rank;
    arguments.ranks = ranks;
    arguments.window_groups = layout.groups;
    const auto value = [](std::uint32_t r, std::uint32_t n, std::size_t i) {
      return static_cast<float>((r * 7 + n * 3 + i) % 16);
    };
    for (std::uint32_t n = 0; n < launches; ++n) {
      std::vector<float> x(1 + same() % (same() % 50 == 0 ? 20000 : 100));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(rank, n, i);
      arguments.count = x.size();
      arguments.tiles = 1 + same() % most_tiles;
      arguments.shots = 1 + same() % 2;
      arguments.type = static_cast<NumberType>(same() % 3);
      std::vector<std::byte> bytes = narrowed(arguments.type, x);
      arguments.source = bytes.data();
      arguments.target = bytes.data();
      launch(same() % 2 == 0 ? "raw" : "fp16", {1 + static_cast<std::uint32_t>(same() % 2), 1, all_reduce_shared_bytes},
             arguments);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = 0;
        for (std::uint32_t r = 0; r < ranks; ++r) x[i] += value(r, n, i);
      }
      ASSERT_EQ(bytes, narrowed(arguments.type, x)) << "launch " << n;
      if (own() % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 200));
    }
  });
  munmap(memory, ranks * layout.bytes());
}
TEST(DeviceAllReduce, IsRightInManyLaunchesOfTwo) { launch_often(2, 6000 / part); }
TEST(DeviceAllReduce, IsRightInManyLaunchesOfFour) { launch_often(4, 2000 / part); }
TEST(DeviceAllReduce, IsRightInManyLaunchesOfEight) { launch_often(8, 2000 / part); }

// Rank 2 of 3 does not come. Ranks 0 and 1 end once they are told, and store no other flag.
TEST(DeviceAllReduce, EndsWhenItIsStopped) {
  for (const std::uint32_t shots : {1U, 2U}) {
    Windows windows(3, 1, 0);
    std::vector<float> source(2048, 1);
    std::vector<float> targets[2] = {std::vector<float>(2048), std::vector<float>(2048)};
    std::uint32_t stop[2] = {};
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        AllReduceArguments arguments = windows.arguments(rank);
        arguments.source = source.data();
        arguments.target = targets[rank].data();
        arguments.count = source.size();
        arguments.shots = shots;
        arguments.stop = stop;
        launch("q8", {1, 2, all_reduce_shared_bytes}, arguments);
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    __atomic_store_n(stop, 1U, __ATOMIC_RELEASE);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(stop[1], 1U);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const auto* const words = reinterpret_cast<const std::uint32_t*>(windows.of(2));
      EXPECT_EQ(words[windows.layout().flag(rank, 0) / 4], 1U) << "of the first meeting alone";
    }
  }
}

// Rank 0 is stopped while it waits for rank 1, with another launch in its stream. What rank 1 has from it stays.
TEST(DeviceAllReduce, ALaunchAfterOneThatGaveUpWritesNothing) {
  Windows windows(2, 1, 0);
  std::uint32_t stop[2] = {1, 0};
  const auto add = [&](std::uint32_t rank, float number, std::uint32_t* stopped) {
    std::vector<float> numbers(100, number);
    AllReduceArguments arguments = windows.arguments(rank);
    arguments.source = numbers.data();
    arguments.target = numbers.data();
    arguments.count = numbers.size();
    arguments.shots = 1;
    arguments.stop = stopped;
    launch("raw", {1, 2, all_reduce_shared_bytes}, arguments);
    return numbers;
  };
  for (const float number : {1.0F, 10.0F}) add(0, number, stop);
  EXPECT_EQ(stop[1], 1U);
  EXPECT_EQ(add(1, 100, nullptr), std::vector<float>(100, 101));
}

TEST(DeviceMessages, ALaunchAfterOneThatGaveUpPacksNothing) {
  std::vector<std::uint32_t> array(4, 1);
  std::vector<Wide> wire(2);
  std::uint32_t arrived = 0, unpacked = 0, never = 0, stop[2] = {1, 0}, words[2][2] = {};
  const auto at = [](auto& memory) { return reinterpret_cast<unsigned char*>(memory.data()); };
  const SlicePiece piece{at(array), 0, 4, no_list, {4}, {4}, 1, 4};
  const SliceMessage messages[] = {{at(wire), 16, 16, 0, 1, &unpacked, &arrived},   // from rank 0 to rank 1
                                   {at(wire), 16, 16, 0, 1, &never, nullptr},       // to rank 0, which does not come
                                   {at(wire), 16, 16, 0, 1, &arrived, &unpacked}};  // on rank 1
  const auto move = [&](std::uint32_t which, std::uint32_t rank) {
    const SliceArguments arguments{messages + which,     &piece, nullptr, words[rank], stop, 1, which == 0 ? 1U : 0U,
                                   which == 0 ? 0U : 1U, 0};
    std::vector<Wide> shared(slice_shared_bytes(2) / sizeof(Wide) + 1);
    find_kernel("onehop_move_slices").run_group({1, 2, 0}, 0, &arguments, reinterpret_cast<std::byte*>(shared.data()));
  };
  for (const std::uint32_t run : {1U, 2U}) {
    array.assign(4, run);
    move(0, 0);
    move(1, 0);
  }
  EXPECT_EQ(stop[1], 1U);
  move(2, 1);
  EXPECT_EQ(array, std::vector<std::uint32_t>(4, 1));
}

}  // namespace
}  // namespace onehop::device
