// Staggered quarks on a gauge field that is split over ranks: M = 2 m + D with the hopping term
//
//   (D v)(x) = sum over mu of F_mu(x) v(x + mu) - adjoint(F_mu(x - mu)) v(x - mu) + L_mu(x) v(x + 3 mu) -
//   adjoint(L_mu(x - 3 mu)) v(x - 3 mu)
//
// where the fat links F and the long links L contain all phases and signs, as for asqtad and HISQ. The naive one-link
// operator of a gauge field U has no L, and F_mu(x) = eta_mu(x) U_mu(x) with eta_mu(x) = (-1)^(x_0 + ... + x_(mu - 1))
// or the phases of MILC.
//
// D is anti-Hermitian and connects only sites of opposite parity. The halo exchange overlaps with the interior. A field
// is this rank's block in lexicographic order with three complex numbers per site; several right-hand sides are stored
// one field after the other.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onehop/lattice/gauge.h"
#include "onehop/lattice/solver.h"

namespace onehop::lattice {

namespace detail {
struct StaggeredParts;
}  // namespace detail

// The order of directions in eta. In MILC's convention time (the last direction) comes first: eta_t = 1, and in the
// other directions eta_i(x) = (-1)^(t + x_0 + ... + x_(i - 1)). The two operators are related by v(x) -> (-1)^(t s)
// v(x) with s = x_0 + ... + x_(dims - 2).
enum class StaggeredPhases { standard, milc };

// Multiplies the links of a rank's block, in lexicographic order (site, direction, row, column), with the staggered
// phases, and if `antiperiodic` with -1 for each time that they cross the end of the last direction. `length` is the
// length of a link in sites: 1, or 3 for long links, which have the same phases. Throws BadInput for another number of
// links.
void multiply_staggered_phases(std::span<std::complex<double>> links, const Geometry& geometry, int rank,
                               int length = 1, bool antiperiodic = true,
                               StaggeredPhases phases = StaggeredPhases::standard);

// The links of an operator of a gauge field: its own, or those of improved quarks (smearing.h).
enum class StaggeredAction : std::uint8_t { naive, asqtad, hisq };

struct StaggeredOptions {
  // Boundary condition in the last direction, for operators of a gauge field: links across the end of the lattice
  // change sign.
  bool antiperiodic = true;
  // The largest number of lanes of a vector; the operator uses fewer if these do not fit.
  int lanes = 8;
  // Threads of this rank; 0: ONEHOP_THREADS, or this rank's share of the cores.
  int threads = 0;
  // Staggered phases, for operators of a gauge field.
  StaggeredPhases phases = StaggeredPhases::standard;
  // Tadpole factor of asqtad.
  double u0 = 1;
};

struct StaggeredSolve {
  std::vector<std::complex<double>> solutions;  // one field per right-hand side, or per mass
  SolverReport report;
};

// A staggered operator. All member functions that take fields are collective, and throw BadInput unless their length is
// that of one or more fields.
class Staggered {
 public:
  // The naive operator of a gauge field. Copies the links and multiplies them with the phases. Collective. Throws
  // BadInput for odd extents, blocks that are too thin, and `lanes` below 1.
  explicit Staggered(const Gauge& gauge, const StaggeredOptions& options = {});
  // The operator of an action on a gauge field, whose fat and long links it computes. Collective. Throws BadInput as
  // the constructors do, for a u0 that is not above 0, and if a smeared link is singular.
  [[nodiscard]] static Staggered from_gauge(const Gauge& gauge, StaggeredAction action,
                                            const StaggeredOptions& options = {});
  // The operator of given fat and long links; an empty `long_links` means none. Links are this rank's block in
  // lexicographic order: site, direction, row, column. `extents`, `grid` and `rank_at` as in GeometrySpec. Collective.
  // Throws BadInput for an invalid geometry, another number of links, and blocks thinner than three sites in a
  // direction that is cut if there are long links.
  Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
            std::span<const std::complex<double>> fat_links, std::span<const std::complex<double>> long_links,
            const StaggeredOptions& options = {}, std::vector<int> rank_at = {});
  // The same with replaced parts, for benchmarks.
  Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
            std::span<const std::complex<double>> fat_links, std::span<const std::complex<double>> long_links,
            const StaggeredOptions& options, const detail::StaggeredParts& parts, std::vector<int> rank_at = {});
  Staggered(Staggered&&) noexcept;
  Staggered& operator=(Staggered&&) noexcept;
  ~Staggered();

  // The layout of vectors inside the operator.
  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] bool has_long_links() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  // Bytes of this rank's links as applications in this precision read them.
  [[nodiscard]] std::int64_t link_bytes(Precision precision) const;

  // D v. With `parity` 0 or 1 only the even or odd sites of the result are computed; the others are 0.
  [[nodiscard]] std::vector<std::complex<double>> dslash(std::span<const std::complex<double>> fields,
                                                         Precision precision = Precision::double_, int parity = -1);
  // M v, or its adjoint (2 m - D) v.
  [[nodiscard]] std::vector<std::complex<double>> apply(std::span<const std::complex<double>> fields, double mass,
                                                        bool dagger = false, Precision precision = Precision::double_);
  // M^dagger M v = (4 m^2 - D D) v, which does not mix the two parities.
  [[nodiscard]] std::vector<std::complex<double>> apply_mdagm(std::span<const std::complex<double>> fields, double mass,
                                                              Precision precision = Precision::double_);

  // Solves M x = b for one or more right-hand sides at once, by conjugate gradients on the even sites. A solve that
  // does not converge returns the best solution it found, with `report.converged` false. Throws BadInput for a mass
  // that is not above 0, because the operator may be singular then, and for sources that are not finite.
  [[nodiscard]] StaggeredSolve solve(std::span<const std::complex<double>> sources, double mass,
                                     const SolverOptions& options = {});
  // Solves for one right-hand side and several masses at once (multi-shift). Throws the same errors.
  [[nodiscard]] StaggeredSolve solve_masses(std::span<const std::complex<double>> source,
                                            std::span<const double> masses, const SolverOptions& options = {});
  // Solves (M^dagger M + shift) x = b for one right-hand side and several shifts at once. The residuals are those of
  // these systems. Throws the same errors, and BadInput unless 4 m^2 + shift is above 0.
  [[nodiscard]] StaggeredSolve solve_shifts(std::span<const std::complex<double>> source, double mass,
                                            std::span<const double> shifts, const SolverOptions& options = {});
  // T(-D D) v on the even sites, and 0 on the odd ones: the Chebyshev polynomial of `degree` that is between -1 and 1
  // on [low, high] and grows outside, so that it amplifies eigenvectors below `low`. In double precision. Throws
  // BadInput unless 0 <= low < high and the degree is 0 or more.
  [[nodiscard]] std::vector<std::complex<double>> filter(std::span<const std::complex<double>> field, int degree,
                                                         double low, double high);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
