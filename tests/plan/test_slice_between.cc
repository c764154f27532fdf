// Two copies in one loop, compared with the copies one after the other.
#include "src/plan/copy/slice_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <random>
#include <vector>

namespace onehop::detail {
namespace {

// Faces of an array of 6 x 9 rows of 20 elements: one column of the rows each.
class Faces {
 public:
  explicit Faces(std::int64_t element_bytes) : element_bytes_(element_bytes), array_(6 * 9 * 20 * bytes(1)) {
    std::mt19937 random(17);
    for (std::byte& one : array_) one = static_cast<std::byte>(random());
  }

  CopyStep column(std::int64_t at, std::int64_t rows = 9) {
    const std::vector<std::int64_t> extents = {6, rows, 1};
    const std::vector<std::int64_t> strides = {9 * 20, 20, 1};
    return make_step(Slice::box(at, extents, strides), array_.data(), element_bytes_, shapes_);
  }
  CopyStep row() { return make_step(Slice::range(0, 20), array_.data(), element_bytes_, shapes_); }
  [[nodiscard]] const std::vector<std::byte>& bytes_now() const { return array_; }

 private:
  [[nodiscard]] std::size_t bytes(std::size_t elements) const {
    return elements * static_cast<std::size_t>(element_bytes_);
  }

  std::int64_t element_bytes_;
  std::vector<std::byte> array_;
  std::deque<CopyShape> shapes_;
};

TEST(SlicePair, CopiesBoth) {
  for (const std::int64_t element_bytes : {4, 8, 16, 24, 32, 48}) {
    Faces pair(element_bytes);
    Faces one_by_one(element_bytes);
    const auto ghosts_and_sources = [](Faces& faces) {
      return std::vector<CopyStep>{faces.column(0), faces.column(18), faces.column(19), faces.column(1)};
    };
    const std::vector<CopyStep> steps = ghosts_and_sources(pair);
    ASSERT_TRUE(are_pair(steps[0], steps[1], steps[2], steps[3])) << element_bytes;
    copy_pair(steps[0], steps[1], steps[2], steps[3]);
    const std::vector<CopyStep> others = ghosts_and_sources(one_by_one);
    const std::vector<std::byte> before = one_by_one.bytes_now();
    copy_between(others[0], others[1]);
    copy_between(others[2], others[3]);
    EXPECT_NE(before, one_by_one.bytes_now());
    EXPECT_EQ(pair.bytes_now(), one_by_one.bytes_now()) << element_bytes;
  }
}

TEST(SlicePair, NeedsOneShapeAndShortRuns) {
  Faces faces(8);
  const CopyStep column = faces.column(0);
  const CopyStep other = faces.column(5);
  EXPECT_TRUE(are_pair(column, other, column, other));
  EXPECT_FALSE(are_pair(column, other, faces.column(7, 5), faces.column(9, 5)));
  EXPECT_FALSE(are_pair(column, other, faces.row(), faces.row()));
  Faces of_lines(64);
  EXPECT_FALSE(are_pair(of_lines.column(0), of_lines.column(1), of_lines.column(2), of_lines.column(3)));
  Faces odd(7);  // a length that the compiler does not know
  EXPECT_FALSE(are_pair(odd.column(0), odd.column(1), odd.column(2), odd.column(3)));
}

}  // namespace
}  // namespace onehop::detail
