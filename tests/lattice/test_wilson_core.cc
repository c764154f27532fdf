// The variants of the Wilson hopping term for lattices that exceed the caches, with prefetches and non-temporal stores,
// give the same bits.
#include "lattice/wilson/wilson_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "onehop/lattice/gauge.h"
#include "tests/support/ranks.h"

namespace onehop::lattice::detail {
namespace {

template <class T>
void fill(std::span<T> numbers, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> even(-1, 1);
  for (T& x : numbers) x = static_cast<T>(even(random));
}

template <class T>
struct Fields {
  explicit Fields(const WilsonCore<T>& core) : in{core.size(0)}, other{core.size(1)} {
    fill(in.span(), 1 + core.storage().group.rank());
    fill(other.span(), 11 + core.storage().group.rank());
  }
  Buffer<T> in;  // of parity 0
  Buffer<T> other;
};

template <class T>
std::vector<T> applied(WilsonCore<T>& core, const Fields<T>& fields, WilsonForm form, bool dagger) {
  Buffer<T> out(core.size(1));
  const T* other = form == WilsonForm::plain || form == WilsonForm::clover ? nullptr : fields.other.data();
  core.dslash(1, fields.in.data(), out.data(), {.form = form, .factor = 0.3, .other_factor = 0.7, .other = other},
              dagger);
  return {out.span().begin(), out.span().end()};
}

template <class T>
void expect_same_bits(const Group& group, const std::vector<int>& grid, int recon, bool half) {
  Gauge gauge(group, {8, 8, 8, 8}, grid);
  gauge.set_random(3);
  GeometrySpec spec = gauge.geometry().spec();
  spec.parities = 2;
  spec.lanes = geometry_lanes(spec, wilson_lanes<T>());
  WilsonStorage<T> storage(group, Geometry(spec), gauge.links(), recon, true, half);
  std::vector<double> blocks(static_cast<std::size_t>(gauge.geometry().sites()) * 72);
  fill(std::span(blocks), 21);
  storage.set_clover(blocks, blocks);
  base::ThreadPool pool(group.size() == 1 ? 2 : 1);
  for (const int num_rhs : {1, 2}) {
    WilsonCore<T> core(storage, pool, num_rhs);
    EXPECT_FALSE(core.fetches || core.past_caches);
    const Fields<T> fields(core);
    for (const WilsonForm form : {WilsonForm::plain, WilsonForm::add, WilsonForm::clover, WilsonForm::clover_other}) {
      const bool dagger = form == WilsonForm::add;
      core.fetches = core.past_caches = false;
      const std::vector<T> expected = applied(core, fields, form, dagger);
      EXPECT_GT(std::ranges::count_if(expected, [](T x) { return x != 0; }), std::ssize(expected) / 2);
      for (const bool fetches : {false, true}) {
        core.fetches = fetches;
        core.past_caches = !fetches;
        EXPECT_EQ(applied(core, fields, form, dagger), expected);
      }
      core.past_caches = true;
      EXPECT_EQ(applied(core, fields, form, dagger), expected);
    }
  }
}

void expect_same_bits(const Group& group, const std::vector<int>& grid) {
  for (const int recon : {18, 12}) {
    expect_same_bits<double>(group, grid, recon, false);
    for (const bool half : {false, true}) expect_same_bits<float>(group, grid, recon, half);
  }
}

TEST(LatticeWilsonCore, PrefetchChangesNothing) { expect_same_bits(Group::alone(), {1, 1, 1, 1}); }

TEST(LatticeWilsonCore, PrefetchChangesNothingOnSeveralRanks) {
  testing::on_threads(2, [](const Group& group) { expect_same_bits(group, {1, 1, 1, 2}); });
}

}  // namespace
}  // namespace onehop::lattice::detail
