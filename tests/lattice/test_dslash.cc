// The staggered hopping term gives the same with links stored once, and stored twice in the order of use.
#include "lattice/staggered/dslash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/ranks.h"

namespace onehop::lattice::detail {
namespace {

using Number = std::complex<double>;

DslashLattice random_lattice(const Group& group, const std::vector<int>& grid, int lanes) {
  GeometrySpec spec{{8, 8, 8, 8}, grid};
  spec.width = 3;
  spec.lanes = geometry_lanes(spec, lanes);
  Geometry geometry(spec);
  std::mt19937 random(static_cast<unsigned>(group.rank()) + 5);
  std::uniform_real_distribution<double> even(-1, 1);
  std::vector<Number> fat(static_cast<std::size_t>(geometry.sites()) * 36);
  for (Number& z : fat) z = {even(random), even(random)};
  std::vector<Number> long_links(fat.rbegin(), fat.rend());
  const std::array<std::span<const Number>, 2> both{fat, long_links};
  return {group, std::move(geometry), both};
}

template <class Link, class Real>
void expect_same_bits(const DslashLattice& lattice, const DslashLinks<Link>& once) {
  const DslashLinks<Link> twice = in_order_of_use(lattice, once);
  EXPECT_TRUE(twice.kinds.empty());
  base::ThreadPool pool(2);
  for (const int num_rhs : {1, 5}) {
    DslashField<Link, Real> a(lattice, once, pool, {.num_rhs = num_rhs});
    DslashField<Link, Real> b(lattice, twice, pool, {.num_rhs = num_rhs});
    std::mt19937 random(static_cast<unsigned>(lattice.group.rank()));
    std::uniform_real_distribution<Real> even(-1, 1);
    for (Real& x : a.field.memory.span()) x = even(random);
    std::ranges::copy(a.field.memory.span(), b.field.data());
    const Field<Real> a_out(a.field.shape, false), b_out(b.field.shape, false);
    for (const int parity : {0, 1}) {
      a.apply(parity, {.out = a_out.data()});
      b.apply(parity, {.out = b_out.data()});
    }
    EXPECT_GT(std::ranges::count_if(a_out.memory.span(), [](Real x) { return x != 0; }), 0);
    EXPECT_TRUE(std::ranges::equal(a_out.memory.span(), b_out.memory.span()));
  }
}

TEST(LatticeHop, TheOrderOfLinksDoesNotChangeBits) {
  for (const int lanes : {8, 1}) {
    for (const std::vector<int>& grid : {std::vector<int>{1, 1, 1, 1}, {1, 1, 2, 1}}) {
      testing::on_threads(grid[2], [&](const Group& group) {
        const DslashLattice lattice = random_lattice(group, grid, lanes);
        expect_same_bits<double, double>(lattice, lattice.links);
        expect_same_bits<float, float>(lattice, to_single(lattice.links));
        expect_same_bits<std::int16_t, float>(lattice, to_half(lattice.links, group, 4));
      });
    }
  }
}

TEST(LatticeHop, LinksAreKeptOnceWhereOnlyThatFitsIntoTheCache) {
  const DslashLattice lattice = random_lattice(Group::alone(), {1, 1, 1, 1}, 8);
  EXPECT_TRUE(better_in_order(lattice, 1));           // far below the size of the cache
  EXPECT_FALSE(better_in_order(lattice, 1UL << 30));  // more than the memory
}

}  // namespace
}  // namespace onehop::lattice::detail
