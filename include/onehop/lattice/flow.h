// The gradient flow of a gauge field (Wilson flow), and observables on smooth fields.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Energy densities, averaged over the sites of the whole lattice, and the topological charge. The same bits on every
// grid of ranks.
struct FieldStrength {
  double energy_plaquette = 0;  // 2 sum Re tr(1 - U_p) over the planes
  double energy_clover = 0;     // -sum tr F^2 over the planes, with F from the four plaquettes around a site
  // The topological charge: the sum of -tr(F F~) / (16 pi^2) over all sites. 0 unless there are four directions.
  double charge = 0;
};

// Measures the links of `gauge`. Collective.
[[nodiscard]] FieldStrength field_strength(const Gauge& gauge);

// The average over space of tr / 3 of the product of all links in time (the last direction). The same bits on every
// grid. Collective.
[[nodiscard]] std::complex<double> polyakov_loop(const Gauge& gauge);

// The outcome of a step with error control.
struct FlowStep {
  double epsilon = 0;  // the length of the step
  double error = 0;    // see Flow::try_step
  double next = 0;     // the length with which the next step should just reach the tolerance
};

// The gauge action whose gradient a flow follows: that of Wilson; the tree-level improved one of Symanzik, with
// plaquettes (5/3) and rectangles of 2x1 plaquettes (-1/12); or that with the force of Zeuthen, which multiplies the
// force F(x, mu) of Symanzik by 1 + D D* / 12, with the covariant second difference along the link (Ramos and Sint,
// arXiv:1508.05552).
enum class FlowAction : std::uint8_t { wilson, symanzik, zeuthen };

// Returns the longest step that is stable on smooth fields, 2.51 / rate: the fastest mode of the Wilson flow decays
// with the rate 4 dims, and the method is stable up to rate * step = 2.51. Beyond it rounding errors grow
// exponentially.
[[nodiscard]] double longest_stable_flow_step(int dims, FlowAction action = FlowAction::wilson);

// Integrates dV/dt = P(C V^dagger) V, where C is the sum of the staples around V (of all paths of the action) and P
// projects to the Lie algebra of SU(3), with the third-order Runge-Kutta method of Luescher (arXiv:1006.4518, appendix
// C). The error at fixed t falls with the third power of the step. t is in units of the squared lattice spacing. The
// same bits on every grid of ranks.
class Flow {
 public:
  // Copies the links of the gauge field and starts at t = 0. Collective.
  explicit Flow(const Gauge& gauge, FlowAction action = FlowAction::wilson);
  Flow(Flow&&) noexcept;
  Flow& operator=(Flow&&) noexcept;
  ~Flow();

  [[nodiscard]] double time() const noexcept;
  // Makes one step. Collective. Throws BadInput for a step that is not above 0 and at most 1.
  void step(double epsilon);
  // Makes one step if its error is at most `tolerance`; otherwise leaves links and time unchanged. Returns the error:
  // the largest Frobenius norm |V - W| of a link, where W is the result of the embedded second-order method (Fritzsch
  // and Ramos, arXiv:1301.4388). It falls with the third power of the step; the error of V itself is smaller. It is the
  // same on every rank and every grid, and infinite if numbers are not finite. The first call allocates two more
  // fields. Collective. Throws BadInput for a step as above and for a tolerance that is not above 0.
  [[nodiscard]] double try_step(double epsilon, double tolerance);
  // Makes one step of at most `epsilon`, shortened until its error is at most `tolerance`. Collective. Throws BadInput
  // for a step as above and for a tolerance below 1e-12 or above 1; Error if even very short steps do not reach the
  // tolerance.
  FlowStep step_within(double epsilon, double tolerance);
  // Measures the current links. Collective.
  [[nodiscard]] FieldStrength field_strength();
  // Copies the links to a gauge field of the same geometry. Collective.
  void copy_to(Gauge& gauge) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
