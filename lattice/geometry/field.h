// The memory layout of fields, and their conversion from and to lexicographic order (x fastest, as in NumPy arrays).
//
// A field has one element per vector of the geometry, followed by the ghosts: [vector][rhs][number][re, im][lane].
// `numbers` counts the complex numbers of a site (3 for a colour vector, 9 for a link, 12 for a spinor), `num_rhs` the
// fields stored side by side (right-hand sides, or directions). Half-precision fields of users exist in Python only
// (onehop/lattice/field.py).
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "lattice/support/buffer.h"
#include "onehop/lattice/geometry.h"

namespace onehop::lattice::detail {

struct FieldShape {
  std::int64_t vectors = 0;
  std::int64_t ghosts = 0;
  int num_rhs = 1;
  int numbers = 3;
  int lanes = 1;

  // Counts of real numbers: of one right-hand side in a vector, of a whole vector, and of all vectors without ghosts.
  [[nodiscard]] std::int64_t unit() const { return std::int64_t{2} * numbers * lanes; }
  [[nodiscard]] std::int64_t element() const { return unit() * num_rhs; }
  [[nodiscard]] std::int64_t size() const { return vectors * element(); }
  // The offset of the real part of a number; its imaginary part is `lanes` further.
  [[nodiscard]] std::int64_t at(std::int64_t vector, int rhs, int number, int lane) const {
    return ((vector * num_rhs + rhs) * numbers + number) * 2 * lanes + lane;
  }
};

inline FieldShape field_shape(const Geometry& geometry, int numbers, int num_rhs = 1) {
  return {geometry.vectors(), geometry.ghosts(), num_rhs, numbers, geometry.spec().lanes};
}

template <class Real>
struct Field {
  Field() = default;
  explicit Field(const FieldShape& of, bool with_ghosts = true)
      : shape(of), memory(static_cast<std::size_t>((of.vectors + (with_ghosts ? of.ghosts : 0)) * of.element())) {}

  [[nodiscard]] Real* data() const noexcept { return memory.data(); }
  FieldShape shape;
  Buffer<Real> memory;
};

// Returns the lexicographic number in the block of the site in each lane of each vector: [vector][lane].
inline std::vector<std::int64_t> lexicographic_sites(const Geometry& geometry) {
  std::vector<std::int64_t> sites;
  sites.reserve(static_cast<std::size_t>(geometry.sites()));
  for (std::int64_t vector = 0; vector < geometry.vectors(); ++vector) {
    for (int lane = 0; lane < geometry.spec().lanes; ++lane) sites.push_back(geometry.site(vector, lane));
  }
  return sites;
}

// Convert from and to lexicographic order, [site][stride], where the field's numbers of a site start at `offset`. A
// stride of 0 means that of the field.
template <class Real, class Number>
void load_lexicographic(std::span<const std::complex<Number>> values, const std::vector<std::int64_t>& sites,
                        Field<Real>& to, int rhs = 0, int stride = 0, int offset = 0) {
  const FieldShape& shape = to.shape;
  if (stride == 0) stride = shape.numbers;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::complex<Number>* from = values.data() + sites[i] * stride + offset;
    const auto vector = static_cast<std::int64_t>(i) / shape.lanes;
    Real* at = to.data() + shape.at(vector, rhs, 0, static_cast<int>(static_cast<std::int64_t>(i) % shape.lanes));
    for (std::int64_t n = 0; n < shape.numbers; ++n) {
      at[2 * n * shape.lanes] = static_cast<Real>(from[n].real());
      at[(2 * n + 1) * shape.lanes] = static_cast<Real>(from[n].imag());
    }
  }
}
template <class Real, class Number>
void store_lexicographic(const Field<Real>& from, const std::vector<std::int64_t>& sites,
                         std::span<std::complex<Number>> values, int rhs = 0, int stride = 0, int offset = 0) {
  const FieldShape& shape = from.shape;
  if (stride == 0) stride = shape.numbers;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::complex<Number>* to = values.data() + sites[i] * stride + offset;
    const auto vector = static_cast<std::int64_t>(i) / shape.lanes;
    const Real* at =
        from.data() + shape.at(vector, rhs, 0, static_cast<int>(static_cast<std::int64_t>(i) % shape.lanes));
    for (std::int64_t n = 0; n < shape.numbers; ++n)
      to[n] = {static_cast<Number>(at[2 * n * shape.lanes]), static_cast<Number>(at[(2 * n + 1) * shape.lanes])};
  }
}

}  // namespace onehop::lattice::detail
