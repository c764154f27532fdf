// A gauge field as one MatrixField per direction, and sums of staples. Smearing, gradient flow and HMC work on it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "lattice/geometry/matrix_field.h"
#include "onehop/lattice/gauge.h"
#include "onehop/lattice/su3.h"

namespace onehop::lattice::detail {

// One matrix field per direction.
template <class Number>
class LinkFieldsOf {
 public:
  using Field = MatrixFieldOf<Number>;

  explicit LinkFieldsOf(const MatrixSpace& space);

  [[nodiscard]] const MatrixSpace& space() const noexcept { return *space_; }
  [[nodiscard]] int dims() const noexcept { return space_->dims(); }
  [[nodiscard]] Field& operator[](int direction) { return links_[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] const Field& operator[](int direction) const { return links_[static_cast<std::size_t>(direction)]; }

  // Convert own sites from and to lexicographic order, [site][direction][row][column].
  void load(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> store() const;

  // Fills the ghosts above the block in every direction, including edges and corners, for products of links that start
  // in the block and go ahead. Collective.
  void fill_ahead();
  // Fills the ghosts on all sides, including edges and corners. Collective.
  void fill_all();
  [[nodiscard]] std::array<const Number*, 4> data() const;

 private:
  const MatrixSpace* space_;
  std::vector<Field> links_;
};
using LinkFields = LinkFieldsOf<double>;

// Offsets in a field to the next and the previous site in each direction.
struct Steps {
  std::array<std::ptrdiff_t, 4> ahead{};
  std::array<std::ptrdiff_t, 4> back{};
};
[[nodiscard]] inline Steps steps_of(const MatrixSpace& space) {
  Steps steps{space.strides(), space.strides()};
  for (std::ptrdiff_t& back : steps.back) back = -back;
  return steps;
}

// The two staples of the field `middle` with the links `side` in another direction: side(x) middle(x + up) side(x +
// ahead)^dagger, and the one below it. `ahead` and `up` are offsets of the directions of `middle` and `side`.
template <class Sites, class Number>
[[nodiscard]] inline typename Sites::Matrix two_staples(const Sites& sites, const Number* side, const Number* middle,
                                                        std::ptrdiff_t ahead, std::ptrdiff_t up) {
  return times_adjoint(sites.load(side) * sites.load(middle, up), sites.load(side, ahead)) +
         adjoint_times(sites.load(side, -up), sites.load(middle, -up)) * sites.load(side, ahead - up);
}

// Returns the sum of the staples around the links of direction mu, in planes with the first `dims` directions. A staple
// leads from x to x + mu. All ghosts must be filled.
template <class Sites>
[[nodiscard]] inline typename Sites::Matrix sum_of_staples(const Sites& sites,
                                                           const std::array<const double*, 4>& links,
                                                           const Steps& steps, int dims, int mu) {
  typename Sites::Matrix sum{};
  const std::ptrdiff_t ahead = steps.ahead[mu];
  for (int nu = 0; nu < dims; ++nu) {
    if (nu == mu) continue;
    const std::ptrdiff_t up = steps.ahead[nu];
    const std::ptrdiff_t down = steps.back[nu];
    sum = sum + times_adjoint(sites.load(links[nu]) * sites.load(links[mu], up), sites.load(links[nu], ahead));
    sum = sum +
          adjoint_times(sites.load(links[nu], down), sites.load(links[mu], down)) * sites.load(links[nu], ahead + down);
  }
  return sum;
}

}  // namespace onehop::lattice::detail
