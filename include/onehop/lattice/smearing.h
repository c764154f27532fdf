// What is made of a gauge field's links by averaging them with the paths around them: fields that are smoother (APE, stout), and the fat
// and long links of improved staggered quarks (fat3, fat5, fat7, asqtad, HISQ). All transform like the links that they are made of.
#pragma once

#include <complex>
#include <vector>

#include "onehop/lattice/gauge.h"
#include "onehop/lattice/precision.h"

namespace onehop::lattice {

// This rank's block in lexicographic order: site, direction, row, column.
using Links = std::vector<std::complex<double>>;

// The weight of every path of a kind: the link itself, around it in one, two and three directions (three, five and seven links), around it
// at a distance of two (Lepage's term, five links), and straight ahead over three links (Naik's term, which makes the long links).
struct PathWeights {
  double one = 1;
  double three = 0;
  double five = 0;
  double seven = 0;
  double lepage = 0;
  double naik = 0;
};

// The conventional weights. Those of fat3, fat5 and fat7 add up to 1 over all paths in four directions; asqtad has fat7 with the terms
// of Lepage and Naik, where each link beyond the first counts 1 / u0 (tadpole improvement).
[[nodiscard]] PathWeights fat3_weights();
[[nodiscard]] PathWeights fat5_weights();
[[nodiscard]] PathWeights fat7_weights();
[[nodiscard]] PathWeights asqtad_weights(double u0 = 1);  // throws BadInput for a u0 that is not above 0
// The second level of HISQ: asqtad's, with Lepage's weight doubled, and Naik's times 1 + epsilon.
[[nodiscard]] PathWeights hisq_second_weights(double naik_epsilon = 0);

struct FatLinks {
  Links fat;
  Links naik;  // the long links: from x to x + 3 mu
};

// Sums over paths of links, which are unitary, computed in double or single precision. Collective. Throws BadInput for half precision
// and for weights that are not finite or beyond 1e30.
[[nodiscard]] FatLinks fat_links(const Gauge& gauge, const PathWeights& weights, Precision precision = Precision::full);

struct HisqLinks {
  Links fat;
  Links naik;
  Links unitary;  // the first level: fat7 links brought to U(3), from which the others are made
};

// Fat7, each link V replaced by the unitary matrix nearest to it, V (V^dagger V)^(-1/2), then the second level. Collective. Matrices are
// made unitary in double precision always. Throws BadInput for half precision, and, with the place, where a fat7 link is singular and there is no
// such matrix.
[[nodiscard]] HisqLinks hisq_links(const Gauge& gauge, double naik_epsilon = 0, Precision precision = Precision::full);

struct SmearingOptions {
  int steps = 1;
  bool space_only = false;  // only links in space, with paths in space; the last direction is time
};

// Steps of APE smearing: U becomes what is nearest in SU(3) to (1 - alpha) U + alpha / n (sum of the n staples around it). Collective.
// Throws BadInput for steps below 0, or where there is no such matrix.
void smear_ape(Gauge& gauge, double alpha, const SmearingOptions& options = {});

// Steps of stout smearing: U becomes exp(P(rho C U^dagger)) U with C the sum of the staples around it and P the part in the algebra
// of SU(3). Collective. Throws BadInput for steps below 0.
void smear_stout(Gauge& gauge, double rho, const SmearingOptions& options = {});

}  // namespace onehop::lattice
