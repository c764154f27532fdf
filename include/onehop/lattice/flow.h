// The gradient flow of a gauge field by the Wilson action (Wilson flow), and what is measured on smooth fields.
#pragma once

#include <complex>
#include <memory>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Averages over the sites of the whole lattice, the same bits for every grid of ranks.
struct FieldStrength {
  double energy_plaquette = 0;  // 2 sum Re tr(1 - U_p) over the plaquettes of a site
  double energy_clover = 0;     // -sum tr F^2 over the planes, F from the four plaquettes around a site
  double charge =
      0;  // the topological charge, the sum of -tr(F F~) / (16 pi^2) over all sites; 0 unless there are four directions
};

// Collective.
[[nodiscard]] FieldStrength field_strength(const Gauge& gauge);

// The average over space of tr / 3 of the product of all links in time (the last direction). The same bits for every grid. Collective.
[[nodiscard]] std::complex<double> polyakov_loop(const Gauge& gauge);

// What a step with error control did.
struct FlowStep {
  double epsilon = 0;  // its length
  double error = 0;    // see Flow::try_step
  double next = 0;     // the length that is expected to reach the tolerance in the next step
};

// The longest step that is stable on smooth fields: 2.51 / (4 dims), as the flow damps no mode faster than with 4 dims and the method
// amplifies what is damped faster than 2.51 / step. With longer steps rounding errors grow until they are all there is.
[[nodiscard]] double longest_stable_flow_step(int dims);

// dV/dt = P(C V^dagger) V, with C the sum of the staples around V and P the part in the algebra of SU(3): by the third-order Runge-Kutta
// method of Luescher (2010), whose error in a unit of time goes with the third power of the step. t is in units of the squared lattice
// spacing. The same bits for every grid of ranks.
class Flow {
 public:
  // Starts from these links, which it copies. Collective.
  explicit Flow(const Gauge& gauge);
  Flow(Flow&&) noexcept;
  Flow& operator=(Flow&&) noexcept;
  ~Flow();

  [[nodiscard]] double time() const noexcept;
  // One step. Collective. Throws BadInput for a step that is not above 0 and at most 1.
  void step(double epsilon);
  // One step, if its error is at most `tolerance`; otherwise the links and the time stay as they are. Returns the error: the largest
  // difference |V - W| of a link (the root of the sum of its squared numbers) to the second-order method embedded in the same stages, which
  // goes with the third power of the step; the third-order method's own error is smaller. The same on every rank and for every
  // grid; infinite if numbers are not finite. Collective. The first call allocates two more fields. Throws BadInput for a step as above, for a
  // tolerance that is not above 0.
  [[nodiscard]] double try_step(double epsilon, double tolerance);
  // One step of at most `epsilon`, shortened until its error is at most `tolerance`. Collective. Throws BadInput for a step as above, for
  // a tolerance below 1e-12 or above 1; Error if even very short steps do not reach the tolerance.
  FlowStep step_within(double epsilon, double tolerance);
  // Of the links as they are now. Collective.
  [[nodiscard]] FieldStrength field_strength();
  // Puts the links into a gauge field of the same geometry. Collective.
  void copy_to(Gauge& gauge) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
