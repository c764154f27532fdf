// Observables of a gauge field from loops longer than a plaquette: Wilson loops, and an improved topological charge.
#pragma once

#include <vector>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Returns the means of Re tr / 3 of the rectangles of r links in space and t links in time, the last direction, over
// all sites and directions in space: [r - 1][t - 1] for r and t from 1 on. The same bits on every grid of ranks.
// Collective. Throws BadInput if a loop is longer than the lattice.
[[nodiscard]] std::vector<double> wilson_loops(const Gauge& gauge, int longest_r, int longest_t);

// Returns the topological charge 5Li (de Forcrand, Garcia Perez and Stamatescu, hep-lat/9701012): the weighted sum of
// the charges from the clover leaves of 1x1, 2x2, 1x2, 1x3 and 3x3 plaquettes, whose errors begin with the sixth power
// of the lattice spacing. 0 unless there are four directions. The same bits on every grid of ranks. Collective.
[[nodiscard]] double improved_charge(const Gauge& gauge);

}  // namespace onehop::lattice
