// Collective operations on arrays of all types of numbers, compared with sums over the sources of all ranks, which
// every rank knows.
#include "onehop/collectives/array_collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "onehop/error.h"
#include "tests/support/ranks.h"

namespace onehop::collectives {
namespace {

using onehop::testing::on_threads;
using Lengths = std::vector<std::int64_t>;

constexpr std::array ops = {ArrayOp::sum,         ArrayOp::prod,        ArrayOp::min,         ArrayOp::max,
                            ArrayOp::logical_and, ArrayOp::logical_or,  ArrayOp::logical_xor, ArrayOp::bitwise_and,
                            ArrayOp::bitwise_or,  ArrayOp::bitwise_xor, ArrayOp::mean};

template <class T>
constexpr bool is_complex = !std::is_arithmetic_v<T>;

template <class T>
bool exists(ArrayOp op) {
  if (op >= ArrayOp::bitwise_and && op <= ArrayOp::bitwise_xor) return std::is_integral_v<T>;
  if (op == ArrayOp::min || op == ArrayOp::max) return !is_complex<T>;
  return op != ArrayOp::mean || !std::is_integral_v<T>;
}

// Small whole numbers, zero among them, whose sums and products are exact in every type of floating-point numbers.
template <class T>
T source(int rank, std::size_t i) {
  const int number = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) - 2;
  if constexpr (is_complex<T>) {
    return {static_cast<typename T::value_type>(number), static_cast<typename T::value_type>(rank % 2)};
  } else {
    return static_cast<T>(number);
  }
}

template <class T>
T combined(ArrayOp op, T a, T b) {
  const bool x = a != T(0);
  const bool y = b != T(0);
  if (op == ArrayOp::sum || op == ArrayOp::mean) return static_cast<T>(a + b);
  if (op == ArrayOp::prod) return static_cast<T>(a * b);
  if (op == ArrayOp::logical_and) return static_cast<T>(static_cast<int>(x && y));
  if (op == ArrayOp::logical_or) return static_cast<T>(static_cast<int>(x || y));
  if (op == ArrayOp::logical_xor) return static_cast<T>(static_cast<int>(x != y));
  if constexpr (!is_complex<T>) {
    if (op == ArrayOp::min) return std::min(a, b);
    if (op == ArrayOp::max) return std::max(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ArrayOp::bitwise_and) return static_cast<T>(a & b);
    if (op == ArrayOp::bitwise_or) return static_cast<T>(a | b);
    if (op == ArrayOp::bitwise_xor) return static_cast<T>(a ^ b);
  }
  return a;
}

// The combination of ranks 0 to `last`.
template <class T>
T wanted(ArrayOp op, int last, std::size_t i) {
  T total = source<T>(0, i);
  const bool logical = op >= ArrayOp::logical_and && op <= ArrayOp::logical_xor;
  if (logical) total = static_cast<T>(static_cast<int>(total != T(0)));
  for (int rank = 1; rank <= last; ++rank) total = combined(op, total, source<T>(rank, i));
  if constexpr (is_complex<T>) {
    if (op == ArrayOp::mean) total /= static_cast<typename T::value_type>(last + 1);
  } else {
    if (op == ArrayOp::mean) total = static_cast<T>(total / static_cast<T>(last + 1));
  }
  return total;
}

template <class T>
std::vector<T> sources(int rank, std::size_t elements) {
  std::vector<T> made(elements);
  for (std::size_t i = 0; i < elements; ++i) made[i] = source<T>(rank, i);
  return made;
}

template <class T>
auto in(const std::vector<T>& array) {
  return std::as_bytes(std::span(array));
}
template <class T>
auto out(std::vector<T>& array) {
  return std::as_writable_bytes(std::span(array));
}

template <class T>
void check_reductions(ArrayCollectives& arrays, NumberType type, ArrayOp op, std::size_t elements) {
  const Group& group = arrays.collectives().group();
  const int last = group.size() - 1;
  const auto mine = sources<T>(group.rank(), elements);
  std::vector<T> result(elements);
  const std::string what = std::string(to_string(op)) + " of " + std::string(to_string(type));
  arrays.allreduce(type, op, in(mine), out(result));
  for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(result[i], wanted<T>(op, last, i)) << what << " at " << i;
  result = mine;
  arrays.reduce(type, op, in(result), out(result), last / 2);
  for (std::size_t i = 0; i < elements; ++i)
    ASSERT_EQ(result[i], group.rank() == last / 2 ? wanted<T>(op, last, i) : mine[i]) << "reduce, " << what;
  arrays.scan(type, op, in(mine), out(result));
  for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(result[i], wanted<T>(op, group.rank(), i)) << "scan, " << what;
  if (op != ArrayOp::min && op != ArrayOp::max && op != ArrayOp::mean) {
    result = mine;
    arrays.scan(type, op, in(result), out(result), true);
    for (std::size_t i = 0; i < elements && group.rank() > 0; ++i)
      ASSERT_EQ(result[i], wanted<T>(op, group.rank() - 1, i)) << "exclusive scan, " << what;
    // The neutral element changes no number.
    const bool logical = op >= ArrayOp::logical_and && op <= ArrayOp::logical_xor;
    for (std::size_t i = 0; i < elements && group.rank() == 0 && !logical; ++i)
      ASSERT_EQ(combined(op, result[i], mine[i]), mine[i]) << "neutral element, " << what;
  }
  Lengths lengths;
  for (int r = 0; r <= last; ++r) lengths.push_back((r * 2 + 1) % 5);
  const auto before = std::accumulate(lengths.begin(), lengths.begin() + group.rank(), std::int64_t{0});
  const auto all =
      sources<T>(group.rank(), static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), 0)));
  std::vector<T> block(static_cast<std::size_t>(lengths[static_cast<std::size_t>(group.rank())]));
  arrays.reduce_scatter(type, op, lengths, in(all), out(block));
  for (std::size_t i = 0; i < block.size(); ++i)
    ASSERT_EQ(block[i], wanted<T>(op, last, static_cast<std::size_t>(before) + i)) << "reduce_scatter, " << what;
}

