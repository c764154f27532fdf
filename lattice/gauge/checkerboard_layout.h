// Checkerboard layout of the links of a gauge field, for updates of one parity after the other. As in a MatrixField, a
// row holds the sites along direction 0 with a ghost at both ends: places 0 (ghost), 1, 2, ... But even places come
// before odd ones,
// [..., z, y, number, place % 2, place / 2], so that sites of one parity are contiguous in memory, and so are their
// neighbours in each direction.
//
// Directions that are not cut have no ghosts, except those at the ends of rows.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "lattice/gauge/link_fields.h"
#include "lattice/geometry/site_loop.h"
#include "lattice/support/buffer.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"
#include "onehop/plan.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

// `count` sites of one parity in a row, at most as many as lanes. Lanes beyond them load padding and are not stored.
template <int Lanes>
struct CheckerboardSites : Sites<Lanes> {
  using Real = typename Sites<Lanes>::Real;
  int count;
  std::uint64_t number;  // global number of the first site; each further site is 2 higher
  Steps steps;

  void store(double* field, const typename Sites<Lanes>::Matrix& m) const {
    if (count == Lanes) return Sites<Lanes>::store(field, m);
    double* to = field + this->at;
    for (int i = 0; i < 9; ++i, to += 2 * this->step) {
      std::memcpy(to, &m.e[i / 3][i % 3].re, sizeof(double) * static_cast<std::size_t>(count));
      std::memcpy(to + this->step, &m.e[i / 3][i % 3].im, sizeof(double) * static_cast<std::size_t>(count));
    }
  }
  void store_real(double* values, const Real& value) const {
    std::memcpy(values + this->order, &value, sizeof(double) * static_cast<std::size_t>(count));
  }
};

class CheckerboardLayout {
 public:
  struct Row {
    std::ptrdiff_t at;     // offset of place 0
    int parity;            // of place 0
    std::uint64_t number;  // global number of place 1
    Steps steps;           // in all directions except 0
  };

  // All links are 0. `geometry` has one lane and one parity. A layout with one field in place of one per direction
  // holds a matrix per site. Collective.
  CheckerboardLayout(const Group& group, const Geometry& geometry, int fields);
  CheckerboardLayout(const Group& group, const Geometry& geometry)
      : CheckerboardLayout(group, geometry, geometry.dims()) {}

  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return pool_; }
  [[nodiscard]] int dims() const noexcept { return geometry_.dims(); }
  [[nodiscard]] std::size_t sites() const noexcept { return static_cast<std::size_t>(geometry_.sites()); }
  [[nodiscard]] std::span<const Row> rows() const noexcept { return rows_; }
  [[nodiscard]] std::ptrdiff_t row_sites() const noexcept { return geometry_.block()[0]; }
  [[nodiscard]] std::ptrdiff_t half() const noexcept { return half_; }

  [[nodiscard]] std::array<const double*, 4> data() const;
  [[nodiscard]] double* data(int direction) { return links_[static_cast<std::size_t>(direction)].data(); }

  // Convert own sites from and to lexicographic order, [site][direction][row][column]. load() also fills the ghosts and
  // is collective.
  void load(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> store() const;

  // Fills the ghost at the end of a row (`odd`) or at its start from the row itself, if direction 0 is not cut.
  void close_row(double* field, const Row& row, bool odd) const;
  // Fills all other ghosts of the links of a direction. Collective.
  void fill(int direction);

 private:
  [[nodiscard]] std::ptrdiff_t place(std::int64_t x) const noexcept { return (x % 2) * half_ + x / 2; }
  [[nodiscard]] bool cut(std::size_t direction) const { return geometry_.spec().grid[direction] > 1; }
  [[nodiscard]] Schedule ghosts() const;

  Group group_;
  Geometry geometry_;
  base::ThreadPool pool_;
  std::ptrdiff_t half_ = 0;
  std::size_t doubles_ = 0;
  std::vector<Row> rows_;
  std::vector<Buffer<double>> links_;
  std::vector<Plan> plans_;  // per direction; empty if there is one rank
};

// The sites of one parity, for each_site() (site_loop.h).
struct OneParity {
  const CheckerboardLayout* all;
  int parity;

  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return all->pool(); }
  [[nodiscard]] std::size_t sites() const noexcept { return all->sites(); }
  [[nodiscard]] std::span<const CheckerboardLayout::Row> rows() const noexcept { return all->rows(); }
};

// Works in vectors that fill a register, with the last one of 8 or 4 sites where that is 8; rows are padded for the
// lanes beyond the last site.
template <int RegisterBytes, class Op>
inline void loop_over_rows(const OneParity& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  constexpr int lanes = full_lanes<double, RegisterBytes>;
  constexpr std::ptrdiff_t rest = lanes > 4 ? 4 : 0;  // sites that the last, shorter vector holds
  const std::ptrdiff_t half = space.all->half();
  const std::ptrdiff_t length = space.all->row_sites();
  for (std::ptrdiff_t index = first; index < last; ++index) {
    const CheckerboardLayout::Row& row = space.rows()[static_cast<std::size_t>(index)];
    const bool odd = row.parity != space.parity;  // places
    if constexpr (requires { op.prefetch(row); }) {
      if (index + 1 < last) op.prefetch(space.rows()[static_cast<std::size_t>(index + 1)]);
    }
    std::ptrdiff_t left = odd ? (length + 1) / 2 : length / 2;
    Steps steps = row.steps;
    steps.ahead[0] = odd ? 1 - half : half;
    steps.back[0] = odd ? -half : half - 1;
    std::ptrdiff_t at = row.at + (odd ? half : 1);
    std::ptrdiff_t order = index * length + (odd ? 0 : (length + 1) / 2);
    std::uint64_t number = row.number + (odd ? 0 : 1);
    const auto some = [&]<int Lanes>(int count) {
      op(CheckerboardSites<Lanes>{{at, 2 * half, order}, count, number, steps});
      at += count, order += count, number += 2 * static_cast<std::uint64_t>(count);
    };
    for (; left > rest; left -= lanes) some.template operator()<lanes>(left < lanes ? static_cast<int>(left) : lanes);
    if constexpr (rest > 0) {
      if (left > 0) some.template operator()<rest>(static_cast<int>(left));
    }
    if constexpr (requires { op.row_done(row, odd); }) op.row_done(row, odd);
  }
}

}  // namespace onehop::lattice::detail
