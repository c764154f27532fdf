// Solving with the staggered operator: what Staggered has inside, in all precisions.
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

namespace onehop::lattice::detail {

// What can be put in place of the parts of a solve, as benchmarks compare; none of it for wide sums and half faces.
struct StaggeredParts {
  MakeExchange exchange = {};                       // of faces
  std::function<void(std::span<double>)> sum = {};  // over the ranks
  bool plain = false;                               // loops without the processor's vector instructions
};

// Fields, links and sums of every precision that has been asked for. Made when they are first needed, which is collective.
class StaggeredSolver {
 public:
  StaggeredSolver(DslashLattice lattice, int threads, StaggeredParts parts = {})
      : lattice_(std::move(lattice)), team_(threads), parts_(std::move(parts)) {}

  [[nodiscard]] const DslashLattice& lattice() const noexcept { return lattice_; }
  [[nodiscard]] Team& team() noexcept { return team_; }

  template <class Link, class Real>
  [[nodiscard]] DslashField<Link, Real>& dslash(int num_rhs, bool half_halo = false);
  [[nodiscard]] Sums& sums(int num_rhs, bool wide);
  // Of all links as operators of this precision read them.
  [[nodiscard]] std::int64_t link_bytes(Precision precision) const;

  [[nodiscard]] StaggeredSolve solve(std::span<const std::complex<double>> sources, double mass,
                                     const SolverOptions& options);
  [[nodiscard]] StaggeredSolve solve_masses(std::span<const std::complex<double>> source,
                                            std::span<const double> masses, const SolverOptions& options);

 private:
  template <class Link>
  [[nodiscard]] const DslashLinks<Link>& links();

  DslashLattice lattice_;
  Team team_;
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

// Calls `what` with types of links and of numbers as template arguments.
template <class What>
decltype(auto) with_precision(Precision precision, What&& what) {
  if (precision == Precision::double_) return what.template operator()<double, double>();
  if (precision == Precision::single) return what.template operator()<float, float>();
  return what.template operator()<std::int16_t, float>();
}

}  // namespace onehop::lattice::detail