template <class T>
void check_type(ArrayCollectives& arrays, NumberType type) {
  for (const ArrayOp op : ops) {
    if (exists<T>(op)) {
      check_reductions<T>(arrays, type, op, 11);
    } else {
      std::vector<T> array(3);
      EXPECT_THROW(arrays.allreduce(type, op, in(array), out(array)), BadInput);
    }
  }
}

TEST(ArrayCollectives, EveryTypeAndOperator) {
  for (const int ranks : {1, 2, 3, 4}) {
    on_threads(ranks, [&](const Group& group) {
      ArrayCollectives arrays(group);
      check_type<std::int8_t>(arrays, NumberType::int8);
      check_type<std::int16_t>(arrays, NumberType::int16);
      check_type<std::int32_t>(arrays, NumberType::int32);
      check_type<std::int64_t>(arrays, NumberType::int64);
      check_type<std::uint8_t>(arrays, NumberType::uint8);
      check_type<std::uint16_t>(arrays, NumberType::uint16);
      check_type<std::uint32_t>(arrays, NumberType::uint32);
      check_type<std::uint64_t>(arrays, NumberType::uint64);
      check_type<float>(arrays, NumberType::float32);
      check_type<double>(arrays, NumberType::float64);
      check_type<std::complex<float>>(arrays, NumberType::complex64);
      check_type<std::complex<double>>(arrays, NumberType::complex128);
    });
  }
}

