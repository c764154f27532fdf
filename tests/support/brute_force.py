"""Reference for circuits in NumPy, with one tensor product per gate, independent of the simulator."""

import numpy as np
from numpy.typing import NDArray

from onehop import quantum

PAULI = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}


def pauli_matrix(letters: str) -> NDArray[np.complex128]:
    """The first letter is that of the least significant bit."""
    matrix = np.eye(1, dtype=complex)
    for letter in letters:
        matrix = np.kron(PAULI[letter], matrix)
    return matrix


def sum_matrix(observable: quantum.PauliSum, qubits: int) -> NDArray[np.complex128]:
    """Return the matrix of an observable."""
    total = np.zeros((1 << qubits, 1 << qubits), complex)
    for term in observable:
        letters = dict(term.paulis)
        total += term.coefficient * pauli_matrix("".join(letters.get(qubit, "I") for qubit in range(qubits)))
    return total


def matrix_of(o: quantum.Operation) -> NDArray[np.complex128]:
    size = 1 << len(o.targets)
    if o.kind == "matrix":
        return o.values.reshape(size, size)
    if o.kind == "diagonal":
        return np.diag(o.values)
    if o.kind == "swap":
        return np.eye(4)[[0, 2, 1, 3]]
    if o.kind == "global_phase":
        return np.array([[np.exp(1j * o.angle)]])
    assert o.kind == "pauli_rotation"
    return np.cos(o.angle / 2) * np.eye(size) - 1j * np.sin(o.angle / 2) * pauli_matrix(o.paulis)


def apply(vector: NDArray[np.complex128], o: quantum.Operation) -> NDArray[np.complex128]:
    """Through the index of each amplitude, as the definition says."""
    if not o.is_gate:
        return vector
    index = np.arange(len(vector))
    fits = np.ones(len(vector), bool)
    for i, control in enumerate(o.controls):
        fits &= (index >> control & 1) == (o.control_values >> i & 1)
    row = sum((index >> t & 1) << i for i, t in enumerate(o.targets)) if o.targets else np.zeros_like(index)
    rest = index & ~sum(1 << t for t in o.targets)
    matrix = matrix_of(o)
    result = np.zeros_like(vector)
    for column in range(len(matrix)):
        source = rest | sum((column >> i & 1) << t for i, t in enumerate(o.targets))
        result += matrix[row, column] * vector[source]
    return np.where(fits, result, vector)


def run(circuit: quantum.Circuit, vector: NDArray[np.complex128] | None = None) -> NDArray[np.complex128]:
    if vector is None:
        vector = np.zeros(1 << circuit.qubits, complex)
        vector[0] = 1
    for operation in circuit.operations:
        vector = apply(vector, operation)
    return vector


def random_unitary(rng: np.random.Generator, size: int) -> NDArray[np.complex128]:
    q, r = np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))
    return q * (np.diag(r) / abs(np.diag(r)))


def random_vector(rng: np.random.Generator, qubits: int) -> NDArray[np.complex128]:
    v = rng.normal(size=1 << qubits) + 1j * rng.normal(size=1 << qubits)
    return v / np.linalg.norm(v)


NAMES = [n for n in quantum.gate_names() if n[1] >= 0]


def add_random_gate(c: quantum.Circuit, rng: np.random.Generator, max_targets: int = 3) -> None:
    """A gate of any kind on any qubits, with any controls."""
    kind = rng.choice(["named", "matrix", "diagonal", "rotation", "phase", "block", "swap"])
    order = [int(q) for q in rng.permutation(c.qubits)]
    k = int(rng.integers(1, min(max_targets, c.qubits) + 1))
    targets, others = order[:k], order[k:]
    controls = others[: int(rng.integers(0, min(3, len(others)) + 1))] if rng.random() < 0.5 else []
    how = {"controls": controls, "control_values": [int(b) for b in rng.integers(0, 2, len(controls))]}
    if kind == "named":
        fitting = [n for n in NAMES if n[1] <= min(c.qubits, 4) and max_targets >= 2]
        name, qubits, parameters = fitting[int(rng.integers(len(fitting)))] if fitting else ("h", 1, 0)
        c.gate(name, order[:qubits], rng.uniform(-4, 4, parameters))
    elif kind == "matrix":
        c.unitary(random_unitary(rng, 1 << k), targets, **how)
    elif kind == "diagonal":
        c.diagonal(np.exp(1j * rng.uniform(0, 7, 1 << k)), targets, **how)
    elif kind == "rotation":
        c.pauli_rotation("".join(rng.choice(list("IXYZ"), k)), rng.uniform(-4, 4), targets, **how)
    elif kind == "phase":
        c.global_phase(rng.uniform(0, 7), controls=controls)
    elif kind == "swap" and c.qubits > 1:
        c.swap(*order[:2])
    else:  # matrices that only select on some targets, or flip
        blocks = [random_unitary(rng, 2), random_unitary(rng, 2), PAULI["X"], np.array([[0, 1j], [-1, 0]])]
        if k == 1 or c.qubits < 2:
            c.unitary(blocks[int(rng.integers(2, 4))], targets[:1])
        else:
            m = np.zeros((4, 4), complex)
            m[:2, :2], m[2:, 2:] = blocks[0], blocks[1]
            c.unitary(m, targets[:2], **how)


def random_circuit(qubits: int, gates: int, seed: int, max_targets: int = 3) -> quantum.Circuit:
    rng = np.random.default_rng(seed)
    c = quantum.Circuit(qubits, qubits)
    for _ in range(gates):
        add_random_gate(c, rng, max_targets)
    return c
