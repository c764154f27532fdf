// Hybrid Monte Carlo for the Wilson gauge action: trajectories of H = -sum tr P^2 - beta / 3 sum Re tr U_p, with momenta P in the algebra of
// SU(3), accepted with probability min(1, exp(-dH)).
#pragma once

#include <cstdint>
#include <memory>

#include "onehop/lattice/gauge.h"

namespace onehop::lattice {

enum class Integrator : std::uint8_t { leapfrog, omelyan };

struct HmcOptions {
  double beta = 6;
  double length = 1;  // of a trajectory, in units of its time
  int steps = 20;     // of the integrator; one of Omelyan's takes two forces
  Integrator integrator = Integrator::omelyan;
  std::uint64_t seed = 1;
};

struct Trajectory {
  double delta_h = 0;  // the energy at its end minus that at its beginning
  bool accepted = false;
};

// How far the way back ends from where the way there began.
struct Reversal {
  double delta_h = 0;
  double links = 0;  // the largest difference of any number of a link
};

class Hmc {
 public:
  // Works on copies of the gauge field's links. Collective. Throws BadInput for a beta that is not from 0 to 1e6, steps below 1, a length
  // that is not above 0.
  Hmc(const Gauge& gauge, const HmcOptions& options);
  Hmc(Hmc&&) noexcept;
  Hmc& operator=(Hmc&&) noexcept;
  ~Hmc();

  // One trajectory. Its momenta and its decision depend on the seed, `number` and places in the whole lattice alone: the field is
  // the same, bit for bit, for every grid of ranks, and one that goes on is the same as one that did not stop. Collective.
  Trajectory run(std::uint32_t number);

  // A trajectory there and back. Leaves the field as it was. Collective.
  [[nodiscard]] Reversal reverse(std::uint32_t number);

  // Puts the links into a gauge field of the same geometry. Collective.
  void copy_to(Gauge& gauge) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
