// Fields of lattices as arrays.
#pragma once

#include "onehop/lattice/geometry.h"
#include "python/bindings/arrays.h"

// Moves this rank's block, in lexicographic order, into an array of shape (..., y, x, numbers of a site), or `several`
// such blocks into (blocks, ..., y, x, numbers of a site).
template <class Number>
[[nodiscard]] NumberArray<Number> block_array(std::vector<Number> values, const onehop::lattice::Geometry& geometry,
                                              const std::vector<std::size_t>& site, bool several = false) {
  const auto block = geometry.block();
  std::vector<std::size_t> shape(block.rbegin(), block.rend());
  shape.insert(shape.end(), site.begin(), site.end());
  std::size_t length = 1;
  for (const std::size_t extent : shape) length *= extent;
  if (several) shape.insert(shape.begin(), values.size() / length);
  return as_array(std::move(values), shape);
}
