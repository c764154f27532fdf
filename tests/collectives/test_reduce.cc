// The reduction loops of every width, compared with results that are computed one element at a time.
#include "collectives/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "src/base/half.h"
#include "tests/support/reductions.h"

namespace onehop::collectives {
namespace {

using namespace testing;  // NOLINT

TEST(Reduce, EveryWidthTypeAndOperation) {
  for (const ElementType type : types) {
    for (const ReduceOp op : ops) {
      if (!makes_sense(type, op)) {
        EXPECT_EQ(detail::reduce_function(type, op), nullptr);
        continue;
      }
      const auto sources = random_sources(type, 333, 3, 5);
      const Bytes wanted = expected(type, op, sources);
      const std::byte* pointers[] = {sources[0].data(), sources[1].data(), sources[2].data()};
      for (int width = 0; width <= detail::widest_reduce(); ++width) {
        Bytes found(wanted.size());
        detail::reduce_function(type, op, width)(pointers, 3, found.data(), 333);
        ASSERT_EQ(found, wanted) << to_string(type) << " " << to_string(op) << " width " << width;
      }
    }
  }
}

TEST(Reduce, HalvesOfEveryKindRoundAsAlone) {
  Bytes every(0x10000 * 2);
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) put(&every[bits * 2], static_cast<std::uint16_t>(bits));
  const std::byte* pointers[] = {every.data()};
  for (int width = 0; width <= detail::widest_reduce(); ++width) {
    Bytes found(every.size());
    for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
      detail::reduce_function(type, ReduceOp::sum, width)(pointers, 1, found.data(), 0x10000);
      for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const double before = widen(type, &every[bits * 2]);
        const double after = widen(type, &found[bits * 2]);
        ASSERT_TRUE(std::isnan(before) ? std::isnan(after) : before == after) << bits << " width " << width;
      }
    }
    // Sums of neighbouring numbers must be rounded; compares the scalar conversion with the vectors.
    Bytes other(every.rbegin(), every.rend());
    const std::byte* pair[] = {every.data(), other.data()};
    detail::reduce_function(ElementType::float16, ReduceOp::sum, width)(pair, 2, found.data(), 0x10000);
    for (std::size_t at = 0; at < found.size(); at += 2) {
      const float sum = to_float(get<Float16>(&every[at])) + to_float(get<Float16>(&other[at]));
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(widen(ElementType::float16, &found[at])));
      } else {
        ASSERT_EQ(get<std::uint16_t>(&found[at]), to_float16(sum).bits);
      }
    }
  }
}

TEST(Reduce, NanStaysNan) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : ops) {
    for (int who = 0; who < 3; ++who) {
      double values[3] = {1, 2, 3};
      values[who] = nan;
      const std::byte* pointers[3];
      for (int i = 0; i < 3; ++i) pointers[i] = reinterpret_cast<const std::byte*>(&values[i]);
      double result = 0;
      detail::reduce_function(ElementType::float64, op)(pointers, 3, reinterpret_cast<std::byte*>(&result), 1);
      EXPECT_TRUE(std::isnan(result)) << to_string(op) << " " << who;
    }
  }
}

// The same bits in every loop, whether a number is in a vector or in the rest behind it.
TEST(Reduce, MinimaAndMaximaOfNumbersOfAllKinds) {
  for (const ElementType type : floating_types) {
    const SpecialPairs pairs(type);
    const auto size = static_cast<std::size_t>(bytes_of(type));
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      for (int width = 0; width <= detail::widest_reduce(); ++width) {
        const detail::ReduceFunction reduce = detail::reduce_function(type, op, width);
        Bytes found(pairs.first.size());
        for (std::size_t first = 0; first < 70; first += 69) {  // the second time with other places in vectors
          const std::byte* pointers[] = {&pairs.first[first * size], &pairs.second[first * size]};
          reduce(pointers, 2, &found[first * size], static_cast<std::size_t>(pairs.count) - first);
          SCOPED_TRACE(width);
          expect_extremes(type, op == ReduceOp::min, pairs, found);
        }
        for (std::size_t at = 0; at < found.size(); at += size) {
          const std::byte* pointers[] = {&pairs.first[at], &pairs.second[at]};
          reduce(pointers, 2, &found[at], 1);
        }
        expect_extremes(type, op == ReduceOp::min, pairs, found);
      }
    }
  }
}

}  // namespace
}  // namespace onehop::collectives
