// The common parts of the benchmarks of `onehop bench`. Each source binds its own for Python. All are collective, and
// return (name, role, µs of each round) of each candidate. The library measures by itself, for `onehop tune` and
// `onehop tour` (measure/); benchmarks use its names as their own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <nanobind/stl/array.h>

#include "lattice/support/buffer.h"
#include "measure/rounds.h"
#include "python/bindings/bindings.h"
#include "python/bindings/samples.h"

namespace onehop::bench {

using namespace measure;  // NOLINT(google-build-using-namespace)
using Extents = std::array<std::int64_t, 4>;

// A candidate that calls once() in each repetition.
template <class Once>
[[nodiscard]] Candidate repeated(std::string name, Role role, Once once, double scale = 1) {
  return {std::move(name), role,
          [once = std::move(once)](int repetitions) mutable {
            for (int i = 0; i < repetitions; ++i) once();
          },
          scale};
}

// A function that calls a Python object, which must live as long.
[[nodiscard]] inline std::function<void()> call_of(nb::handle handle) {
  return [handle] {
    const nb::gil_scoped_acquire gil;
    handle();
  };
}

// Random numbers between -bound and bound, the same in every run.
template <class T>
[[nodiscard]] lattice::detail::Buffer<T> random_numbers(std::size_t count, double bound = 1, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> even(-bound, bound);
  lattice::detail::Buffer<T> found(count);
  for (T& x : found.span()) x = static_cast<T>(even(random));
  return found;
}

// The sites of a rank's part of a lattice.
[[nodiscard]] inline double sites_of_rank(const Extents& extents, int ranks) {
  double sites = 1.0 / ranks;
  for (const std::int64_t extent : extents) sites *= static_cast<double>(extent);
  return sites;
}

// The work of one rank: flop, and the least bytes that it must move if nothing is in cache.
struct LatticeWork {
  double flops = 0;
  double bytes = 0;
};
template <class Measure>
[[nodiscard]] nb::tuple with_work(const LatticeWork& work, const Measure& measure) {
  return nb::make_tuple(work.flops, work.bytes, samples::measure(measure));
}

void bind_codec(nb::module_& module);
void bind_collectives(nb::module_& module);
void bind_dslash(nb::module_& module);
void bind_halo(nb::module_& module);
void bind_messages(nb::module_& module);
void bind_permutation(nb::module_& module);
void bind_smearing(nb::module_& module);
void bind_su3(nb::module_& module);
void bind_wilson(nb::module_& module);

}  // namespace onehop::bench
