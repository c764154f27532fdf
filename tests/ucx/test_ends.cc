// How a receiver over UCX puts fragments together from parts that overtake each other.
#include <gtest/gtest.h>

#include "src/ucx/ends.h"

namespace onehop::detail::ucx {
namespace {

constexpr std::int64_t length = 100;

Part part(std::uint64_t use, std::int64_t number, std::uint64_t chunks = 0) {
  return {{0, 0}, use, number * length, chunks};
}

TEST(UcxFilling, CountsChunksInOrder) {
  Filling filling;
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 1);
  EXPECT_EQ(filling.add(part(1, 1), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 2), length), 2);
  EXPECT_EQ(filling.add(part(1, 3, whole), 30), whole);
  EXPECT_EQ(filling.add(part(5, 0, whole), length), whole);  // the next use of the slot
}

// Part 2 arrives third, when as many bytes are there as should come before it, but not those: part 1 is missing.
TEST(UcxFilling, CountsNoChunkBehindAMissingPart) {
  Filling filling;
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 1);
  EXPECT_EQ(filling.add(part(1, 3, whole), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 2), length), 0);
  EXPECT_EQ(filling.add(part(1, 1), length), whole);
}

TEST(UcxFilling, CountsChunksOnceWhatWasMissingHasArrived) {
  Filling filling;
  EXPECT_EQ(filling.add(part(1, 1, 2), length), 0);
  EXPECT_EQ(filling.add(part(1, 4, whole), length), 0);
  EXPECT_EQ(filling.add(part(1, 2, 3), length), 0);
  EXPECT_EQ(filling.add(part(1, 0, 1), length), 3);
  EXPECT_EQ(filling.add(part(1, 3, 4), length), whole);
  EXPECT_EQ(filling.add(part(2, 1, 2), length), 0);  // nothing is left of the use before
  EXPECT_EQ(filling.add(part(2, 0, 1), length), 2);
}

TEST(UcxFilling, TakesTheLastPartFirst) {
  Filling filling;
  EXPECT_EQ(filling.add(part(2, 1, whole), 7), 0);
  EXPECT_EQ(filling.add(part(2, 0), length), whole);
}

TEST(UcxFilling, TakesEmptyMessages) {
  Filling filling;
  EXPECT_EQ(filling.add(part(1, 0, whole), 0), whole);
  EXPECT_EQ(filling.add(part(2, 0, whole), 0), whole);
}

}  // namespace
}  // namespace onehop::detail::ucx
