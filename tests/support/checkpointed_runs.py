"""Circuits for checkpoints, and runs that end before they are done."""

from pathlib import Path
from typing import Any

import numpy as np

import brute_force
from onehop import Group, quantum
from threads import run_threads

OBSERVABLE = "Z0 X5 + 0.5*Y2"


class Killed(Exception):
    """An exception that stands for any cause that ends a program."""


def mixed_circuit(seed: int, qubits: int = 6) -> quantum.Circuit:
    """Gates, swaps, measurements inside, conditions, a reset."""
    circuit = quantum.Circuit(qubits, 4)
    rng = np.random.default_rng(seed)
    for part in range(4):
        for qubit in range(qubits):
            circuit.ry(rng.uniform(1, 2), qubit)
        for operation in brute_force.random_circuit(qubits, qubits + 2, seed + part, 2).operations:
            circuit.add(operation)
        circuit.swap(*rng.permutation(qubits)[:2].tolist())
        if part < 3:
            circuit.measure(int(rng.integers(qubits)), part)
            with circuit.when(part):
                circuit.x(int(rng.integers(qubits))).h(0)
    return circuit.reset(1).h(1).measure(5, 3)


def killed_at(
    when: int,
    circuit: quantum.Circuit,
    file: Path,
    ranks: int,
    observables: tuple[str, ...] = (OBSERVABLE,),
    **more: Any,
) -> int:
    """Run with a checkpoint at every step, raise before step `when`, and return the number of steps seen."""
    steps = [0] * ranks

    def run(group: Group) -> None:
        def progress(*_: int) -> None:
            if steps[group.rank] == when:
                raise Killed
            steps[group.rank] += 1

        quantum.simulate(
            circuit,
            group,
            shots=50,
            seed=3,
            observables=observables,
            checkpoint=file,
            every=1e-9,
            progress=progress,
            **more,
        )

    try:
        run_threads(ranks, run)
    except Killed:
        return when
    return steps[0]
