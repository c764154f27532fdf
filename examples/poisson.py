"""The Poisson equation on any number of ranks. Try: onehop launch -n 4 poisson.py."""

import onehop

group = onehop.Group.world()
poisson = onehop.Poisson(group, extents=(120, 120), mass=0.5)
result = poisson.solve(tolerance=1e-10)
if group.rank == 0:
    iteration, residual = result.history[-1]
    print(
        f"{iteration} iterations, residual {residual:.3e}, {1e6 * result.seconds / iteration:.2f} µs per iteration"
    )
assert result.reached_tolerance
