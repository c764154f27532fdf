// The radix sort agrees with a comparison sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "quantum/state/sorted_order.h"

namespace onehop::quantum {
namespace {

TEST(QuantumSortedOrder, AgreesWithComparing) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> numbers(round < 3 ? static_cast<std::size_t>(round) : random() % 500);
    const std::uint64_t mask = random() & random() & (random() >> (random() % 64));  // few bits: many are equal
    const std::uint64_t all = random();
    for (auto& number : numbers) number = (random() & mask) | (all & ~mask);
    std::vector<std::uint32_t> expected(numbers.size());
    std::iota(expected.begin(), expected.end(), 0U);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return numbers[a] < numbers[b]; });
    EXPECT_EQ(sorted_order(numbers), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace onehop::quantum
