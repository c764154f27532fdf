// The links of an SU(3) gauge field on a periodic lattice that is split over a grid of ranks: a 3x3 matrix for every site and direction.
// Each rank keeps its block and one layer of links around it, edges and corners too.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "onehop/lattice/geometry.h"

namespace onehop::lattice {

// Averages of Re tr / 3 over the plaquettes of the whole lattice: 1 for unit links. The last direction is time.
struct Plaquettes {
  double all = 0;
  double space = 0;  // of two directions in space; 0 where there are none
  double time = 0;   // of time and another direction
};

// The link that is farthest from SU(3), see su3::deviation.
struct GaugeDeviation {
  double value = 0;
  std::vector<std::int64_t> site;  // in the whole lattice
  int direction = 0;
};

class Gauge {
 public:
  // Unit links. Collective. `extents` and `grid` as in GeometrySpec, 2 to 4 directions, extents of 2 or more. Throws BadInput.
  Gauge(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid);
  Gauge(Gauge&&) noexcept;
  Gauge& operator=(Gauge&&) noexcept;
  ~Gauge();

  [[nodiscard]] const Group& group() const noexcept;
  [[nodiscard]] const Geometry& geometry() const noexcept;  // of one lane and one parity

  // This rank's block in lexicographic order: site, direction, row, column. Collective. Throws BadInput for another length.
  void set_links(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> links() const;

  // Every link drawn from all of SU(3) evenly, from the seed and its place in the whole lattice alone. Collective.
  void set_random(std::uint64_t seed);

  // The same bits for every grid of ranks, as sums are exact: of numbers rounded to 2^-50. Collective.
  [[nodiscard]] Plaquettes plaquettes() const;
  // The average of Re tr / 3 over all links. Collective.
  [[nodiscard]] double link_trace() const;
  // The same on every rank. Collective.
  [[nodiscard]] GaugeDeviation deviation() const;

  // Brings every link back to SU(3). Collective.
  void reunitarise();

  // One sweep of the heat bath (Cabibbo, Marinari) for the Wilson action -beta / 3 sum Re tr U_p, and one of over-relaxation, which keeps the
  // action: every link once, in three SU(2) subgroups, by direction and parity. Random numbers depend on the seed, `sweep` and
  // the link's place in the whole lattice alone, so that the field is the same, bit for bit, for every grid of ranks. Collective. Throw
  // BadInput for odd extents, and a beta that is negative or no number.
  void heat_bath(double beta, std::uint64_t seed, std::uint32_t sweep);
  void over_relax();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
