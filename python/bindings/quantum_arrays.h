// Conversions that the bindings of the quantum simulator share.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/state.h"
#include "python/bindings/bindings.h"

template <typename T>
using QuantumArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using QuantumIndices = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Moves a vector into an array.
template <typename T>
QuantumArray<T> as_array(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {held->data(), {held->size()}, owner};
}

// The getter of a member as an array, which is a copy.
template <class Owner, class T>
[[nodiscard]] auto array_of(std::vector<T> Owner::* member) {
  return [member](const Owner& owner) { return as_array(owner.*member); };
}

// The same as `as_array` for an array of `rows` rows of equal length.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> as_rows(std::vector<T> values, std::size_t rows) {
  auto* held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {held->data(), {rows, rows == 0 ? 0 : held->size() / rows}, owner};
}

[[nodiscard]] inline onehop::quantum::Precision precision_from(const std::string& name) {
  return onehop::quantum::precision_from_string(name);
}

// Options of a state; `staging` 0: the default.
[[nodiscard]] inline onehop::quantum::StateOptions state_options(int threads, std::int64_t staging,
                                                                 std::string device) {
  onehop::quantum::StateOptions options;
  options.threads = threads;
  options.device = std::move(device);
  if (staging > 0) options.staging = staging;
  return options;
}
