// A gauge field as fields of matrices, and what is built from its links step by step: staples, products along paths.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "lattice/geometry/matrix_field.h"
#include "onehop/lattice/gauge.h"
#include "onehop/lattice/su3.h"

namespace onehop::lattice::detail {

// One matrix field a direction.
template <class Number>
class LinkFieldsOf {
 public:
  using Field = MatrixFieldOf<Number>;

  explicit LinkFieldsOf(const MatrixSpace& space);

  [[nodiscard]] const MatrixSpace& space() const noexcept { return *space_; }
  [[nodiscard]] int dims() const noexcept { return space_->dims(); }
  [[nodiscard]] Field& operator[](int direction) { return links_[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] const Field& operator[](int direction) const { return links_[static_cast<std::size_t>(direction)]; }

  // Own sites in lexicographic order, all directions of a site together.
  void load(std::span<const std::complex<double>> links);
  [[nodiscard]] std::vector<std::complex<double>> store() const;

  // The ghosts ahead in every direction of every link, right at edges and corners too: what products of links that begin on the
  // own block and go ahead need. Collective.
  void fill_ahead();
  // Those on all sides, right at edges and corners too. Collective.
  void fill_all();
  [[nodiscard]] std::array<const Number*, 4> data() const;

 private:
  const MatrixSpace* space_;
  std::vector<Field> links_;
};
using LinkFields = LinkFieldsOf<double>;

// How far in a field a step in each direction leads, ahead and back.
struct Steps {
  std::array<std::ptrdiff_t, 4> ahead{};
  std::array<std::ptrdiff_t, 4> back{};
};
[[nodiscard]] inline Steps steps_of(const MatrixSpace& space) {
  Steps steps{space.strides(), space.strides()};
  for (std::ptrdiff_t& back : steps.back) back = -back;
  return steps;
}

// The sum of the staples around the links of direction mu in the first `dims` directions, in the direction of those links. All ghosts
// are filled.
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