TEST(ArrayCollectives, SeveralPiecesAndNone) {
  on_threads(3, [&](const Group& group) {
    ArrayCollectives arrays(group);
    check_reductions<std::int16_t>(arrays, NumberType::int16, ArrayOp::sum, (1U << 19U) + 5);
    check_reductions<std::int16_t>(arrays, NumberType::int16, ArrayOp::sum, 0);
    const Lengths lengths{400'000, 3, 0};  // blocks of several pieces and of none
    const auto mine = sources<std::int8_t>(group.rank(), 400'003);
    std::vector<std::int8_t> block(static_cast<std::size_t>(lengths[static_cast<std::size_t>(group.rank())]));
    arrays.reduce_scatter(NumberType::int8, ArrayOp::max, lengths, in(mine), out(block));
    const std::size_t before = group.rank() == 0 ? 0 : 400'000;
    for (std::size_t i = 0; i < block.size(); ++i)
      ASSERT_EQ(block[i], wanted<std::int8_t>(ArrayOp::max, 2, before + i));
  });
}

TEST(ArrayCollectives, ExtremesOfNotANumber) {
  on_threads(3, [&](const Group& group) {
    ArrayCollectives arrays(group);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> array(3, 1.0 + group.rank());
    array[static_cast<std::size_t>(group.rank())] = nan;
    arrays.scan(NumberType::float64, ArrayOp::min, in(array), out(array));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(array[i]), static_cast<int>(i) <= group.rank()) << i;
  });
}

// Signaling NaNs and zeros of both signs: reduce and scan give the bits of allreduce.
TEST(ArrayCollectives, ExtremesHaveTheBitsOfAllreduce) {
  for (const int ranks : {1, 2, 3}) {
    on_threads(ranks, [&](const Group& group) {
      ArrayCollectives arrays(group);
      const auto rank = static_cast<std::uint64_t>(group.rank());
      constexpr std::uint64_t signaling = 0x7FF0'0000'0000'0001;
      constexpr std::uint64_t minus_zero = std::uint64_t{1} << 63U;
      std::vector<std::uint64_t> mine{rank % 2 != 0 ? minus_zero : 0, rank % 2 == 0 ? minus_zero : 0};
      for (std::uint64_t r = 0; r < 3; ++r) mine.push_back(r == rank ? signaling + rank : 0);
      for (const ArrayOp op : {ArrayOp::min, ArrayOp::max}) {
        std::vector<std::uint64_t> all(mine.size());
        std::vector<std::uint64_t> at_root(mine.size());
        std::vector<std::uint64_t> up_to(mine.size());
        arrays.allreduce(NumberType::float64, op, in(mine), out(all));
        arrays.reduce(NumberType::float64, op, in(mine), out(at_root), 0);
        arrays.scan(NumberType::float64, op, in(mine), out(up_to));
        EXPECT_TRUE(group.rank() != 0 || at_root == all);
        EXPECT_TRUE(group.rank() != ranks - 1 || up_to == all);
      }
    });
  }
}

TEST(ArrayCollectives, Movement) {
  for (const int ranks : {1, 2, 4}) {
    on_threads(ranks, [&](const Group& group) {
      ArrayCollectives arrays(group);
      const int rank = group.rank();
      const auto at = static_cast<std::size_t>(rank);
      Lengths lengths;
      for (int r = 0; r < ranks; ++r) lengths.push_back(r + 1);
      std::vector<int> wanted;
      for (int r = 0; r < ranks; ++r) wanted.insert(wanted.end(), static_cast<std::size_t>(r) + 1, r);
      const std::vector<int> mine(at + 1, rank);
      std::vector<int> all(wanted.size(), -1);
      arrays.allgather(NumberType::int32, lengths, in(mine), out(all));
      EXPECT_EQ(all, wanted);
      const int root = ranks - 1;
      all.assign(rank == root ? wanted.size() : 0, -1);
      arrays.gather(NumberType::int32, lengths, in(mine), out(all), root);
      EXPECT_EQ(all, rank == root ? wanted : std::vector<int>());
      std::vector<int> back(at + 1, -1);
      arrays.scatter(NumberType::int32, lengths, in(all), out(back), root);
      EXPECT_EQ(back, mine);
      std::vector<std::complex<double>> values(5, {1.0 * rank, 2.0});
      arrays.broadcast(NumberType::complex128, out(values), root);
      EXPECT_EQ(values, std::vector<std::complex<double>>(5, {1.0 * root, 2.0}));
      // Rank a sends b + 1 times the number 10 a + b to rank b.
      std::vector<int> sent;
      std::vector<int> wanted_blocks;
      for (int other = 0; other < ranks; ++other) {
        sent.insert(sent.end(), static_cast<std::size_t>(other) + 1, 10 * rank + other);
        wanted_blocks.insert(wanted_blocks.end(), at + 1, 10 * other + rank);
      }
      std::vector<int> blocks(wanted_blocks.size());
      arrays.alltoall(NumberType::int32, lengths, in(sent), Lengths(static_cast<std::size_t>(ranks), rank + 1),
                      out(blocks));
      EXPECT_EQ(blocks, wanted_blocks);
    });
  }
}

TEST(ArrayCollectives, WrongCalls) {
  on_threads(2, [&](const Group& group) {
    ArrayCollectives arrays(group);
    std::vector<std::int16_t> array(4, 1);
    std::vector<std::int16_t> other(3);
    const NumberType type = NumberType::int16;
    EXPECT_THROW(arrays.broadcast(type, out(array), 2), BadInput);
    EXPECT_THROW(arrays.reduce(type, ArrayOp::sum, in(array), out(array), -1), BadInput);
    EXPECT_THROW(arrays.allreduce(type, ArrayOp::sum, in(array), out(other)), BadInput);
    EXPECT_THROW(arrays.scan(type, ArrayOp::min, in(array), out(array), true), BadInput);
    EXPECT_THROW(arrays.allgather(type, Lengths{4}, in(array), out(array)), BadInput);
    EXPECT_THROW(arrays.reduce_scatter(type, ArrayOp::sum, Lengths{5, -1}, in(array), out(array)), BadInput);
    EXPECT_THROW(arrays.broadcast(NumberType::int32, out(other), 0), BadInput);  // 6 bytes
    // The ranks differ; what follows works again.
    const ArrayOp op = group.rank() == 0 ? ArrayOp::max : ArrayOp::min;
    EXPECT_THROW(arrays.allreduce(type, op, in(array), out(array)), Mismatch);
    EXPECT_THROW(arrays.reduce(type, ArrayOp::sum, in(array), out(array), group.rank()), Mismatch);
    EXPECT_THROW(arrays.scan(type, ArrayOp::sum, in(array), out(array), group.rank() == 0), Mismatch);
    std::vector<std::int16_t> mine(static_cast<std::size_t>(group.rank()) + 2);
    EXPECT_THROW(arrays.allreduce(type, ArrayOp::sum, in(mine), out(mine)), Mismatch);
    std::vector<std::int16_t> gathered(7);
    EXPECT_THROW(arrays.gather(type, Lengths{4, 3}, in(array), out(gathered), 0), Mismatch);
    arrays.allreduce(type, ArrayOp::sum, in(array), out(array));
    EXPECT_EQ(array, std::vector<std::int16_t>(4, 2));
  });
}

}  // namespace
}  // namespace onehop::collectives
