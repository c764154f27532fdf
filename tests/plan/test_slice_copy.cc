// Unpacking into elements that are there already: minima and maxima of numbers of all kinds, sums that wrap round.
#include "src/plan/copy/slice_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/support/reductions.h"

namespace onehop::detail {
namespace {

using collectives::testing::Bytes;
using collectives::testing::SpecialPairs;

// Combines what arrives with the numbers of an array, which lie in one piece or apart.
Bytes combined(Bytes array, const Bytes& arrives, Combine combine, ElementType type, std::int64_t stride) {
  const std::int64_t size = bytes_of(type);
  const std::int64_t elements = static_cast<std::int64_t>(array.size()) / size;
  Bytes spread(static_cast<std::size_t>(elements * stride * size));
  std::deque<CopyShape> shapes;
  const CopyStep step = make_step(Slice::box(0, {&elements, 1}, {&stride, 1}), spread.data(), size, shapes);
  unpack(step, array.data());
  unpack(step, arrives.data(), combine, type);
  pack(step, array.data());
  return array;
}

TEST(SliceCopy, MinimaAndMaximaOfNumbersOfAllKinds) {
  for (const ElementType type : collectives::testing::floating_types) {
    const SpecialPairs pairs(type);
    for (const std::int64_t stride : {1, 3}) {
      for (const Combine combine : {Combine::min, Combine::max}) {
        expect_extremes(type, combine == Combine::min, pairs,
                        combined(pairs.first, pairs.second, combine, type, stride));
      }
    }
  }
}

template <class T>
void expect_integers(ElementType type) {
  constexpr T most = std::numeric_limits<T>::max();
  constexpr T least = std::numeric_limits<T>::min();
  const std::vector<T> there = {most, least, 5, -7};
  const std::vector<T> comes = {1, -1, -6, 3};
  const auto result = [&](Combine combine) {
    const auto bytes = [](const std::vector<T>& numbers) {
      const auto span = std::as_bytes(std::span(numbers));
      return Bytes(span.begin(), span.end());
    };
    const Bytes found = combined(bytes(there), bytes(comes), combine, type, 1);
    std::vector<T> numbers(there.size());
    std::memcpy(numbers.data(), found.data(), found.size());
    return numbers;
  };
  EXPECT_EQ(result(Combine::add), (std::vector<T>{least, most, -1, -4}));
  EXPECT_EQ(result(Combine::prod), (std::vector<T>{most, least, -30, -21}));
  EXPECT_EQ(result(Combine::min), (std::vector<T>{1, least, -6, -7}));
  EXPECT_EQ(result(Combine::max), (std::vector<T>{most, -1, 5, 3}));
}

TEST(SliceCopy, IntegersWrapRound) {
  expect_integers<std::int32_t>(ElementType::int32);
  expect_integers<std::int64_t>(ElementType::int64);
}

}  // namespace
}  // namespace onehop::detail
