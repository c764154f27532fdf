// The links of a gauge field, made for updates of one parity after the other. As in a MatrixField a row is the sites along direction 0 with a
// ghost at both ends, but in each of its 18 numbers the sites at even places (the ghost below is at place 0, the first own site at 1) come
// before those at odd ones, [..., z, y, number, place % 2, place / 2]: so sites of one parity are neighbours in memory, and so are theirs in each direction.
//
// Directions along which there is one rank only have no ghosts but those at the ends of rows, which are filled with the row.
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
#include "lattice/support/team.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"
#include "onehop/plan.h"

namespace onehop::lattice::detail {

// Sites of one parity in a row, `count` of them, which is at most the lanes; what is loaded beyond is no site's.
template <int Lanes>
struct CheckerboardSites : Sites<Lanes> {
  using Real = typename Sites<Lanes>::Real;
  int count;
  std::uint64_t number;  // of the first site in the whole lattice; the next one's is two higher
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
    std::ptrdiff_t at;     // of place 0
    int parity;            // of place 0
    std::uint64_t number;  // of place 1 in the whole lattice
    Steps steps;           // in all directions but 0
  };

  // Zero everywhere. `geometry` has one lane and one parity. Collective.
  CheckerboardLayout(const Group& group, const Geometry& geometry);

  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] Team& team() const noexcept { return *team_; }
  [[nodiscard]] int dims() const noexcept { return geometry_.dims(); }
  [[nodiscard]] std::size_t sites() const noexcept { return static_cast<std::size_t>(geometry_.sites()); }
  [[nodiscard]] std::span<const Row> rows() const noexcept { return rows_; }
  [[nodiscard]] std::ptrdiff_t row_sites() const noexcept { return geometry_.block()[0]; }
  [[nodiscard]] std::ptrdiff_t half() const noexcept { return half_; }

  [[nodiscard]] std::array<const double*, 4> data() const;
  [[nodiscard]] double* data(int direction) { return links_[static_cast<std::size_t>(direction)].data(); }

  // Own sites in lexicographic order, all directions of a site together. Loading fills ghosts and is collective.
  void load(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> store() const;

  // The ghost at an odd place at the end of a row, or at the even one at its beginning, where this is the only rank in direction 0.
  void close_row(double* field, const Row& row, bool odd) const;
  // All ghosts of the links of a direction but those. Collective.
  void fill(int direction);

 private:
  [[nodiscard]] std::ptrdiff_t place(std::int64_t x) const noexcept { return (x % 2) * half_ + x / 2; }
  [[nodiscard]] bool cut(std::size_t direction) const { return geometry_.spec().grid[direction] > 1; }
  [[nodiscard]] Schedule ghosts() const;

  Group group_;
  Geometry geometry_;
  std::unique_ptr<Team> team_;
  std::ptrdiff_t half_ = 0;
  std::size_t doubles_ = 0;
  std::vector<Row> rows_;
  std::vector<Buffer<double>> links_;
  std::vector<Plan> plans_;  // a direction each, none where there is one rank
};

// The sites of one parity, for each_site (site_loop.h).
struct OneParity {
  const CheckerboardLayout* all;
  int parity;

  [[nodiscard]] Team& team() const noexcept { return all->team(); }
  [[nodiscard]] std::size_t sites() const noexcept { return all->sites(); }
  [[nodiscard]] std::span<const CheckerboardLayout::Row> rows() const noexcept { return all->rows(); }
};

// As many lanes as sites are left, in vectors of 8 or 4; how rows are laid out leaves room for lanes beyond the last site.
template <class Op>
inline void loop_over_rows(const OneParity& space, std::ptrdiff_t first, std::ptrdiff_t last, const Op& op) {
  const std::ptrdiff_t half = space.all->half();
  const std::ptrdiff_t length = space.all->row_sites();
  for (std::ptrdiff_t index = first; index < last; ++index) {
    const CheckerboardLayout::Row& row = space.rows()[static_cast<std::size_t>(index)];
    const bool odd = row.parity != space.parity;  // places
    if constexpr (requires { op.ask_for(row); }) {
      if (index + 1 < last) op.ask_for(space.rows()[static_cast<std::size_t>(index + 1)]);
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
    for (; left > 4; left -= 8) some.template operator()<8>(left < 8 ? static_cast<int>(left) : 8);
    if (left > 0) some.template operator()<4>(static_cast<int>(left));
    if constexpr (requires { op.row_done(row, odd); }) op.row_done(row, odd);
  }
}

}  // namespace onehop::lattice::detail
