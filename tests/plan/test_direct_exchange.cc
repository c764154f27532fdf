// The parts of exchanges in place: cycles of blocks, runs of elements within them, and whole lines of short runs.
#include "src/plan/direct/direct_exchange.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "src/group/group_state.h"
#include "src/plan/direct/line_exchange.h"
#include "src/plan/direct/run_exchange.h"
#include "src/schedule/bit_permutation.h"
#include "tests/support/random_permutation.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::random_permutation;
using testing::RandomPermutation;

TEST(DirectExchange, EveryCycleHasARankOnceAndAllItsRanksAgreeOnIt) {
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    const RandomPermutation one = random_permutation(random, 12, 4);
    const BitPermutation permutation{0, one.spec.local_bits, one.spec.permutation};
    const BitPermutation exchange = detail::steps_of(permutation).exchange;
    const auto same = [](const detail::Cycle& a, const detail::Cycle& b) {
      return std::ranges::equal(a, b,
                                [](const auto& x, const auto& y) { return x.rank == y.rank && x.first == y.first; });
    };
    for (int rank = 0; rank < one.ranks(); ++rank) {
      for (const detail::Cycle& cycle : detail::cycles_of(exchange, rank)) {
        for (const detail::CyclePlace& place : cycle) {
          EXPECT_EQ(std::ranges::count(cycle, place.rank, &detail::CyclePlace::rank), 1);
          const auto theirs = detail::cycles_of(exchange, place.rank);
          EXPECT_EQ(std::ranges::count_if(theirs, [&](const auto& other) { return same(cycle, other); }), 1);
        }
      }
    }
  }
}

TEST(DirectExchange, RunsAreTheElementsWithoutTheFixedBits) {
  for (const std::uint64_t fixed : {0U, 1U, 4U, 0x15U, 0x80U, 0xffU}) {
    const detail::Runs runs(8, fixed, 16);
    const auto length = static_cast<std::uint64_t>(runs.run_bytes() / 16);
    std::vector<std::uint64_t> found;
    std::uint64_t at = runs.first_of(0);
    for (std::uint64_t run = 0; run < runs.count(); ++run, at = runs.after(at)) {
      ASSERT_EQ(at, runs.first_of(run));
      for (std::uint64_t i = 0; i < length; ++i) found.push_back(at + i);
    }
    std::vector<std::uint64_t> expected;
    for (std::uint64_t x = 0; x < 256; ++x) {
      if ((x & fixed) == 0) expected.push_back(x);
    }
    EXPECT_EQ(found, expected);
  }
}

// All functions that exchange short runs, by whole lines or by parts of lines, give the same result.
TEST(DirectExchange, ShortRunsChangePlacesWhereverTheyLie) {
  std::mt19937 random(9);
  for (const std::int64_t element_bytes : {4, 8, 16, 32, 24}) {
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t fixed = 1 + random() % 63;
      const auto pattern = [&] { return random() & fixed; };
      const std::uint64_t first[2] = {pattern(), pattern()};
      const std::size_t shift = i % 3 == 0 ? 0 : random() % 9;
      const std::size_t size = 64 * static_cast<std::size_t>(element_bytes);
      std::vector<std::vector<std::byte>> memory(2, std::vector<std::byte>(size + 128));
      for (auto& one : memory) {
        for (std::byte& b : one) b = static_cast<std::byte>(random());
      }
      std::vector<std::byte*> places;
      std::size_t begin[2];
      for (std::size_t m = 0; m < 2; ++m) {
        begin[m] = -reinterpret_cast<std::uintptr_t>(memory[m].data()) % 64 + shift +
                   first[m] * static_cast<std::size_t>(element_bytes);
        places.push_back(memory[m].data() + begin[m]);
      }
      auto expected = memory;
      for (std::size_t x = 0; x < 64; ++x) {
        if ((x & fixed) != 0) continue;
        const std::size_t offset = x * static_cast<std::size_t>(element_bytes);
        for (std::size_t m = 0; m < 2; ++m) {
          std::memcpy(&expected[m][begin[m] + offset], &memory[1 - m][begin[1 - m] + offset],
                      static_cast<std::size_t>(element_bytes));
        }
      }
      const detail::Runs runs(6, fixed, element_bytes);
      detail::rotate(runs, places, 0, runs.count() / 2);
      detail::rotate(runs, places, runs.count() / 2, runs.count());
      ASSERT_EQ(memory, expected) << element_bytes << " bytes, fixed " << fixed << ", shift " << shift;
    }
  }
}

