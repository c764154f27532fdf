// The constant data of the Wilson operator in one precision: links, clover blocks and neighbour tables.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "lattice/support/buffer.h"
#include "lattice/wilson/wilson_kernel.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"

namespace onehop::lattice::detail {

inline std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

// Neighbours and faces are numbered 2 * direction + side.
inline Side side_of(int neighbour) { return neighbour % 2 == 0 ? Side::below : Side::above; }

// The number of lanes that fill a vector register at cpu::level().
template <class T>
[[nodiscard]] int wilson_lanes();

// Returns the kernels for this number of lanes, of the best instruction set that has them, at most cpu::level(); null
// if none has.
template <class T>
[[nodiscard]] const WilsonKernels<T>* wilson_kernels(int lanes);

// One WilsonStorage serves operators with any number of right-hand sides.
template <class T>
class WilsonStorage {
 public:
  // `links` holds this rank's block in lexicographic order: site, direction, row, column. `recon`: 18 or 12 real
  // numbers per link. `half`, with T = float: stores 16-bit integers. Collective. Throws BadInput unless there are four
  // directions, and kernels for its lanes.
  WilsonStorage(const Group& group, const Geometry& geometry, std::span<const std::complex<double>> links, int recon,
                bool antiperiodic, bool half = false);

  // Takes the clover blocks and their inverses, 72 numbers per site of this rank's block in lexicographic order
  // (clover.h). Collective.
  void set_clover(std::span<const double> blocks, std::span<const double> inverses);

  [[nodiscard]] int lanes() const { return geometry.spec().lanes; }
  [[nodiscard]] bool has_clover() const { return clover[0].present(); }
  // Converts a parity of the global coordinates to one of the coordinates within this rank's block.
  [[nodiscard]] int local(int parity) const { return (parity + geometry.origin_parity(group.rank())) % 2; }
  [[nodiscard]] std::int64_t vectors(int parity) const {
    return geometry.parity_end(local(parity)) - geometry.parity_begin(local(parity));
  }

  // Numbers of type T in `whole`, or 16-bit integers in `shorts`; clover blocks then have a scale per site,
  // [vector][lane].
  struct Matrices {
    Buffer<T> whole;
    Buffer<std::int16_t> shorts;
    Buffer<T> scales;

    [[nodiscard]] bool present() const { return whole.data() != nullptr || shorts.data() != nullptr; }
    [[nodiscard]] const void* at(std::int64_t number) const {
      return shorts.data() != nullptr ? static_cast<const void*>(shorts.data() + number) : whole.data() + number;
    }
  };
  [[nodiscard]] int bytes_a_number() const { return half ? 2 : static_cast<int>(sizeof(T)); }

  Group group;
  Geometry geometry;
  int recon;
  bool half;
  const WilsonKernels<T>* kernels;
  Matrices links;
  std::vector<WilsonNeighbour> neighbours;
  std::vector<int> lane_sources;
  std::vector<T> signs;
  std::vector<std::int64_t> sites;  // [vector][lane]: the site's lexicographic number in the block
  std::array<Matrices, 2> clover;   // per local parity
  std::array<Matrices, 2> inverse;

 private:
  void make_neighbours(bool antiperiodic);
  void make_links(std::span<const std::complex<double>> gauge_links);
};

extern template class WilsonStorage<float>;
extern template class WilsonStorage<double>;

}  // namespace onehop::lattice::detail
