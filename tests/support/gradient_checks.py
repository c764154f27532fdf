"""Random circuits and observables, and expectation values to compute differences of."""

from typing import Any

import numpy as np

from onehop import quantum
from onehop.quantum import Circuit, Parameter, PauliSum, PauliTerm

# Every gate with angles.
ANGLES = (
    *("rx", "ry", "rz", "p", "u1", "u2", "u3", "u", "r", "u0", "crx", "cry", "crz", "cp", "cu", "cu3"),
    *("rxx", "ryy", "rzz", "rzx"),
)
NUMBERS = {name: parameters for name, _, parameters in quantum.gate_names()}


def random_circuit(draw: np.random.Generator, qubits: int, gates: int) -> Circuit:
    """Return a circuit of all kinds of gates, whose angles depend on one or two parameters or on none."""
    circuit, count = Circuit(qubits), 4

    def angle() -> Any:
        one = Parameter(f"p{draw.integers(count)}") * float(draw.normal()) + float(draw.normal())
        if draw.random() < 0.3:
            one += 0.5 * Parameter(f"p{draw.integers(count)}")
        return float(draw.normal()) if draw.random() < 0.1 else one

    names = [*ANGLES, "h", "x", "s", "cx", "swap", "iswap", "pauli", "phase", "generated"]
    for name in draw.choice(names, gates).tolist():
        where = draw.choice(qubits, 2, replace=False).tolist()
        if name == "pauli":
            letters = "".join(draw.choice(list("XYZ"), len(where)))
            rest = [one for one in range(qubits) if one not in where]
            circuit.pauli_rotation(letters, angle(), where, controls=rest[: draw.integers(2)])
        elif name == "phase":
            circuit.global_phase(angle(), controls=where)
        elif name == "generated":
            matrix = draw.normal(size=(4, 4)) + 1j * draw.normal(size=(4, 4))
            circuit.generated(matrix + matrix.conj().T, 0.3 * angle(), where)
        else:
            width = {row[0]: row[1] for row in quantum.gate_names()}[name]
            circuit.gate(name, where[:width], [angle() for _ in range(NUMBERS[name])])
    return circuit


def random_sum(draw: np.random.Generator, qubits: int, terms: int) -> PauliSum:
    """Return a Hermitian sum of random strings."""
    found = []
    for _ in range(terms):
        letters = draw.choice(list("IXYZ"), qubits).tolist()
        string = tuple((qubit, letter) for qubit, letter in enumerate(letters) if letter != "I")
        found.append(PauliTerm(float(draw.normal()), string))
    return PauliSum(tuple(found))


def exact(circuit: Circuit, sums: Any) -> list[float]:
    """Expectation values of a circuit without parameters."""
    return [float(np.real(one)) for one in quantum.simulate(circuit, observables=sums).expectations]
