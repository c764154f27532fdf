"""From nothing to the mass of a pion with its error: heat bath, propagators, correlators, jackknife."""

import numpy as np

import onehop
from onehop.figure import empty_figure, save_figure
from onehop.lattice import Gauge, Staggered, mesons, thermalize

THERMALIZE, CONFIGURATIONS, APART, BIN = 40, 60, 4, 5

group = onehop.Group.world()
gauge = Gauge(group, (4, 4, 4, 12))  # x, y, z, t; unit links
history = thermalize(gauge, beta=5.7, sweeps=THERMALIZE, seed=7)  # heat bath and over-relaxation
pions = []
for _ in range(CONFIGURATIONS):
    history += thermalize(gauge, beta=5.7, sweeps=APART, seed=7, first=len(history))
    pions.append(mesons.staggered_mesons(gauge, Staggered(gauge), mass=0.3).pion)  # three solves

bins = np.reshape(pions, (-1, BIN, 12)).mean(1)  # neighbours in the chain are alike; bins of them less so
left_out = (bins.sum(0) - bins) / (len(bins) - 1)  # the jackknife: all bins but one
masses = np.array([mesons.effective_mass(one) for one in left_out])
mass = mesons.effective_mass(bins.mean(0))
error = np.sqrt((len(bins) - 1) * masses.var(0))

plateau = slice(2, 5)
weights = error[plateau] ** -2 / (error[plateau] ** -2).sum()
pion, samples = mass[plateau] @ weights, masses[:, plateau] @ weights
pion_error = np.sqrt((len(bins) - 1) * samples.var())

if group.rank == 0:
    print("plaquette after sweeps 1, 5, 40, 280:", *(f"{history[k]:.4f}" for k in (0, 4, 39, 279)))
    for t in range(6):
        print(f"t = {t} to {t + 1}: effective mass {mass[t]:.3f} ± {error[t]:.3f}")
    print(f"pion mass {pion:.3f} ± {pion_error:.3f} in units of the lattice spacing")
    figure = empty_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(history) + 1), history, color="#4c78a8", linewidth=1)
    left.axvspan(0, THERMALIZE, color="0.5", alpha=0.15)
    left.annotate("thermalization", (THERMALIZE / 2, 0.635), ha="center", rotation=90, va="center")
    left.set(xlabel="sweep", ylabel="average plaquette", xlim=(0, len(history)), ylim=(0.53, 0.68))
    times = np.arange(6) + 0.5
    right.errorbar(
        times, mass[:6], error[:6], fmt="s", color="black", markersize=4, capsize=3, label="effective mass"
    )
    right.fill_between(
        [2, 5], pion - pion_error, pion + pion_error, color="#f58518", alpha=0.5, label="plateau"
    )
    right.set(xlabel="t / a", ylabel="a m", xlim=(0, 6))
    right.legend()
    save_figure(figure, "lattice.svg")
