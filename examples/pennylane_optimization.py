"""A VQE and a QAOA with PennyLane on the device onehop.qubit: the ground state of H2, and the largest cut of a graph.

    python examples/pennylane_optimization.py [FIGURE]

Needs PennyLane and matplotlib. Prints the last values and draws both optimizations.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pennylane as qml

from onehop.figure import empty_figure, save_figure
from onehop.pennylane import OnehopQubit

# H2 at a distance of 0.735 angstrom on two qubits, in Hartree, without the repulsion of the nuclei.
H2 = qml.Hamiltonian(
    [
        -1.052373245772859,
        0.39793742484318045,
        -0.39793742484318045,
        -0.01128010425623538,
        0.18093119978423156,
    ],
    [qml.Identity(0), qml.Z(0), qml.Z(1), qml.Z(0) @ qml.Z(1), qml.X(0) @ qml.X(1)],
)
NODES, LAYERS = 8, 4
EDGES = [(a, (a + 1) % NODES) for a in range(NODES)] + [(a, a + NODES // 2) for a in range(NODES // 2)]


def vqe(steps: int = 150) -> list[float]:
    """Minimise the energy; return it after each step."""

    @qml.qnode(OnehopQubit(wires=2), diff_method="adjoint")
    def energy(angles: np.ndarray) -> float:
        qml.StronglyEntanglingLayers(angles, wires=[0, 1])
        return qml.expval(H2)

    angles = qml.numpy.array(np.random.default_rng(1).normal(size=(2, 2, 3)), requires_grad=True)
    optimizer = qml.AdamOptimizer(0.1)
    energies = []
    for _ in range(steps):
        angles, before = optimizer.step_and_cost(energy, angles)
        energies.append(float(before))
    return energies


def qaoa(steps: int = 150) -> list[float]:
    """Maximise the expected number of cut edges; return it after each step."""
    cost = qml.Hamiltonian(
        [0.5] * len(EDGES) + [-0.5 * len(EDGES)], [qml.Z(a) @ qml.Z(b) for a, b in EDGES] + [qml.Identity(0)]
    )
    mixer = qml.qaoa.x_mixer(range(NODES))

    @qml.qnode(OnehopQubit(wires=NODES), diff_method="adjoint")
    def expected(angles: np.ndarray) -> float:
        for wire in range(NODES):
            qml.Hadamard(wire)
        for gamma, beta in angles:
            qml.qaoa.cost_layer(gamma, cost)
            qml.qaoa.mixer_layer(beta, mixer)
        return qml.expval(cost)

    angles = qml.numpy.array(np.linspace([0.1, 0.6], [0.6, 0.1], LAYERS), requires_grad=True)
    optimizer = qml.AdamOptimizer(0.05)
    cuts = []
    for _ in range(steps):
        angles, before = optimizer.step_and_cost(expected, angles)
        cuts.append(-float(before))
    return cuts


def largest_cut() -> int:
    """Count the edges of the largest cut, over all cuts."""
    return max(
        sum(sides[a] != sides[b] for a, b in EDGES) for sides in itertools.product((0, 1), repeat=NODES)
    )


def main() -> None:
    """Run both and draw them."""
    exact = float(np.linalg.eigvalsh(qml.matrix(H2, wire_order=[0, 1]))[0])
    energies, cuts, most = vqe(), qaoa(), largest_cut()
    print(f"VQE: energy {energies[-1]:.6f}, above the exact value by {energies[-1] - exact:.6f}")
    print(f"QAOA: {cuts[-1]:.3f} of {most} edges, at first {cuts[0]:.3f}")
    figure = empty_figure(8, 3.2)
    left, right = figure.subplots(1, 2)
    left.plot(energies, color="0.35")
    left.axhline(exact, color="C1", linestyle="--", label="exact ground state")
    left.legend()
    left.set(xlabel="step", ylabel="energy of H2 in Hartree")
    right.plot(cuts, color="0.35")
    right.axhline(most, color="C1", linestyle="--", label="largest cut")
    right.legend()
    right.set(xlabel="step", ylabel="expected number of cut edges")
    save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "pennylane_optimization.svg")


if __name__ == "__main__":
    main()
