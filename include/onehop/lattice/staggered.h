// Staggered quarks on a gauge field that is split over ranks: M = 2 m + D with the hopping term
//
//   (D v)(x) = sum over mu of F_mu(x) v(x + mu) - adjoint(F_mu(x - mu)) v(x - mu) + L_mu(x) v(x + 3 mu) - adjoint(L_mu(x - 3 mu)) v(x - 3 mu)
//
// of fat links F and long links L with all phases and signs in them, as asqtad and HISQ have them; or the naive one-link term of a gauge
// field U: F_mu(x) = eta_mu(x) U_mu(x) with eta_mu(x) = (-1)^(x_0 + ... + x_(mu - 1)) or the phases of MILC, without L.
//
// D is anti-Hermitian and connects sites of different colour only. Faces travel while the interior is computed. A field is this
// rank's block in lexicographic order, three complex numbers a site; several right-hand sides are such fields one after the other.
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

// The order of the directions in eta. MILC's is time (the last direction) first: eta_t = 1 and, of the other directions,
// eta_i(x) = (-1)^(t + x_0 + ... + x_(i - 1)). Both operators are related by v(x) -> (-1)^(t (x_0 + ... + x_(dims - 2))) v(x).
enum class StaggeredPhases { standard, milc };

struct StaggeredOptions {
  bool antiperiodic =
      true;         // of a gauge field, in the last direction: links across the end of the lattice count negative
  int lanes = 8;    // of a vector, at most; fewer where so many do not fit
  int threads = 0;  // of a rank; 0: ONEHOP_THREADS, or its share of the cores
  StaggeredPhases phases = StaggeredPhases::standard;  // of a gauge field
};

struct StaggeredSolve {
  std::vector<std::complex<double>> solutions;  // one field after the other: of each right-hand side, or of each mass
  SolverReport report;
};

class Staggered {
 public:
  // Copies the links, with phases. Collective. Throws BadInput for odd extents, blocks that are too thin, and lanes below 1.
  explicit Staggered(const Gauge& gauge, const StaggeredOptions& options = {});
  // With given fat and long links, no long ones if `long_links` is empty: this rank's block in lexicographic order: site, direction,
  // row, column. `extents` and `grid` as in GeometrySpec. Collective. Throws BadInput for those, for another number of links, and for
  // blocks of less than three sites where they are cut and there are long links.
  Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
            std::span<const std::complex<double>> fat_links, std::span<const std::complex<double>> long_links,
            const StaggeredOptions& options = {});
  // The same with other parts inside, which benchmarks compare with.
  Staggered(const Group& group, std::vector<std::int64_t> extents, std::vector<int> grid,
            std::span<const std::complex<double>> fat_links, std::span<const std::complex<double>> long_links,
            const StaggeredOptions& options, const detail::StaggeredParts& parts);
  Staggered(Staggered&&) noexcept;
  Staggered& operator=(Staggered&&) noexcept;
  ~Staggered();

  [[nodiscard]] const Geometry& geometry() const noexcept;  // of the vectors inside
  [[nodiscard]] bool has_long_links() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  // Memory that this rank's links take as applications in this precision read them.
  [[nodiscard]] std::int64_t link_bytes(Precision precision) const;

  // D v, its parts of one colour only if `colour` is 0 (to even sites) or 1. Collective, as all that follow. They throw BadInput for
  // lengths that are not those of one or more fields.
  [[nodiscard]] std::vector<std::complex<double>> hop(std::span<const std::complex<double>> fields,
                                                      Precision precision = Precision::full, int colour = -1);
  // M v, or its adjoint (2 m - D) v.
  [[nodiscard]] std::vector<std::complex<double>> apply(std::span<const std::complex<double>> fields, double mass,
                                                        bool dagger = false, Precision precision = Precision::full);
  // (4 m^2 - D D) v, of the sites of each colour by itself.
  [[nodiscard]] std::vector<std::complex<double>> apply_normal(std::span<const std::complex<double>> fields,
                                                               double mass, Precision precision = Precision::full);

  // M x = b for one or more right-hand sides at once, by conjugate gradients on the even sites. A solve that ends without having converged
  // gives what it has and says so. Throws BadInput for a mass that is not above 0, as the operator may be singular then, and for sources that
  // are not of finite numbers.
  [[nodiscard]] StaggeredSolve solve(std::span<const std::complex<double>> sources, double mass,
                                     const SolverOptions& options = {});
  // Of one right-hand side, for several masses at once. The same errors.
  [[nodiscard]] StaggeredSolve solve_masses(std::span<const std::complex<double>> source,
                                            std::span<const double> masses, const SolverOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
