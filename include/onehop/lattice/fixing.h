// Gauge fixing: the gauge transformation of a field with the largest sum of the traces of its links.
#pragma once

#include <cstdint>
#include <functional>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// The links whose traces are summed: those of all directions (Landau), or of all but the last, which is time (Coulomb).
enum class GaugeCondition : std::uint8_t { coulomb, landau };

struct FixingOptions {
  GaugeCondition condition = GaugeCondition::coulomb;
  double tolerance = 1e-14;      // of theta
  double over_relaxation = 1.8;  // 1: each step maximises the sum at its site; up to 2: it goes beyond the maximum
  int most_sweeps = 20000;
};

struct FixedGauge {
  int sweeps = 0;
  // The mean over sites of tr(D^2) / 3, where D(x) is the sum of A(x) - A(x - mu) over the directions mu of the
  // condition, and A the traceless part of (U - U^dagger) / 2i. Zero in the gauge.
  double theta = 0;
  double functional = 0;  // the mean of Re tr U / 3 over the links of these directions
};

// Replaces the links by those in the gauge. Each sweep turns the odd and then the even sites to the maximum of the sum,
// found in SU(2) subgroups, and beyond it by over-relaxation (Mandula and Ogilvie, 1990). There are many maxima (Gribov
// copies); the same links, bit for bit, lead to the same one on every grid of ranks. `progress` is called with the
// state after every 10 sweeps. Collective. Throws BadInput for odd extents and for options outside of their range;
// Error if theta does not reach the tolerance, and then the links stay as they were.
FixedGauge fix_gauge(Gauge& gauge, const FixingOptions& options = {},
                     const std::function<void(const FixedGauge&)>& progress = {});

}  // namespace onehop::lattice
