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

}  // namespace
}  // namespace onehop::lattice
