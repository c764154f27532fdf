// Smearing replaces each link of a gauge field by a weighted average over nearby paths. This header declares APE, stout
// and HYP smearing, and the fat and long links of improved staggered quarks (fat3, fat5, fat7, asqtad, HISQ). All
// functions are collective and gauge-covariant.
#pragma once

#include <complex>
#include <vector>

#include "onehop/lattice/gauge.h"
#include "onehop/lattice/precision.h"

namespace onehop::lattice {

// Links of this rank's block in lexicographic order: site, direction, row, column.
using Links = std::vector<std::complex<double>>;

// One weight for each kind of path.
struct PathWeights {
  double one = 1;         // the link itself
  double three = 0;       // staples of three links, around the link in one direction
  double five = 0;        // paths of five links, around the link in two directions
  double seven = 0;       // paths of seven links, around the link in three directions
  double lepage = 0;      // Lepage's term: five links, around the link at a distance of two
  double long_links = 0;  // Naik's term: three links straight ahead, which make the long links
};

// The conventional weights. Those of fat3, fat5 and fat7 add up to 1 over all paths in four directions. asqtad
// (Orginos, Toussaint and Sugar, hep-lat/9903032) is fat7 with the terms of Lepage and Naik, where every link beyond
// the first has a factor 1 / u0 (tadpole improvement).
[[nodiscard]] PathWeights fat3_weights();
[[nodiscard]] PathWeights fat5_weights();
[[nodiscard]] PathWeights fat7_weights();
[[nodiscard]] PathWeights asqtad_weights(double u0 = 1);  // throws BadInput for a u0 that is not above 0
// The second level of HISQ: asqtad weights with Lepage's weight doubled and Naik's multiplied by 1 + naik_epsilon.
[[nodiscard]] PathWeights hisq_second_weights(double naik_epsilon = 0);

struct FatLinks {
  Links fat;
  Links long_links;  // from x to x + 3 mu
};

// Fat and long links of unitary links, computed in double or single precision. Collective. Throws BadInput for half
// precision, and for weights that are not finite or beyond 1e30.
[[nodiscard]] FatLinks fat_links(const Gauge& gauge, const PathWeights& weights,
                                 Precision precision = Precision::double_);

struct HisqLinks {
  Links fat;
  Links long_links;
  Links unitary;  // the reunitarised fat7 links of the first level, from which the fat and long links are made
};

// HISQ links (Follana et al., hep-lat/0610092): fat7 smearing, then each link V is replaced by the nearest unitary
// matrix V (V^dagger V)^(-1/2), then the second level. Collective. The reunitarisation is always done in double
// precision. Throws BadInput for half precision, and if a fat7 link is singular; the message names its site.
[[nodiscard]] HisqLinks hisq_links(const Gauge& gauge, double naik_epsilon = 0,
                                   Precision precision = Precision::double_);

struct SmearingOptions {
  int steps = 1;
  bool space_only = false;  // smear only spatial links, with spatial paths; the last direction is time
};

// APE smearing: each step replaces U by the SU(3) matrix nearest to (1 - alpha) U + alpha / n (sum of the n staples
// around it). Collective. Throws BadInput for steps below 0, an alpha that is not finite, or if no such matrix exists.
void smear_ape(Gauge& gauge, double alpha, const SmearingOptions& options = {});

// Stout smearing (Morningstar and Peardon, hep-lat/0311018): each step replaces U by exp(P(rho C U^dagger)) U, where C
// is the sum of the staples around U and P projects to the Lie algebra of SU(3). Collective. Throws BadInput for steps
// below 0 and a rho that is not finite.
void smear_stout(Gauge& gauge, double rho, const SmearingOptions& options = {});

// The weights of the staples of HYP smearing: of the outermost level, whose staples consist of links smeared in two
// directions, of the second one, and of the innermost, with staples of the links of the field.
struct HypWeights {
  double outer = 0.75;
  double middle = 0.6;
  double inner = 0.3;
};

// HYP smearing (Hasenfratz and Knechtli, hep-lat/0103029): nested APE smearing whose paths stay within the hypercubes
// around a link. Each level projects a sum V to the SU(3) matrix U with the largest Re tr(U V^dagger). With fewer
// directions, and with space_only, the outermost levels are left out. Collective. Throws BadInput as smear_ape.
void smear_hyp(Gauge& gauge, const HypWeights& weights = {}, const SmearingOptions& options = {});

}  // namespace onehop::lattice
