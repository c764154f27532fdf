// The reduction patterns: executed naively and compared with sums made here, verified, and counted against formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "src/base/half.h"
#include "tests/support/naive_execute.h"

namespace onehop {
namespace {

using testing::Memory;

float value(int rank, std::int64_t i) { return std::ldexp(static_cast<float>((i * 7 + rank * 13) % 23) + 0.1F, rank); }

// Fills array 0 with value(rank, i).
Memory filled(const Schedule& schedule) {
  Memory memory = testing::allocate(schedule);
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    auto& array = memory[static_cast<std::size_t>(rank)][0];
    for (std::size_t i = 0; i < array.size() / 4; ++i) {
      const float x = value(rank, static_cast<std::int64_t>(i));
      std::memcpy(&array[i * 4], &x, 4);
    }
  }
  return memory;
}

float at(const std::vector<std::byte>& array, std::int64_t i) {
  float x = 0;
  std::memcpy(&x, &array[static_cast<std::size_t>(i) * 4], 4);
  return x;
}

float sum_in_rank_order(int ranks, std::int64_t i) {
  float sum = value(0, i);
  for (int rank = 1; rank < ranks; ++rank) sum += value(rank, i);
  return sum;
}

TEST(AllReducePattern, SumsInTheOrderOfRanks) {
  for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      for (const std::int64_t elements : {0, 1, 63, 64, 65, 1000}) {
        const Schedule schedule = allreduce({ranks, elements, ElementType::float32, Combine::add, algorithm});
        ASSERT_TRUE(verify(schedule).empty()) << ranks << " " << elements;
        Memory memory = filled(schedule);
        testing::naive_execute(schedule, memory);
        for (const auto& rank : memory) {
          for (std::int64_t i = 0; i < elements; ++i) ASSERT_EQ(at(rank[1], i), sum_in_rank_order(ranks, i));
        }
      }
    }
  }
}

TEST(AllReducePattern, BytesAreThoseOfTheFormulas) {
  constexpr std::int64_t elements = 64 * 40;
  for (const int ranks : {2, 4, 5, 8}) {
    AllReduceSpec spec{ranks, elements, ElementType::float64, Combine::max, ReduceAlgorithm::one_shot};
    const Count one_shot = count(allreduce(spec));
    spec.algorithm = ReduceAlgorithm::two_shot;
    const Count two_shot = count(allreduce(spec));
    for (const RankCount& rank : one_shot.ranks) EXPECT_EQ(rank.bytes_sent, (ranks - 1) * elements * 8);
    for (const RankCount& rank : two_shot.ranks) {
      EXPECT_EQ(rank.bytes_sent, 2 * (ranks - 1) * elements * 8 / ranks);
      EXPECT_EQ(rank.messages_sent, 2 * (ranks - 1));
    }
  }
}

TEST(AllReducePattern, SegmentsCoverEverythingInBlocks) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::int64_t elements : {0, 1, 64, 100, 320, 12345}) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto [first, last] = reduce_segment(elements, ranks, rank);
        EXPECT_EQ(first, end);
        EXPECT_TRUE(first % 64 == 0 || first == elements);
        EXPECT_LE(last - first, (elements / ranks / 64 + 1) * 64);
        end = last;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

TEST(AllReducePattern, ReduceScatterAndBroadcast) {
  const Schedule scatter = reduce_scatter({3, 10, ElementType::float32, Combine::add});
  EXPECT_TRUE(verify(scatter).empty());
  Memory memory = filled(scatter);
  testing::naive_execute(scatter, memory);
  for (int rank = 0; rank < 3; ++rank) {
    for (std::int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(at(memory[static_cast<std::size_t>(rank)][1], i), sum_in_rank_order(3, rank * 10 + i));
    }
  }
  const Schedule spread = broadcast(4, 9, 4, 2);
  EXPECT_TRUE(verify(spread).empty());
  memory = filled(spread);
  testing::naive_execute(spread, memory);
  for (const auto& rank : memory) EXPECT_EQ(rank[0], memory[2][0]);
  EXPECT_EQ(at(memory[0][0], 5), value(2, 5));
  EXPECT_EQ(count(spread).ranks[2].messages_sent, 3);
}

TEST(AllReducePattern, PartsAreCutOutAlike) {
  for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
    const AllReduceSpec spec{3, 200, ElementType::int32, Combine::min, algorithm};
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(allreduce(spec, rank), allreduce(spec).part(rank));
      EXPECT_EQ(reduce_scatter(spec, rank), reduce_scatter(spec).part(rank));
      EXPECT_EQ(broadcast(3, 5, 8, 1, rank), broadcast(3, 5, 8, 1).part(rank));
    }
  }
}

TEST(AllReducePattern, SaysWhatIsWrong) {
  EXPECT_THROW((void)allreduce({0, 5}), BadInput);
  EXPECT_THROW((void)allreduce({2, -1}), BadInput);
  EXPECT_THROW((void)allreduce({2, 5, ElementType::bytes}), BadInput);
  EXPECT_THROW((void)allreduce({2, 5, ElementType::float32, Combine::replace}), BadInput);
  EXPECT_THROW((void)allreduce({2, 5, ElementType::float32, Combine::add, ReduceAlgorithm::automatic}), BadInput);
  EXPECT_THROW((void)allreduce({2, 5}, 2), BadInput);
  EXPECT_THROW((void)broadcast(2, 5, 4, 2), BadInput);
  EXPECT_THROW((void)reduce_algorithm_from_string("ring"), BadInput);
}

// Every 16-bit number survives conversion to float and back; values in between round to the nearest, ties to even.
TEST(Half, RoundsToNearest) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = to_float(Float16{half});
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_float16(wide))));
    } else {
      ASSERT_EQ(to_float16(wide).bits, half);
    }
    const float brain = to_float(BFloat16{half});
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(brain))));
    } else {
      ASSERT_EQ(to_bfloat16(brain).bits, half);
    }
    if (bits < 0x7bffU) {  // two neighbours, both finite and positive
      const float above = to_float(Float16{static_cast<std::uint16_t>(bits + 1)});
      const float middle = wide + (above - wide) / 2;
      ASSERT_EQ(to_float16(middle).bits, bits + bits % 2);
      ASSERT_EQ(to_float16(std::nextafter(middle, above)).bits, bits + 1);
      ASSERT_EQ(to_float16(std::nextafter(middle, wide)).bits, bits);
    }
  }
  EXPECT_EQ(to_float16(65519.99F).bits, 0x7bffU);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(to_float16(-0.0F).bits, 0x8000U);
  EXPECT_EQ(to_bfloat16(1.00390625F).bits, 0x3f80U);  // half way, to even
  EXPECT_EQ(to_bfloat16(1.01171875F).bits, 0x3f82U);
}

}  // namespace
}  // namespace onehop
