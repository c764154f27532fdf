#!/usr/bin/env python3
"""Seconds a shot of one noisy circuit: `noisy_shots.py onehop|qiskit-aer|qsim --shots N [--threads N] [--precision P]`.

20 qubits, 20 layers of a rotation of every qubit and CX of neighbours, with depolarising and amplitude damping of 1e-3
after every gate. `make reference-simulators` installs the other programs in an environment of their own; run this file
with its Python for them, and with onehop's for onehop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

QUBITS = 20
LAYERS = 20
RATE = 1e-3
Gate = tuple[str, list[float], list[int]]


def gates() -> list[Gate]:
    """Return the circuit; the angles are the same in every run."""
    angles = np.random.default_rng(1)
    made: list[Gate] = []
    for layer in range(LAYERS):
        made += [("u", angles.uniform(0, 6, 3).tolist(), [qubit]) for qubit in range(QUBITS)]
        made += [("cx", [], [qubit, qubit + 1]) for qubit in range(layer % 2, QUBITS - 1, 2)]
    return made


def onehop_run(shots: int, threads: int, precision: str) -> Callable[[], object]:
    """Prepare the run of onehop."""
    from onehop import quantum

    circuit = quantum.Circuit(QUBITS, QUBITS)
    for name, angles, qubits in gates():
        circuit.u(*angles, *qubits) if name == "u" else circuit.cx(*qubits)
    circuit.measure(range(QUBITS), range(QUBITS))
    noise = quantum.NoiseModel().add("depolarizing", RATE).add("amplitude_damping", RATE)
    return lambda: quantum.simulate_trajectories(
        circuit, noise=noise, trajectories=shots, shots=shots, seed=1, threads=threads, precision=precision
    )


def aer_run(shots: int, threads: int, precision: str) -> Callable[[], object]:
    """Prepare the run of qiskit-aer, with its shot branching."""
    from qiskit import QuantumCircuit
    from qiskit_aer import AerSimulator
    from qiskit_aer.noise import NoiseModel, amplitude_damping_error, depolarizing_error

    circuit = QuantumCircuit(QUBITS)
    for name, angles, qubits in gates():
        circuit.u(*angles, *qubits) if name == "u" else circuit.cx(*qubits)
    circuit.measure_all()
    damping = amplitude_damping_error(RATE)
    noise = NoiseModel()
    noise.add_all_qubit_quantum_error(depolarizing_error(RATE, 1).compose(damping), ["u"])
    noise.add_all_qubit_quantum_error(depolarizing_error(RATE, 2).compose(damping.tensor(damping)), ["cx"])
    simulator = AerSimulator(
        method="statevector",
        precision=precision,
        noise_model=noise,
        shot_branching_enable=True,
        shot_branching_sampling_enable=True,
        max_parallel_threads=threads,
        seed_simulator=1,
    )
    return lambda: simulator.run(circuit, shots=shots).result()


def qsim_run(shots: int, threads: int, precision: str) -> Callable[[], object]:
    """Prepare the run of qsim, which has single precision only."""
    import cirq
    import qsimcirq

    line = cirq.LineQubit.range(QUBITS)
    circuit = cirq.Circuit()
    # Cirq's rates are those of an error other than the identity, Aer's those of a random Pauli string.
    one, two = cirq.depolarize(RATE * 3 / 4), cirq.depolarize(RATE * 15 / 16, 2)
    for name, angles, qubits in gates():
        if name == "u":
            theta, phi, lam = angles
            cos, sin = np.cos(theta / 2), np.sin(theta / 2)
            matrix = np.array(
                [
                    [cos, -np.exp(1j * lam) * sin],
                    [np.exp(1j * phi) * sin, np.exp(1j * (phi + lam)) * cos],
                ]
            )
            circuit.append(cirq.MatrixGate(matrix)(line[qubits[0]]))
            circuit.append(one(line[qubits[0]]))
        else:
            circuit.append(cirq.CNOT(*(line[qubit] for qubit in qubits)))
            circuit.append(two(*(line[qubit] for qubit in qubits)))
        circuit.append(cirq.amplitude_damp(RATE)(line[qubit]) for qubit in qubits)
    circuit.append(cirq.measure(*line, key="m"))
    options = qsimcirq.QSimOptions(cpu_threads=threads, max_fused_gate_size=4)
    simulator = qsimcirq.QSimSimulator(options, seed=1)
    return lambda: simulator.run(circuit, repetitions=shots)


PROGRAMS = {"onehop": onehop_run, "qiskit-aer": aer_run, "qsim": qsim_run}


def main() -> None:
    """Print the seconds a shot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--shots", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["double", "single"], default="double", help="not of qsim")
    asked = parser.parse_args()
    run = PROGRAMS[asked.program](asked.shots, asked.threads, asked.precision)
    begin = time.perf_counter()
    run()
    seconds = time.perf_counter() - begin
    print(f"{asked.program}: {asked.shots} shots in {seconds:.2f} s, {seconds / asked.shots:.4f} s a shot")


if __name__ == "__main__":
    main()
