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
  // Of the links as they are now. Collective.
  [[nodiscard]] FieldStrength field_strength();
  // Puts the links into a gauge field of the same geometry. Collective.
  void copy_to(Gauge& gauge) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
