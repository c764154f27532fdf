// An SU(3) gauge field on a periodic lattice that is split over a grid of ranks: a 3x3 matrix for every site and
// direction, in double precision. Each rank stores its block and one layer of ghost links around it, including edges
// and corners.
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
  double space = 0;  // of planes without time; 0 if there are none
  double time = 0;   // of planes with time
};

// The link that deviates most from SU(3).
struct GaugeDeviation {
  double value = 0;                // see su3::deviation
  std::vector<std::int64_t> site;  // global coordinates
  int direction = 0;
};

class Gauge {
 public:
  // Unit links. `extents`, `grid` and `rank_at` as in GeometrySpec, 2 to 4 directions, extents of 2 or more,
  // group.size() ranks. Collective. Throws BadInput, and Error if a machine has too little memory left.
  Gauge(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid, std::vector<int> rank_at = {});
  Gauge(Gauge&&) noexcept;
  Gauge& operator=(Gauge&&) noexcept;
  ~Gauge();

  // The memory that one of `ranks` ranks needs for a gauge field, with the copies that its functions make. An empty
  // grid means one that is not chosen yet.
  [[nodiscard]] static double bytes_on_a_rank(std::span<const std::int64_t> extents, std::span<const int> grid,
                                              int ranks);

  [[nodiscard]] const Group& group() const noexcept;
  [[nodiscard]] const Geometry& geometry() const noexcept;  // with one lane and one parity

  // This rank's block in lexicographic order: [site][direction][row][column]. set_links() is collective; throws
  // BadInput for another length.
  void set_links(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> links() const;

  // Draws every link from the Haar measure of SU(3). The links depend only on the seed and on global coordinates.
  // Collective.
  void set_random(std::uint64_t seed);

  // Averages with the same bits on every grid of ranks: numbers are rounded to 2^-50 and summed exactly. Collective.
  [[nodiscard]] Plaquettes plaquettes() const;
  // The average of Re tr / 3 over all links. Collective.
  [[nodiscard]] double link_trace() const;
  // Returns the same on every rank. Collective.
  [[nodiscard]] GaugeDeviation deviation() const;

  // Projects every link to SU(3), see su3::reunitarise. Collective. Throws BadInput, and leaves the links as they are,
  // if a link is singular; the message names it.
  void reunitarise();

  // One sweep of the heat bath (Cabibbo and Marinari, 1982; Kennedy and Pendleton, 1985) for the Wilson action -beta /
  // 3 sum Re tr U_p, or of over-relaxation, which preserves the action. A sweep updates every link in three SU(2)
  // subgroups. Random numbers depend only on the seed, on `sweep` and on global coordinates, so the field has the same
  // bits on every grid of ranks. Collective. Throw BadInput for odd extents and for a beta that is not from 0 to 1e6.
  // Ranks compare the arguments, but for later sweeps of a loop, without `compare`.
  void heat_bath(double beta, std::uint64_t seed, std::uint32_t sweep, bool compare = true);
  void over_relax();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
