// Hybrid Monte Carlo for the Wilson gauge action (Duane et al., 1987): trajectories of H = -sum tr P^2 - beta / 3 sum
// Re tr U_p, with momenta P in the Lie algebra of SU(3) and dU/dt = P U, accepted with probability min(1, exp(-dH)).
#pragma once

#include <cstdint>
#include <memory>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

// Symplectic integrators of second order. A step of leapfrog evaluates the force once, one of Omelyan (Omelyan, Mryglod
// and Folk, 2003) twice.
enum class Integrator : std::uint8_t { leapfrog, omelyan };

struct HmcOptions {
  double beta = 6;
  double length = 1;  // of a trajectory, in molecular dynamics time
  int steps = 20;     // integrator steps per trajectory
  Integrator integrator = Integrator::omelyan;
  std::uint64_t seed = 1;
};

struct Trajectory {
  double delta_h = 0;  // H at its end minus H at its start
  bool accepted = false;
};

// The difference between the start of a trajectory and the end of its reversal; rounding errors only.
struct Reversal {
  double delta_h = 0;
  double links = 0;  // the largest |difference| of any matrix element of a link
};

class Hmc {
 public:
  // Copies the links of the gauge field. Collective. Throws BadInput unless beta is from 0 to 1e6, steps 1 or more and
  // length above 0.
  Hmc(const Gauge& gauge, const HmcOptions& options);
  Hmc(Hmc&&) noexcept;
  Hmc& operator=(Hmc&&) noexcept;
  ~Hmc();

  // Runs one trajectory. Its random numbers depend only on the seed, on `number` and on global coordinates, so the
  // field has the same bits on every grid of ranks, and a resumed run the same bits as an uninterrupted one.
  // Collective.
  Trajectory run(std::uint32_t number);

  // Runs a trajectory and its reversal, then restores the field. A test of reversibility. Collective.
  [[nodiscard]] Reversal reverse(std::uint32_t number);

  // Copies the links to a gauge field of the same geometry. Collective.
  void copy_to(Gauge& gauge) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
