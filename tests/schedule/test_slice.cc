#include "onehop/slice.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "onehop/error.h"
#include "tests/support/naive_execute.h"
#include "tests/support/thrown.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

using Numbers = std::vector<std::int64_t>;

// The elements that a box visits, directly from its definition.
Numbers expand(std::int64_t offset, const Numbers& extents, const Numbers& strides, std::size_t d = 0) {
  if (d == extents.size()) return {offset};
  Numbers all;
  for (std::int64_t i = 0; i < extents[d]; ++i) {
    const Numbers inner = expand(offset + i * strides[d], extents, strides, d + 1);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

Numbers from_runs(const Slice& slice) {
  Numbers all;
  slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
    EXPECT_GT(count, 0);
    if (!all.empty()) {
      EXPECT_NE(begin, all.back() + 1) << "runs are maximal";
    }
    for (std::int64_t i = 0; i < count; ++i) all.push_back(begin + i);
  });
  return all;
}

std::int64_t runs_in(const Numbers& elements) {
  std::int64_t runs = elements.empty() ? 0 : 1;
  for (std::size_t i = 1; i < elements.size(); ++i) runs += elements[i] != elements[i - 1] + 1;
  return runs;
}

void expect_visits(const Slice& slice, const Numbers& elements) {
  ASSERT_EQ(slice.elements(), static_cast<std::int64_t>(elements.size()));
  ASSERT_EQ(testing::elements_of(slice), elements);
  ASSERT_EQ(from_runs(slice), elements);
  ASSERT_EQ(slice.pieces(), runs_in(elements));
  if (elements.empty()) {
    ASSERT_EQ(slice.bounds(), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  } else {
    const auto [least, most] = std::ranges::minmax(elements);
    ASSERT_EQ(slice.bounds(), (std::pair<std::int64_t, std::int64_t>{least, most + 1}));
  }
}

void expect_cuts(const Slice& slice, std::int64_t first, std::int64_t last) {
  const Numbers all = testing::elements_of(slice);
  const std::vector<Slice> parts = slice.cut(first, last);
  Numbers joined;
  for (const Slice& part : parts) {
    ASSERT_GT(part.elements(), 0);
    const Numbers elements = testing::elements_of(part);
    joined.insert(joined.end(), elements.begin(), elements.end());
  }
  ASSERT_EQ(joined, Numbers(all.begin() + first, all.begin() + last)) << "[" << first << ", " << last << ")";
  ASSERT_LE(parts.size(), static_cast<std::size_t>(slice.is_list() ? 1 : std::max(1, 2 * slice.dims() - 1)));
}

struct RandomBox {
  std::int64_t offset = 0;
  Numbers extents;
  Numbers strides;
};

// Small extents and strides that often interleave, join or go backwards.
RandomBox random_box(std::mt19937& random) {
  RandomBox box;
  const auto dims = random() % 6;
  std::int64_t run = 1;
  std::int64_t lowest = 0;
  for (std::size_t d = 0; d < dims; ++d) {
    const auto extent = static_cast<std::int64_t>(random() % 4 + (random() % 30 != 0));
    std::int64_t stride = random() % 2 == 0 ? run : static_cast<std::int64_t>(random() % 25) - 6;
    box.extents.insert(box.extents.begin(), extent);
    box.strides.insert(box.strides.begin(), stride);
    if (extent > 1 && stride < 0) lowest += stride * (extent - 1);
    run *= std::max<std::int64_t>(extent, 1);
  }
  box.offset = static_cast<std::int64_t>(random() % 20) - lowest;
  return box;
}

TEST(Slice, RandomBoxesVisitWhatTheyShould) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const RandomBox box = random_box(random);
    SCOPED_TRACE(::testing::PrintToString(box.offset) + " " + ::testing::PrintToString(box.extents) + " " +
                 ::testing::PrintToString(box.strides));
    const Slice slice = Slice::box(box.offset, box.extents, box.strides);
    expect_visits(slice, expand(box.offset, box.extents, box.strides));
    if (HasFatalFailure()) return;
  }
}

TEST(Slice, RandomCutsKeepTheOrder) {
  std::mt19937 random(8);
  for (int i = 0; i < 1000; ++i) {
    const RandomBox box = random_box(random);
    const Slice slice = Slice::box(box.offset, box.extents, box.strides);
    SCOPED_TRACE(::testing::PrintToString(box.extents) + " " + ::testing::PrintToString(box.strides));
    for (int k = 0; k < 10; ++k) {
      const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(slice.elements() + 1));
      const auto more = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(slice.elements() - first + 1));
      expect_cuts(slice, first, first + more);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Slice, BoxesAreInTheirSimplestForm) {
  const auto form = [](const Slice& slice) {
    return std::tuple(slice.offset(), Numbers(slice.extents().begin(), slice.extents().end()),
                      Numbers(slice.strides().begin(), slice.strides().end()));
  };
  EXPECT_EQ(form(Slice::box(5, Numbers{2, 1, 3, 4}, Numbers{12, 99, 4, 1})), form(Slice::range(5, 24)));
  EXPECT_EQ(form(Slice::range(5, 24)), std::tuple(5, Numbers{24}, Numbers{1}));
  EXPECT_EQ(form(Slice::range(9, 1)), std::tuple(9, Numbers{}, Numbers{}));
  EXPECT_EQ(form(Slice::range(9, 0)), std::tuple(0, Numbers{}, Numbers{}));
  EXPECT_EQ(form(Slice::box(0, Numbers{3, 2, 2}, Numbers{8, 4, 2})), std::tuple(0, Numbers{12}, Numbers{2}));
  EXPECT_EQ(form(Slice::box(0, Numbers{3, 2, 2}, Numbers{9, 4, 2})), std::tuple(0, Numbers{3, 4}, Numbers{9, 2}));
  EXPECT_EQ(form(Slice::box(9, Numbers{2, 3}, Numbers{-3, -1})), std::tuple(9, Numbers{6}, Numbers{-1}));
}

