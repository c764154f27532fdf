// Shapes in 64 bits: distinguished, and restored where possible.
#include "collectives/header.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace onehop::collectives::detail {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t product(const Extents& extents) {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) n *= extent;
  return n;
}

TEST(Header, ShapesCanBeReadBack) {
  const auto text = [](const Extents& extents) { return shape_text(shape_word(extents), product(extents)); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({24}), "");
  EXPECT_EQ(text({4, 6}), " in shape (4, 6)");
  EXPECT_EQ(text({1, 1, 24}), " in shape (1, 1, 24)");
  EXPECT_EQ(text({1 << 30, 2}), " in shape (1073741824, 2)");
  EXPECT_EQ(text({2, 3, 4, 5, 6, 7, 8, 9}), " in shape (2, 3, 4, 5, 6, 7, 8, 9)");
}

TEST(Header, ShapesDiffer) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  const std::vector<Extents> shapes = {{24},
                                       {4, 6},
                                       {6, 4},
                                       {24, 1},
                                       {1, 24},
                                       {2, 2, 6},
                                       {2, 12},
                                       {0, 5},
                                       {5, 0},
                                       {0, 0},
                                       {4, 6, -1, 3},
                                       {4, 6, -1, 3, -1},
                                       {6, 4, -1, 3},
                                       {3, -1, 4, 6},
                                       {large, large, 2},
                                       {large, 2, large},
                                       Extents(9, 1),
                                       Extents(10, 1)};
  std::set<std::uint64_t> words;
  for (const Extents& shape : shapes) words.insert(shape_word(shape));
  EXPECT_EQ(words.size(), shapes.size());
}

TEST(Header, SaysWhatARankDoes) {
  const Header what{.kind = Header::Kind::allreduce,
                    .type = ElementType::float32,
                    .op = ReduceOp::max,
                    .codec = Codec::raw,
                    .algorithm = ReduceAlgorithm::two_shot,
                    .log2_chunk = 6,
                    .elements = 24,
                    .shape = shape_word(Extents{4, 6})};
  EXPECT_EQ(describe(what, what), "an all-reduce of 24 float32 in shape (4, 6) (max)");
  Header other = what;
  other.codec = Codec::q8;
  other.algorithm = ReduceAlgorithm::one_shot;
  EXPECT_EQ(describe(what, other), "an all-reduce of 24 float32 in shape (4, 6) (max, codec raw)");
  EXPECT_EQ(describe(other, what), "an all-reduce of 24 float32 in shape (4, 6) (max, codec q8)");
  other.codec = Codec::raw;
  EXPECT_EQ(describe(what, other),
            "an all-reduce of 24 float32 in shape (4, 6) (max, algorithm two_shot, chunks of at most 2^6 elements: do "
            "all ranks have the same tuning file?)");
}

std::string described(const Header& what) { return describe(what, what); }

TEST(Header, SaysWhatIsMoved) {
  const std::uint64_t shape = shape_word(Extents{4, 6});
  EXPECT_EQ(described({.kind = Header::Kind::allgather, .elements = 96}), "an all-gather of 96 bytes in all");
  EXPECT_EQ(
      described(
          {.kind = Header::Kind::broadcast, .type = ElementType::int32, .root = 3, .elements = 96, .shape = shape}),
      "a broadcast of 96 bytes of int32 in shape (4, ...) from rank 3");
}

}  // namespace
}  // namespace onehop::collectives::detail
