"""The ground state of a hydrogen molecule: a circuit with parameters, and gradient descent."""

import numpy as np

import onehop
from onehop import quantum
from onehop.figure import empty_figure, save_figure

# H2 at a distance of 0.735 angstrom on two qubits, in Hartree, without the repulsion of the nuclei.
HAMILTONIAN = quantum.PauliSum.parse(
    "-1.052373245772859 + 0.39793742484318045*Z0 - 0.39793742484318045*Z1"
    " - 0.01128010425623538*Z0 Z1 + 0.18093119978423156*X0 X1"
)
EXACT = -1.857275030  # its lowest eigenvalue
HARTREE_FOCK = -1.836967991  # of the state |01>: both electrons in the lower orbital

group = onehop.Group.world()
circuit = quantum.Circuit(2)
for layer in range(2):
    for qubit in range(2):
        circuit.ry(quantum.Parameter(f"y{layer}{qubit}"), qubit)
        circuit.rz(quantum.Parameter(f"z{layer}{qubit}"), qubit)
    circuit.cx(0, 1)
compiled = quantum.compile(circuit, group)  # plans once

angles = np.linspace(0.1, 1.0, len(compiled.parameters))
energies = []
for step in range(201):
    found = compiled.gradients(angles, [HAMILTONIAN])  # collective
    energies.append(float(found.values[0]))
    if group.rank == 0 and step % 50 == 0:
        slope = np.abs(found.derivatives).max()
        print(f"step {step:3d}: energy {energies[-1]:.6f}, largest derivative {slope:.5f}")
    angles = angles - 1.2 * found.derivatives[0]

if group.rank == 0:
    print(f"above the exact value: {energies[-1] - EXACT:.6f}")
    figure = empty_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(energies, color="#4c78a8", label="gradient descent")
    left.axhline(HARTREE_FOCK, color="0.5", linestyle=":", label="Hartree-Fock")
    left.axhline(EXACT, color="#f58518", linestyle="--", label="exact")
    left.set(xlabel="step", ylabel="energy in Hartree")
    left.legend()
    right.semilogy(np.array(energies) - EXACT, color="#4c78a8")
    right.axhline(0.0016, color="0.5", linestyle=":", label="chemical accuracy, 1 kcal/mol")
    right.set(xlabel="step", ylabel="energy above the exact one in Hartree")
    right.legend()
    save_figure(figure, "gradients.svg")