TEST(Slice, SubarrayIsTheRegionOfACOrderedArray) {
  const Slice slice = Slice::subarray(Numbers{4, 5, 6}, Numbers{1, 2, 3}, Numbers{2, 2, 3});
  Numbers expected;
  for (std::int64_t i = 1; i < 3; ++i) {
    for (std::int64_t j = 2; j < 4; ++j) {
      for (std::int64_t k = 3; k < 6; ++k) expected.push_back((i * 5 + j) * 6 + k);
    }
  }
  expect_visits(slice, expected);
  EXPECT_EQ(Slice::subarray(Numbers{4, 5, 6}, Numbers{1, 0, 0}, Numbers{2, 5, 6}), Slice::range(30, 60));
  EXPECT_EQ(Slice::subarray(Numbers{4, 0}, Numbers{4, 0}, Numbers{0, 0}).elements(), 0);
  EXPECT_EQ(Slice::subarray({}, {}, {}), Slice::range(0, 1)) << "a single number is an array of no dimensions";
}

TEST(Slice, Lists) {
  const Slice slice = Slice::list({4, 5, 6, 2, 3, 3, 9});
  expect_visits(slice, {4, 5, 6, 2, 3, 3, 9});
  EXPECT_EQ(slice.pieces(), 4);
  for (std::int64_t first = 0; first <= 7; ++first) {
    for (std::int64_t last = first; last <= 7; ++last) expect_cuts(slice, first, last);
  }
  expect_visits(Slice::list({}), {});
}

TEST(Slice, EqualSlicesVisitTheSameInTheSameOrder) {
  EXPECT_EQ(Slice::list({7, 8, 9}), Slice::range(7, 3));
  EXPECT_EQ(Slice::box(2, Numbers{2, 2}, Numbers{5, -1}), Slice::list({2, 1, 7, 6}));
  EXPECT_NE(Slice::list({7, 9, 8}), Slice::range(7, 3));
  EXPECT_NE(Slice::list({7, 8, 9}), Slice::list({7, 8}));
  EXPECT_NE(Slice::range(7, 3), Slice::range(6, 3));
  EXPECT_NE(Slice::box(0, Numbers{2, 3}, Numbers{10, 1}), Slice::box(0, Numbers{3, 2}, Numbers{10, 1}));
  EXPECT_EQ(Slice(), Slice::list({}));
  EXPECT_EQ(Slice(), Slice::box(3, Numbers{4, 0}, Numbers{1, 1}));
}

TEST(Slice, SizesBeyond2To31) {
  const std::int64_t large = two_to(40);
  const Slice slice = Slice::box(large, Numbers{large, 2}, Numbers{two_to(20), 1});
  EXPECT_EQ(slice.elements(), 2 * large);
  EXPECT_EQ(slice.pieces(), large);
  EXPECT_EQ(slice.bounds().second, large + (large - 1) * two_to(20) + 2);
  const auto parts = slice.cut(1, 2 * large - 1);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].elements(), 2 * large - 4);
}

template <class Call>
void expect_bad(Call&& call, const std::string& message) {
  testing::expect_says<BadInput>([&] { (void)call(); }, message);
}

TEST(Slice, BadInputSaysWhatWasExpectedAndFound) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const Numbers seventeen(17, 1);
  expect_bad([] { return Slice::range(0, -1); }, "expected extents of 0 or more, found -1 in dimension 0");
  expect_bad([] { return Slice::range(-1, 2); }, "expected element numbers of 0 or more, found -1");
  expect_bad([] { return Slice::box(3, Numbers{5}, Numbers{-1}); }, "found -1 as the smallest");
  expect_bad([] { return Slice::box(0, Numbers{2, 2}, Numbers{1}); }, "of equal length, found 2 and 1");
  expect_bad([&] { return Slice::box(0, seventeen, seventeen); }, "at most 16 dimensions, found 17");
  expect_bad([&] { return Slice::box(0, Numbers{huge, 3}, Numbers{0, 0}); }, "below 2^63");
  expect_bad([&] { return Slice::box(0, Numbers{3}, Numbers{huge}); }, "below 2^63");
  expect_bad([&] { return Slice::range(huge, 1); }, "below 2^63");
  expect_bad([&] { return Slice::range(huge - 5, 10); }, "below 2^63");
  expect_bad([] { return Slice::list({1, -7}); }, "found -7 at index 1");
  expect_bad([&] { return Slice::list({huge}); }, "at index 0");
  expect_bad([] { return Slice::subarray(Numbers{4, 4}, Numbers{0, 3}, Numbers{4, 2}); },
             "found start 3 and extent 2 in dimension 1, which has 4 elements");
  expect_bad([] { return Slice::subarray(Numbers{4}, Numbers{-1}, Numbers{2}); }, "found start -1");
  expect_bad([] { return Slice::subarray(Numbers{4}, Numbers{0, 0}, Numbers{2}); }, "shape and start");
  expect_bad([] { return Slice::range(0, 4).cut(1, 5); }, "inside [0, 4), found [1, 5)");
  expect_bad([] { return Slice::range(0, 4).cut(3, 2); }, "found [3, 2)");
  expect_bad([] { return Slice::list({1, 2}).cut(-1, 1); }, "found [-1, 1)");
}

}  // namespace
}  // namespace onehop
