// The geometry's tables against global coordinates; its halo schedules are verified and executed.
#include "onehop/lattice/geometry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "onehop/error.h"
#include "onehop/verify.h"
#include "tests/support/naive_execute.h"

namespace onehop::lattice {
namespace {

// Converts the number of a site in a rank's block to its number in the whole lattice.
std::int64_t global_number(const Geometry& geometry, int rank, std::int64_t site) {
  const auto origin = geometry.origin(rank);
  std::int64_t number = 0;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < origin.size(); ++d) {
    number += stride * (origin[d] + site % geometry.block()[d]);
    site /= geometry.block()[d];
    stride *= geometry.spec().extents[d];
  }
  return number;
}

std::int64_t beside(const Geometry& geometry, std::int64_t number, int direction, std::int64_t distance) {
  std::int64_t stride = 1;
  for (int d = 0; d < direction; ++d) stride *= geometry.spec().extents[static_cast<std::size_t>(d)];
  const std::int64_t extent = geometry.spec().extents[static_cast<std::size_t>(direction)];
  const std::int64_t at = number / stride % extent;
  return number + ((at + distance + extent) % extent - at) * stride;
}

void check(const GeometrySpec& spec) {
  const Geometry geometry(spec);
  const auto lanes = static_cast<std::size_t>(spec.lanes);
  const Schedule schedule = geometry.halo(static_cast<std::int64_t>(lanes * sizeof(std::int64_t)));
  EXPECT_TRUE(verify(schedule).empty());
  testing::Memory memory = testing::allocate(schedule, std::byte{0xff});
  const auto number = [&](int rank, std::int64_t vector, std::size_t lane) -> std::byte* {
    return memory[static_cast<std::size_t>(rank)][0].data() +
           (static_cast<std::size_t>(vector) * lanes + lane) * sizeof(std::int64_t);
  };
  for (int rank = 0; rank < geometry.ranks(); ++rank) {
    for (std::int64_t k = 0; k < geometry.vectors(); ++k) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t mine = global_number(geometry, rank, geometry.site(k, static_cast<int>(lane)));
        std::memcpy(number(rank, k, lane), &mine, sizeof mine);
      }
    }
  }
  testing::naive_execute(schedule, memory);
  for (int rank = 0; rank < geometry.ranks(); ++rank) {
    for (int distance = 1; distance <= spec.width; ++distance) {
      const auto table = geometry.neighbours(distance);
      std::size_t entry = 0;
      for (std::int64_t k = 0; k < geometry.vectors(); ++k) {
        for (int d = 0; d < geometry.dims(); ++d) {
          for (const Side side : {Side::below, Side::above}) {
            const Geometry::Neighbour& found = table[entry++];
            const auto source = geometry.lane_source(d, side);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
              const std::int64_t mine = global_number(geometry, rank, geometry.site(k, static_cast<int>(lane)));
              std::int64_t there = 0;
              const std::size_t from = found.rotated ? static_cast<std::size_t>(source[lane]) : lane;
              std::memcpy(&there, number(rank, found.vector, from), sizeof there);
              ASSERT_EQ(there, beside(geometry, mine, d, side == Side::below ? -distance : distance));
            }
          }
        }
      }
    }
  }
}

TEST(LatticeGeometry, NeighboursAreThoseOfTheLattice) {
  check({{8, 4, 4, 6}, {1, 1, 2, 1}, 2});
  check({{6, 6}, {2, 2}});
  check({{4, 4, 8, 12}, {1, 1, 1, 2}, 2, 3});
  check({{7, 3}, {1, 1}, 1, 1, 1});
  check({{4, 4, 4, 4}, {2, 2, 2, 2}});
}

TEST(LatticeGeometry, PartsOfARank) {
  const Geometry geometry({{8, 8, 8, 12}, {1, 1, 1, 3}, 8});
  const Schedule whole = geometry.halo(16);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(geometry.halo(16, ElementType::bytes, {}, rank), whole.part(rank));
}

TEST(LatticeGeometry, SaysWhatIsWrong) {
  EXPECT_THROW(Geometry({{8, 8}, {3, 1}}), BadInput);
  EXPECT_THROW(Geometry({{8, 7}, {1, 1}}), BadInput);
  EXPECT_THROW(Geometry({{8, 8}, {8, 1}}), BadInput);
  EXPECT_THROW(Geometry({{8, 8}, {1, 1}, 32}), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {1, 1}}).neighbours(2), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {1, 1}}).face(2, Side::below, 0), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {2, 1}}).origin(2), BadInput);
  EXPECT_THROW((void)geometry_grid(std::vector<std::int64_t>{8, 8}, 5), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
