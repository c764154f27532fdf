// The inner loop of the staggered hopping term D, with neighbours one (fat links) and three (long links) sites away in
// each direction. `links` stores every link once, with the site that it starts from: the link to the neighbour behind
// is the adjoint of the neighbour's own. An application to one parity then reads every link once, which is best while
// the links fit into the caches. Otherwise `stream` stores every link twice, in the order of use, because sequential
// reads from memory are the fastest. Both give the same bits.
#pragma once

#include <array>
#include <cstdint>

#include "lattice/solver/vector_space.h"
#include "lattice/support/best_loop.h"

namespace onehop::lattice::detail {

constexpr int max_kinds = 8;  // links that start at a site: 4 directions, fat and long

// Arguments for vectors [first, last):
// out = own_factor * own + dslash_factor * sum over kinds of (link ahead * field ahead - adjoint(link behind) * field
// behind).
template <class Link, class Real>
struct DslashLoop {
  std::array<const Link*, max_kinds> links{};  // per kind: [vector, with ghosts][row][column][re, im][lane]
  // Replaces `links`: [vector][kind][ahead, behind][row][column][re, im][lane], with the links in the lanes of the
  // result's vector.
  const Link* stream = nullptr;
  std::array<double, max_kinds> factors{};  // link = stored numbers * factor; kinds with equal factors are adjacent
  // [vector][kind][behind, ahead]: 2 * the neighbour's vector, plus 1 if its lanes must be rotated
  const std::int32_t* neighbours = nullptr;
  const std::int32_t* rotations = nullptr;  // [kind][behind, ahead][lane]: the lane to read
  const Real* field = nullptr;              // [vector, with ghosts][rhs][colour][re, im][lane]
  const Real* own = nullptr;                // laid out like `out`; null for none
  Real* out = nullptr;                      // starts with vector out_begin
  std::int64_t out_begin = 0;
  double own_factor = 0;
  double dslash_factor = 1;
  int kinds = 0;
  int num_rhs = 1;  // right-hand sides in memory
  int rhs = 0;      // the first one that this call computes
  std::int64_t first = 0;
  std::int64_t last = 0;
  int directions = 1;
  int ahead = 0;                     // prefetch distance in vectors; 0: no prefetch
  bool backwards = false;            // run from the last vector to the first
  double* plain = nullptr;           // [rhs]: if not null, adds the real part of <own, out>
  Superaccumulator* wide = nullptr;  // [rhs]: if not null, replaces `plain` for these sums
};

// A loop that computes `rhs_at_once` right-hand sides per call.
template <class Link, class Real>
struct DslashKernel {
  LoopFunction<DslashLoop<Link, Real>> run = nullptr;
  int rhs_at_once = 1;
};

// Returns the loop for 1, 2, 4 or 8 lanes and the best instruction set of this processor, or with `plain` the portable
// one.
template <class Link, class Real>
[[nodiscard]] DslashKernel<Link, Real> dslash_kernel(int lanes, int num_rhs, bool plain = false);

extern template DslashKernel<double, double> dslash_kernel(int, int, bool);
extern template DslashKernel<float, float> dslash_kernel(int, int, bool);
extern template DslashKernel<std::int16_t, float> dslash_kernel(int, int, bool);

}  // namespace onehop::lattice::detail
