// Schedules of one rank, and what a geometry refuses; tests/lattice/test_geometry.py compares neighbours and faces.
#include "onehop/lattice/geometry.h"

#include <gtest/gtest.h>

#include "onehop/error.h"

namespace onehop::lattice {
namespace {

TEST(LatticeGeometry, PartsOfARank) {
  const Geometry geometry({{8, 8, 8, 12}, {1, 1, 1, 3}, 8});
  const Schedule whole = geometry.halo(16);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(geometry.halo(16, ElementType::bytes, {}, rank), whole.part(rank));
}

TEST(LatticeGeometry, SaysWhatIsWrong) {
  EXPECT_THROW(Geometry({{8, 8}, {3, 1}}), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {1, 1}}).neighbours(2), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {1, 1}}).face(2, Side::below, 0), BadInput);
  EXPECT_THROW((void)Geometry({{8, 8}, {2, 1}}).origin(2), BadInput);
  EXPECT_THROW((void)geometry_grid(std::vector<std::int64_t>{8, 8}, 5), BadInput);
}

}  // namespace
}  // namespace onehop::lattice
