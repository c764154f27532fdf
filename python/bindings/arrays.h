// Numbers of C++ as arrays of NumPy, and arrays as numbers.
#pragma once

#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/tuple.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

template <class Number>
using NumberArray = nb::ndarray<nb::numpy, Number>;

// Moves numbers into an array of this shape.
template <class Number>
[[nodiscard]] NumberArray<Number> as_array(std::vector<Number> values, const std::vector<std::size_t>& shape) {
  auto* held = new std::vector<Number>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  return {held->data(), shape.size(), shape.data(), owner};
}

template <class Number = std::complex<double>>
[[nodiscard]] std::span<const Number> numbers(const Memory& memory) {
  return {reinterpret_cast<const Number*>(memory.bytes().data()), memory.bytes().size() / sizeof(Number)};
}

// The result of work that needs no Python.
template <class Work>
[[nodiscard]] auto released(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

// Calls a function of Python, or none, from work that does not hold the lock of Python. The function must outlive the
// result.
template <class... Arguments>
[[nodiscard]] std::function<void(Arguments...)> callback(const nb::object& function) {
  if (function.is_none()) return {};
  return [&function](Arguments... arguments) {
    const nb::gil_scoped_acquire acquired;
    function(arguments...);
  };
}
