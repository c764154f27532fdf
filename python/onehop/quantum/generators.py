"""Common benchmark circuits: QFT, phase estimation, spin models, GHZ, random circuits, quantum volume and QAOA.

Each function returns a `Circuit`, which `onehop quantum circuit KIND` writes as OpenQASM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onehop.arguments import whole_number
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Register
from onehop.quantum.graphs import random_regular_bonds
from onehop.quantum.io.hamlib import heisenberg, tfim
from onehop.quantum.observables import PauliSum
from onehop.quantum.trotter import add_trotter
from onehop.quantum.two_qubit import add_two_qubit_unitary, haar_unitary
from onehop.text import counted

__all__ = ["evolution", "ghz", "heisenberg", "measured", "qaoa", "qft", "qpe", "quantum_volume", "random_circuit",
           "tfim"]  # fmt: skip


def _empty(qubits: int, name: str, clbits: int = 0) -> Circuit:
    circuit = Circuit(whole_number(qubits, "qubits", 1), clbits, name)
    circuit.registers = [Register("c", 0, clbits)] if clbits else []
    return circuit


def measured(circuit: Circuit) -> Circuit:
    """Return a circuit without classical bits, followed by a measurement of each qubit."""
    return (_empty(circuit.qubits, circuit.name, circuit.qubits) + circuit).measure_all()


def _transform(qubits: int) -> Circuit:
    """Return the quantum Fourier transform."""
    circuit = Circuit(qubits)
    for high in reversed(range(qubits)):
        circuit.h(high)
        for low in reversed(range(high)):
            circuit.cp(math.pi / 2 ** (high - low), low, high)
    for low in range(qubits // 2):
        circuit.swap(low, qubits - 1 - low)
    return circuit


def _prepared(qubits: int, state: str | int, name: str) -> Circuit:
    """Return the preparation of a basis state: a number, bits with the last qubit first, or "neel"."""
    circuit = _empty(qubits, name)
    if state == "neel":
        number = sum(1 << qubit for qubit in range(0, qubits, 2))
    elif isinstance(state, str):
        if len(state) != qubits or set(state) - {"0", "1"}:
            raise BadInput(f"expected a state of {counted(qubits, 'bit')} (0 or 1) or neel, found {state!r}")
        number = int(state, 2)
    else:
        number = state
    if not 0 <= number < 1 << qubits:
        raise BadInput(f"expected a basis state from 0 to {(1 << qubits) - 1}, found {number}")
    for qubit in range(qubits):
        if number >> qubit & 1:
            circuit.x(qubit)
    return circuit


def qft(qubits: int, *, state: str | int = 1, inverse: bool = False) -> Circuit:
    """Quantum Fourier transform of a basis state x: amplitude y becomes exp(2 pi i x y / 2^n) / sqrt(2^n).

    Parameters
    ----------
    qubits : int
        Number of qubits n.
    state : int or str
        Basis state x: a number, bits with the last qubit first, or "neel" (1 on every second qubit).
    inverse : bool
        If True, make the inverse transform.

    Raises
    ------
    BadInput
        There is no such basis state.
    """
    circuit = _prepared(qubits, state, f"qft of {counted(qubits, 'qubit')}")
    transform = _transform(qubits)
    return circuit + (transform.inverse() if inverse else transform)


def qpe(qubits: int, *, phase: float | None = None) -> Circuit:
    """Quantum phase estimation of diag(1, exp(2 pi i phase)): the outcome divided by 2^(qubits-1) is the phase.

    Parameters
    ----------
    qubits : int
        Number of qubits: qubits - 1 counting qubits, and a last one that holds the eigenstate.
    phase : float, optional
        Phase in [0, 1). Default: the number nearest to 1/3 that is measured with certainty.

    Raises
    ------
    BadInput
        There are fewer than 2 qubits, or the phase is outside [0, 1).
    """
    if qubits < 2:
        raise BadInput(f"phase estimation needs at least 2 qubits, found {qubits}")
    counting = qubits - 1
    if phase is None:
        phase = round(2**counting / 3) / 2**counting
    if not 0 <= phase < 1:
        raise BadInput(f"expected a phase in [0, 1), found {phase}")
    circuit = _empty(qubits, f"qpe of {counted(qubits, 'qubit')}, phase {phase!r}", counting).x(counting)
    for qubit in range(counting):
        circuit.h(qubit)
    for qubit in range(counting):
        circuit.cp(2 * math.pi * math.fmod(phase * 2**qubit, 1.0), qubit, counting)
    return (circuit + _transform(counting).inverse()).measure(range(counting), range(counting))


def evolution(
    model: PauliSum,
    qubits: int,
    *,
    time: float = 1.0,
    steps: int = 10,
    order: int = 2,
    state: str | int = "neel",
    mirror: bool = False,
    name: str = "evolution",
) -> Circuit:
    """Trotterised time evolution of a basis state.

    Parameters
    ----------
    model : PauliSum
        Hamiltonian, such as `tfim(...)` or `heisenberg(...)`.
    qubits : int
        Number of qubits of the circuit.
    time : float
        Time t.
    steps : int
        Number of equal time steps.
    order : int
        Order of the Trotter formula, 1 or 2: the error falls as t²/steps or as t³/steps².
    state : int or str
        Initial basis state: a number, bits with the last qubit first, or "neel" (1 on every second qubit).
    mirror : bool
        If True, append the inverse circuit, so that the final state is the initial state.
    name : str
        Name in messages.

    Raises
    ------
    BadInput
        There is no such basis state, a weight is not real, there is no such order, there are no steps, or too few
        qubits.
    """
    body = add_trotter(_empty(qubits, name), model, time, steps, order=order)
    circuit = _prepared(qubits, state, name) + body
    return circuit.barrier() + body.inverse() if mirror else circuit


def ghz(qubits: int) -> Circuit:
    """GHZ state (|0...0> + |1...1>) / sqrt(2)."""
    circuit = _empty(qubits, f"ghz of {counted(qubits, 'qubit')}").h(0)
    for qubit in range(1, qubits):
        circuit.cx(qubit - 1, qubit)
    return circuit


def random_circuit(qubits: int, *, depth: int = 20, seed: int = 0) -> Circuit:
    """Random circuit: layers of random one-qubit gates and of CZ gates on random pairs.

    Parameters
    ----------
    qubits : int
        Number of qubits.
    depth : int
        Number of layers.
    seed : int
        The same seed gives the same circuit.
    """
    random = np.random.default_rng(seed)
    circuit = _empty(qubits, f"random circuit of {counted(qubits, 'qubit')}, depth {depth}, seed {seed}")
    for _ in range(depth):
        for qubit in range(qubits):
            theta, phi, lambda_ = random.uniform(-math.pi, math.pi, 3)
            circuit.u(theta, phi, lambda_, qubit)
        order = random.permutation(qubits)
        for a, b in zip(order[::2], order[1::2], strict=False):
            circuit.cz(a, b)
    return circuit


def quantum_volume(qubits: int, *, depth: int | None = None, seed: int = 0) -> Circuit:
    """Quantum volume circuit: layers of Haar-random two-qubit gates on random pairs.

    Parameters
    ----------
    qubits, seed
        As for `random_circuit`.
    depth : int, optional
        Number of layers. Default: the number of qubits.
    """
    depth = qubits if depth is None else depth
    random = np.random.default_rng(seed)
    name = f"quantum volume circuit of {counted(qubits, 'qubit')}, depth {depth}, seed {seed}"
    circuit = _empty(qubits, name)
    for _ in range(depth):
        order = [int(qubit) for qubit in random.permutation(qubits)]
        for a, b in zip(order[::2], order[1::2], strict=False):
            add_two_qubit_unitary(circuit, haar_unitary(4, random), a, b)
    return circuit


def qaoa(
    qubits: int, *, layers: int = 2, degree: int = 3, seed: int = 0, angles: Sequence[float] | None = None
) -> Circuit:
    """Quantum approximate optimisation algorithm (QAOA) for the maximum cut of a random regular graph.

    Parameters
    ----------
    qubits : int
        Number of qubits, one per vertex of the graph.
    layers : int
        Number of pairs of cost and mixing layers.
    degree : int
        Number of neighbours of each vertex.
    seed : int
        Seed of the graph and of the angles.
    angles : sequence of float, optional
        Cost and mixing angle of each layer in turn: 2 * layers numbers. Default: random angles.

    Raises
    ------
    BadInput
        There is no such graph, or the number of angles is wrong.
    """
    random = np.random.default_rng(seed)
    bonds = random_regular_bonds(qubits, degree, random)
    chosen = random.uniform(0, math.pi, 2 * layers) if angles is None else angles
    if len(chosen) != 2 * layers:
        raise BadInput(
            f"expected {counted(2 * layers, 'angle')} for {counted(layers, 'layer')}, found {len(chosen)}"
        )
    circuit = _empty(qubits, f"qaoa of {counted(qubits, 'qubit')}, {counted(layers, 'layer')}, seed {seed}")
    for qubit in range(qubits):
        circuit.h(qubit)
    for layer in range(layers):
        for a, b in bonds:
            circuit.rzz(float(chosen[2 * layer]), a, b)
        for qubit in range(qubits):
            circuit.rx(2 * float(chosen[2 * layer + 1]), qubit)
    return circuit
