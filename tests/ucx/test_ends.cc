// How a receiver over UCX puts fragments together from parts that overtake each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "src/ucx/ends.h"

namespace onehop::detail::ucx {
namespace {

constexpr std::int64_t length = 100;

Part part(std::uint64_t use, std::int64_t number, std::uint64_t chunks = 0) {
  return {{0, 0}, use, number * length, chunks};
}

// Notes which bytes are copied, and that none is copied twice in a use.
class Copied {
 public:
  std::uint64_t add(const Part& part, std::int64_t bytes) {
    return filling_.add(part, bytes, [&](const Filling::Range& fresh) {
      if (part.use != use_) copied_.clear();
      use_ = part.use;
      for (std::int64_t byte = fresh.first; byte < fresh.last; ++byte) {
        EXPECT_TRUE(byte >= part.at && byte < part.at + bytes) << byte;
        EXPECT_TRUE(copied_.insert(byte).second) << byte;
      }
    });
  }
  [[nodiscard]] std::size_t bytes() const { return copied_.size(); }

 private:
  Filling filling_;
  std::uint64_t use_ = 0;
  std::set<std::int64_t> copied_;
};

TEST(UcxFilling, CountsChunksInOrder) {
  Copied filling;
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 1);
  EXPECT_EQ(filling.add(part(1, 1), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 2), length), 2);
  EXPECT_EQ(filling.add(part(1, 3, whole), 30), whole);
  EXPECT_EQ(filling.add(part(5, 0, whole), length), whole);  // the next use of the slot
}

// Part 2 arrives third, when as many bytes are there as should come before it, but not those: part 1 is missing.
TEST(UcxFilling, CountsNoChunkBehindAMissingPart) {
  Copied filling;
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 1);
  EXPECT_EQ(filling.add(part(1, 3, whole), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 2), length), 0);
  EXPECT_EQ(filling.add(part(1, 1), length), whole);
}

TEST(UcxFilling, CountsChunksOnceWhatWasMissingHasArrived) {
  Copied filling;
  EXPECT_EQ(filling.add(part(1, 1, 2), length), 0);
  EXPECT_EQ(filling.add(part(1, 4, whole), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 3), length), 0);
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 3);
  EXPECT_EQ(filling.add(part(1, 3, 4), length), whole);
  EXPECT_EQ(filling.add(part(2, 1, 2), length), 0);  // nothing is left of the use before
  EXPECT_EQ(filling.add(part(2, 0, 1), length), 2);
}

TEST(UcxFilling, TakesTheLastPartFirst) {
  Copied filling;
  EXPECT_EQ(filling.add(part(2, 1, whole), 7), 0);
  EXPECT_EQ(filling.add(part(2, 0), length), whole);
}

TEST(UcxFilling, TakesEmptyMessages) {
  Copied filling;
  EXPECT_EQ(filling.add(part(1, 0, whole), 0), whole);
  EXPECT_EQ(filling.add(part(2, 0, whole), 0), whole);
}

TEST(UcxFilling, DropsWhatItHas) {
  Copied filling;
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 1);
  EXPECT_EQ(filling.add(part(1, 1, 2), length), 2);
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 0);  // the first part again: the flag does not go back
  EXPECT_EQ(filling.add(part(1, 1, whole), length + 50), whole);
  EXPECT_EQ(filling.bytes(), 250);
  EXPECT_EQ(filling.add(part(1, 1, whole), length + 50), 0);  // and all of it again
  EXPECT_EQ(filling.add(part(5, 0, whole), 0), whole);        // an empty message
  EXPECT_EQ(filling.add(part(5, 0, whole), 0), 0);
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 0);  // of an earlier use
}

// A fragment arrives several times, cut in other ways and shuffled. Every byte is copied once, the whole is told once,
// and chunks only grow and never run ahead of the bytes.
TEST(UcxFilling, PutsDifferentCutsTogether) {
  std::mt19937 random(7);
  for (std::uint64_t use = 1; use <= 300; ++use) {
    const std::int64_t all = 1 + static_cast<std::int64_t>(random() % 200);
    std::vector<std::pair<Part, std::int64_t>> parts;
    for (int copy = 0; copy < 3; ++copy) {
      for (std::int64_t at = 0; at < all;) {
        const std::int64_t next = std::min(all, at + 1 + static_cast<std::int64_t>(random() % 60));
        // A chunk is 10 bytes.
        const auto chunks = static_cast<std::uint64_t>(next / 10);
        parts.emplace_back(Part{{0, 0}, use, at, next == all ? whole : chunks}, next - at);
        at = next;
      }
    }
    std::ranges::shuffle(parts, random);
    Copied filling;
    std::set<std::int64_t> arrived;
    std::uint64_t before = 0;
    for (const auto& [one, bytes] : parts) {
      for (std::int64_t byte = one.at; byte < one.at + bytes; ++byte) arrived.insert(byte);
      std::int64_t prefix = 0;
      while (arrived.contains(prefix)) ++prefix;
      const std::uint64_t chunks = filling.add(one, bytes);
      EXPECT_EQ(filling.bytes(), arrived.size());
      if (prefix == all) {
        EXPECT_EQ(chunks, before == whole ? 0 : whole);
        before = whole;
      } else if (chunks != 0) {
        EXPECT_GT(chunks, before);
        EXPECT_LE(chunks, static_cast<std::uint64_t>(prefix / 10));
        before = chunks;
      }
    }
  }
}

}  // namespace
}  // namespace onehop::detail::ucx
