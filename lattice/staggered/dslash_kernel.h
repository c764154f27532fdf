// The inner loop of the staggered hopping term: one or three sites away, along and against each direction.
//
// Links are kept once, those ahead of each vector: the one behind a site is the adjoint of its neighbour's. So a hop to the sites of one
// parity reads every link once, and fields of the lattice's size fit into caches twice as large. Where they fit into none, they are kept
// twice, in the order of their use: memory is fastest read from end to end. What comes out has the same bits.
#pragma once

#include <array>
#include <cstdint>

#include "lattice/solver/vector_space.h"
#include "lattice/support/simd.h"

namespace onehop::lattice::detail {

constexpr int most_kinds = 8;  // of links at a site: directions times lengths of dslash

// Of vectors [first, last): out = own_factor * own + sum over kinds of dslash_factor * (link ahead * field ahead - adjoint(link behind) * field behind).
template <class Link, class Real>
struct DslashLoop {
  std::array<const Link*, most_kinds> links{};  // of each kind: [vector, ghosts too][row][column][re, im][lane]
  // Instead of those: [vector][kind][ahead, behind][row][column][re, im][lane], all in the lanes of the vector that is hopped to.
  const Link* stream = nullptr;
  std::array<double, most_kinds> factors{};  // a link is its numbers times this; kinds of one factor stand together
  const std::int32_t* neighbours =
      nullptr;  // [vector][kind][behind, ahead]: 2 * its vector, + 1 where lanes are to be rotated
  const std::int32_t* rotations = nullptr;  // [kind][behind, ahead][lane]
  const Real* field = nullptr;              // [vector, ghosts too][rhs][colour][re, im][lane]
  const Real* own = nullptr;                // as `out`; none: 0
  Real* out = nullptr;                      // of vectors from out_begin on
  std::int64_t out_begin = 0;
  double own_factor = 0;
  double dslash_factor = 1;
  int kinds = 0;
  int num_rhs = 1;  // in memory
  int rhs = 0;      // the first one that is done here
  std::int64_t first = 0;
  std::int64_t last = 0;
  int directions = 1;
  int ahead = 0;            // so many vectors before its use, what comes from memory is asked for; 0: nothing is
  bool backwards = false;   // from the last vector to the first
  double* plain = nullptr;  // where given: the real parts of <own, out> are added, one for each right-hand side
  Superaccumulator* wide = nullptr;  // the same, instead
};

// Computes `rhs_at_once` right-hand sides together.
template <class Link, class Real>
struct DslashKernel {
  LoopFunction<DslashLoop<Link, Real>> run = nullptr;
  int rhs_at_once = 1;
};

// For so many lanes (1, 2, 4, 8 or, but in double precision, 16), the best that this processor has; `plain` without its vectors.
template <class Link, class Real>
[[nodiscard]] DslashKernel<Link, Real> dslash_kernel(int lanes, int num_rhs, bool plain = false);

extern template DslashKernel<double, double> dslash_kernel(int, int, bool);
extern template DslashKernel<float, float> dslash_kernel(int, int, bool);
extern template DslashKernel<std::int16_t, float> dslash_kernel(int, int, bool);

}  // namespace onehop::lattice::detail
