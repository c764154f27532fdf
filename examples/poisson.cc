// The Poisson equation on any number of ranks. Try: onehop launch -n 4 ./poisson
#include <cstdio>

#include "onehop/poisson/poisson.h"

int main() {
  const onehop::Group group = onehop::Group::world();
  const onehop::poisson::PoissonSpec spec{
      .extents = {120, 120}, .grid = onehop::poisson::poisson_grid({120, 120}, group.size()), .mass = 0.5};
  onehop::poisson::Poisson poisson(group, spec);
  const onehop::poisson::PoissonResult result = poisson.solve({.tolerance = 1e-10});
  if (group.rank() == 0) {
    std::printf("%lld iterations, residual %.3e, %.2f us per iteration\n", static_cast<long long>(result.iterations),
                result.history.back().norm, 1e6 * result.seconds / static_cast<double>(result.iterations));
  }
  return result.reached_tolerance ? 0 : 1;
}
