// The implementation of Wilson: its operator in every precision, created when first needed.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lattice/wilson/wilson_core.h"
#include "onehop/lattice/wilson.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice {

struct Wilson::Impl {
  Impl(const Gauge& gauge, const WilsonOptions& the_options);

  using Number = std::complex<double>;
  template <class T>
  struct InPrecision {
    std::map<std::pair<int, bool>, std::unique_ptr<detail::WilsonStorage<T>>> storages;  // key: lanes, half
    // Key: lanes, num_rhs, half, half_halo.
    std::map<std::tuple<int, int, bool, bool>, std::unique_ptr<detail::WilsonCore<T>>> cores;
  };

  [[nodiscard]] GeometrySpec spec_of(int lanes) const;
  // The largest number of lanes that the options, the processor and the lattice allow in this precision.
  template <class T>
  [[nodiscard]] int lanes() const;
  // The operator for these numbers of lanes and right-hand sides. `half`, for T = float: links and clover blocks are
  // 16-bit integers. Collective.
  template <class T>
  [[nodiscard]] detail::WilsonCore<T>& core(int lanes, int num_rhs, bool half, bool half_halo = false);
  template <class T>
  [[nodiscard]] InPrecision<T>& in_precision();

  // The number of right-hand sides in `fields`. Throws BadInput if their length is not that of one or more fields.
  [[nodiscard]] int num_rhs_of(std::span<const Number> fields) const;
  // Convert one parity between fields in lexicographic order and the layout of WilsonCore.
  template <class T>
  void load(const detail::WilsonCore<T>& core, std::span<const Number> fields, int parity, T* to) const;
  template <class T>
  void unload(const detail::WilsonCore<T>& core, const T* from, int parity, std::span<Number> fields) const;

  // out = the even-odd preconditioned operator times in, both on even sites; `middle` is work space for a vector of odd
  // sites.
  template <class T>
  void precondition(detail::WilsonCore<T>& core, const T* in, T* middle, T* out, bool dagger) const;
  // The member functions of Wilson, in one precision.
  template <class T>
  [[nodiscard]] std::vector<Number> apply(std::span<const Number> fields, bool dagger);
  template <class T>
  [[nodiscard]] std::vector<Number> dslash(std::span<const Number> fields, bool dagger);
  template <class T>
  [[nodiscard]] std::vector<Number> precondition(std::span<const Number> fields, bool dagger);
  [[nodiscard]] WilsonSolve solve(std::span<const Number> sources, const SolverOptions& options,
                                  const WilsonSolver& solver);

  Group group;
  WilsonOptions options;
  GeometrySpec spec;
  std::vector<Number> links;
  std::vector<double> blocks;
  std::vector<double> inverses;
  base::ThreadPool pool;
  InPrecision<double> in_double;
  InPrecision<float> in_single;
  Geometry geometry;
};

}  // namespace onehop::lattice
