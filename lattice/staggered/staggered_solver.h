// The implementation of Staggered: its operator in every precision, and its solvers.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "lattice/staggered/dslash.h"
#include "onehop/lattice/staggered.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

// Replacements for the parts of a solve, for benchmarks. Not for reproducible solves and half-precision halos.
struct StaggeredParts {
  MakeExchange exchange = {};                       // the halo exchange
  std::function<void(std::span<double>)> sum = {};  // the sum over the ranks
  bool plain = false;                               // use the portable loops
};

// Creates the fields, links and sums of a precision when they are first needed, which is collective.
class StaggeredSolver {
 public:
  StaggeredSolver(DslashLattice lattice, int threads, StaggeredParts parts = {})
      : lattice_(std::move(lattice)), pool_(threads), parts_(std::move(parts)) {}

  [[nodiscard]] const DslashLattice& lattice() const noexcept { return lattice_; }
  [[nodiscard]] const base::ThreadPool& pool() noexcept { return pool_; }

  template <class Link, class Real>
  [[nodiscard]] DslashField<Link, Real>& dslash(int num_rhs, bool half_halo = false);
  [[nodiscard]] Sums& sums(int num_rhs, bool wide);
  // Bytes of all links as operators of this precision read them.
  [[nodiscard]] std::int64_t link_bytes(Precision precision) const;

  [[nodiscard]] StaggeredSolve solve(std::span<const std::complex<double>> sources, double mass,
                                     const SolverOptions& options);
  // Solves M x = b for each mass, or with `squares` M^dagger M x = b.
  [[nodiscard]] StaggeredSolve solve_masses(std::span<const std::complex<double>> source,
                                            std::span<const double> masses, const SolverOptions& options,
                                            bool squares = false);
  // T(-D D) v on the even sites of `field`, with the Chebyshev polynomial of this degree that is small on [low, high].
  [[nodiscard]] std::vector<std::complex<double>> filter(std::span<const std::complex<double>> field, int degree,
                                                         double low, double high);

 private:
  template <class Link>
  [[nodiscard]] const DslashLinks<Link>& links();
  // Checks that there is memory for dslash<Link, Real>() and a solve with it. Collective.
  template <class Link, class Real>
  void require_memory(int num_rhs) const;

  DslashLattice lattice_;
  base::ThreadPool pool_;
  StaggeredParts parts_;
  std::tuple<std::optional<DslashLinks<double>>, std::optional<DslashLinks<float>>,
             std::optional<DslashLinks<std::int16_t>>>
      links_;
  std::tuple<std::map<std::pair<int, bool>, std::unique_ptr<DslashField<double, double>>>,
             std::map<std::pair<int, bool>, std::unique_ptr<DslashField<float, float>>>,
             std::map<std::pair<int, bool>, std::unique_ptr<DslashField<std::int16_t, float>>>>
      fields_;
  std::map<std::pair<int, bool>, std::unique_ptr<Sums>> sums_;
};

// Calls a generic lambda with the types of links and of field numbers as template arguments.
template <class Body>
decltype(auto) with_precision(Precision precision, Body&& body) {
  if (precision == Precision::double_) return body.template operator()<double, double>();
  if (precision == Precision::single) return body.template operator()<float, float>();
  return body.template operator()<std::int16_t, float>();
}

}  // namespace onehop::lattice::detail
