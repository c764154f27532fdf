// Fields of 3x3 matrices on a rank's block with one layer of ghosts around it, laid out for SIMD loops over sites:
// [..., z, y, number, x]. A row holds the sites along direction 0 with a ghost at both ends, once for each of the 18
// real numbers of a matrix, so that neighbouring sites are neighbours in memory.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lattice/support/buffer.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

// The layout, threads and halo plans that all fields of one lattice share.
class MatrixSpace {
 public:
  // `geometry` has one lane and one parity. Collective.
  MatrixSpace(const Group& group, const Geometry& geometry);
  MatrixSpace(const MatrixSpace&) = delete;
  MatrixSpace& operator=(const MatrixSpace&) = delete;
  ~MatrixSpace();

  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return pool_; }  // runs the loops over sites
  [[nodiscard]] int dims() const noexcept { return geometry_.dims(); }
  [[nodiscard]] std::size_t sites() const noexcept { return static_cast<std::size_t>(geometry_.sites()); }

  // Offsets are counted in numbers: the length of a field, from a site to the next in a direction, and between the
  // numbers of a site.
  [[nodiscard]] std::size_t numbers() const noexcept { return numbers_; }
  [[nodiscard]] const std::array<std::ptrdiff_t, 4>& strides() const noexcept { return stride_; }
  [[nodiscard]] std::ptrdiff_t stride(int direction) const { return stride_[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] std::ptrdiff_t number_step() const noexcept { return number_step_; }
  // The offset of the first number of the first own site of each own row, in lexicographic order, and the number of
  // sites in a row.
  [[nodiscard]] std::span<const std::ptrdiff_t> rows() const noexcept { return rows_; }
  [[nodiscard]] std::ptrdiff_t row_sites() const noexcept { return number_step_ - 2; }

  // Checks that there is memory for so many fields of numbers of type Number, and copies of all links in lexicographic
  // order (see require_memory_for). Collective.
  template <class Number>
  void require_memory(int fields, int copies_of_links, const std::string& what) const;

  // Fills the ghosts of a field beyond one end of the block from the neighbouring rank. The layer includes ghosts in
  // lower directions, so that calls in the order of directions also fill edges and corners correctly. The first call
  // for a direction and side that leads to another rank creates a plan. Collective.
  template <class Number>
  void fill(Number* field, int direction, Side side) const;

 private:
  struct Layer;
  template <class Each>
  void each_run(int direction, const Each& each) const;

  Group group_;
  Geometry geometry_;
  std::array<std::ptrdiff_t, 4> stride_{};
  std::ptrdiff_t number_step_ = 0;
  std::size_t numbers_ = 0;
  std::vector<std::ptrdiff_t> rows_;
  base::ThreadPool pool_;
  // [direction][side][double, float]; null for directions that are not cut.
  mutable std::array<std::array<std::array<std::unique_ptr<Layer>, 2>, 2>, 4> layers_;
};

// Number is double or float.
template <class Number>
class MatrixFieldOf {
 public:
  // A field of zeros. The space must outlive it.
  explicit MatrixFieldOf(const MatrixSpace& space) : space_(&space), numbers_(space.numbers()) {}

  [[nodiscard]] const Number* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] Number* data() noexcept { return numbers_.data(); }

  // See MatrixSpace::fill. Collective.
  void fill(int direction, Side side) { space_->fill(numbers_.data(), direction, side); }

  // Convert own sites from and to lexicographic order: nine complex numbers per site, `step` complex numbers from one
  // site to the next.
  void load(const std::complex<double>* from, std::size_t step);
  void store(std::complex<double>* to, std::size_t step) const;

 private:
  const MatrixSpace* space_;
  Buffer<Number> numbers_;
};
using MatrixField = MatrixFieldOf<double>;

}  // namespace onehop::lattice::detail
