"""From a thermalized SU(3) gauge field to the effective mass of the pion, on a small lattice."""

import numpy as np

import onehop
from onehop.figure import empty_figure, save_figure
from onehop.lattice import Gauge, Staggered, mesons, thermalize

group = onehop.Group.world()
gauge = Gauge(group, (4, 4, 4, 12))  # x, y, z, t; unit links
history = thermalize(gauge, beta=5.7, sweeps=20, seed=7)  # heat bath and over-relaxation

found = mesons.staggered_mesons(gauge, Staggered(gauge), mass=0.3)  # three solves
mass = mesons.effective_mass(found.pion)

if group.rank == 0:
    print("plaquette after sweeps 1, 5, 20:", *(f"{history[k]:.4f}" for k in (0, 4, 19)))
    for t, (value, effective) in enumerate(zip(found.pion[:6], mass[:6], strict=False)):
        print(f"t = {t}: C(t) = {value:.4e}, m_eff = {effective:.3f}")
    figure = empty_figure(8, 3.5)
    left, right = figure.subplots(1, 2)
    left.plot(range(1, 21), history, "o-", color="0.2", markersize=3)
    left.set(xlabel="sweep", ylabel="average plaquette", xticks=range(0, 21, 5))
    times = np.arange(len(mass)) + 0.5
    right.plot(times[:6], mass[:6], "s", color="0.2")
    right.set(xlabel="t / a", ylabel="effective pion mass, a m", xticks=range(7), ylim=(0, 1.6))
    save_figure(figure, "lattice.svg")