// All cycles of several ranks line by line, compared with one cycle after the other.
TEST(DirectExchange, CyclesThatShareLinesAreDoneTogether) {
  std::mt19937 random(10);
  int whole_lines = 0;
  for (int i = 0; i < 200; ++i) {
    RandomPermutation one = random_permutation(random, 9, 3);
    one.spec.element_bytes = std::int64_t{8} << random() % 3;
    const BitPermutation permutation{0, one.spec.local_bits, one.spec.permutation};
    const BitPermutation exchange = detail::steps_of(permutation).exchange;
    const detail::CycleGroup group = detail::connected_cycles(exchange, 0, one.spec.element_bytes);
    if (group.cycles.empty()) continue;
    const std::size_t size = static_cast<std::size_t>(one.spec.element_bytes) << one.spec.local_bits;
    struct alignas(64) Block {
      std::byte bytes[64];
    };
    std::vector<std::vector<Block>> memory(static_cast<std::size_t>(one.ranks()), std::vector<Block>(size / 64 + 2));
    for (auto& array : memory) {
      for (Block& block : array) {
        for (std::byte& b : block.bytes) b = static_cast<std::byte>(random());
      }
    }
    const std::size_t shift = i % 4 == 0 ? 8 : 0;
    const auto places_in = [&](std::vector<std::vector<Block>>& arrays) {
      std::vector<std::vector<std::byte*>> cycles;
      for (const detail::Cycle& cycle : group.cycles) {
        cycles.emplace_back();
        for (const auto& [rank, first] : cycle) {
          cycles.back().push_back(arrays[static_cast<std::size_t>(rank)][0].bytes + shift +
                                  first * static_cast<std::uint64_t>(one.spec.element_bytes));
        }
      }
      return cycles;
    };
    std::uint64_t moving = 0;
    for (int bit = 0; bit < one.spec.local_bits; ++bit) {
      if (exchange.to[static_cast<std::size_t>(bit)] != bit) moving |= std::uint64_t{1} << bit;
    }
    const detail::Runs runs(one.spec.local_bits, moving, one.spec.element_bytes);
    auto expected = memory;
    for (const auto& places : places_in(expected)) detail::rotate(runs, places, 0, runs.count());
    for (const bool portable : {false, true}) {
      auto found = memory;
      const detail::LineExchange lines(runs, places_in(found));
      if (lines.empty()) continue;
      ++whole_lines;
      const std::uint64_t middle = runs.count() / 2 / runs.in_line() * runs.in_line();
      const auto run = portable ? &detail::LineExchange::run_portable : &detail::LineExchange::run;
      (lines.*run)(runs, 0, middle);
      (lines.*run)(runs, middle, runs.count());
      for (std::size_t r = 0; r < memory.size(); ++r) {
        ASSERT_EQ(std::memcmp(found[r].data(), expected[r].data(), memory[r].size() * sizeof(Block)), 0)
            << "case " << i << ", rank " << r;
      }
    }
  }
  EXPECT_GT(whole_lines, 20);
}

// A rank that ends between two collective steps takes its memory with it. Whoever opens that memory next names the
// rank.
TEST(SharedArrays, NamesARankThatHasEnded) {
  const auto ended = testing::fork_ranks(2, [](const Group& group) {
    const SharedArray array = group.allocate(64);
    const std::span<std::byte> bytes = array.bytes();
    detail::SharedArrays arrays(*group.state(), {&bytes, 1}, true, 1);
    if (group.rank() == 1) _exit(0);
    while (group.state()->poll_peers(1).lost < 0) std::this_thread::yield();
    static_cast<void>(arrays.at(1, 0, 64));
  });
  EXPECT_EQ(ended[0].exit_code, 3);  // PeerLost
  EXPECT_NE(ended[0].message.find("rank 1"), std::string::npos) << ended[0].message;
  EXPECT_NE(ended[0].message.find("making a plan"), std::string::npos) << ended[0].message;
}

}  // namespace
}  // namespace onehop
