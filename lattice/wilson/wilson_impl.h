// What is behind Wilson: the operator in all precisions, made when first needed.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lattice/wilson/wilson_core.h"
#include "onehop/lattice/wilson.h"

namespace onehop::lattice {

struct Wilson::Impl {
  Impl(const Gauge& gauge, const WilsonOptions& the_options);

  using Number = std::complex<double>;
  template <class T>
  struct InPrecision {
    std::map<std::pair<int, bool>, std::unique_ptr<detail::WilsonStorage<T>>> storages;  // by lanes, whether half
    // By lanes, num_rhs, whether half, whether with half faces.
    std::map<std::tuple<int, int, bool, bool>, std::unique_ptr<detail::WilsonCore<T>>> cores;
  };

  [[nodiscard]] GeometrySpec spec_of(int lanes) const;
  // So many lanes as the options, the processor and the lattice allow for this precision.
  template <class T>
  [[nodiscard]] int lanes() const;
  // `half`: with matrices of 16-bit integers, T being float. Collective.
  template <class T>
  [[nodiscard]] detail::WilsonCore<T>& core(int lanes, int num_rhs, bool half, bool half_halo = false);
  template <class T>
  [[nodiscard]] InPrecision<T>& in_precision();

  // How many fields these are.
  [[nodiscard]] int num_rhs_of(std::span<const Number> fields) const;
  template <class T>
  void load(const detail::WilsonCore<T>& core, std::span<const Number> fields, int parity, T* to) const;
  template <class T>
  void unload(const detail::WilsonCore<T>& core, const T* from, int parity, std::span<Number> fields) const;

  // The preconditioned operator on even sites; `middle` is a vector of odd ones.
  template <class T>
  void precondition(detail::WilsonCore<T>& core, const T* in, T* middle, T* out, bool dagger) const;
  // M on both parities: out = factor * other + M in, with `in` and `other` vectors of both parities.
  template <class T>
  [[nodiscard]] std::vector<Number> apply(std::span<const Number> fields, bool dagger);
  template <class T>
  [[nodiscard]] std::vector<Number> dslash(std::span<const Number> fields, bool dagger);
  template <class T>
  [[nodiscard]] std::vector<Number> precondition(std::span<const Number> fields, bool dagger);
  // In wilson_solve.cc.
  [[nodiscard]] WilsonSolve solve(std::span<const Number> sources, const SolverOptions& options,
                                  const WilsonSolver& solver);

  Group group;
  WilsonOptions options;
  GeometrySpec spec;
  std::vector<Number> links;
  std::vector<double> blocks;
  std::vector<double> inverses;
  detail::Team team;
  InPrecision<double> full;
  InPrecision<float> single;
  Geometry geometry;
};

}  // namespace onehop::lattice
