// What the Wilson operator reads besides vectors, in one precision: links, blocks of the clover term, and tables of neighbours.
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

// Lanes that the kernels on this processor like best: as many as fill a vector.
template <class T>
[[nodiscard]] int wilson_lanes();

// The kernels of cpu::level() for so many lanes, or of a lower level that has them; null if none has.
template <class T>
[[nodiscard]] const WilsonKernels<T>* wilson_kernels(int lanes);

// What does not depend on the number of right-hand sides.
template <class T>
class WilsonStorage {
 public:
  // `links` are this rank's block in lexicographic order: site, direction, row, column. Collective. Throws BadInput unless the geometry
  // has four directions, two parities, and lanes for which there is a kernel. `half`, with T = float: links and blocks are 16-bit integers.
  WilsonStorage(const Group& group, const Geometry& geometry, std::span<const std::complex<double>> links, int recon,
                bool antiperiodic, bool half = false);

  // Of every site of the block in lexicographic order the 72 numbers of the clover term's blocks, and those of their inverses.
  void set_clover(std::span<const double> blocks, std::span<const double> inverses);

  [[nodiscard]] int lanes() const { return geometry.spec().lanes; }
  [[nodiscard]] bool has_clover() const { return clover[0].there(); }
  // Of a parity of the whole lattice, the parity within the block.
  [[nodiscard]] int local(int parity) const { return (parity + geometry.origin_parity(group.rank())) % 2; }
  [[nodiscard]] std::int64_t vectors(int parity) const {
    return geometry.parity_end(local(parity)) - geometry.parity_begin(local(parity));
  }

  // As T, or as 16-bit integers: of blocks with a scale for every site.
  struct Matrices {
    Buffer<T> whole;
    Buffer<std::int16_t> shorts;
    Buffer<T> scales;

    [[nodiscard]] bool there() const { return whole.data() != nullptr || shorts.data() != nullptr; }
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
  std::vector<std::int64_t> sites;  // in lexicographic order, [vector][lane]
  std::array<Matrices, 2> clover;   // of a local parity
  std::array<Matrices, 2> inverse;

 private:
  void make_neighbours(bool antiperiodic);
  void make_links(std::span<const std::complex<double>> natural);
};

extern template class WilsonStorage<float>;
extern template class WilsonStorage<double>;

}  // namespace onehop::lattice::detail
