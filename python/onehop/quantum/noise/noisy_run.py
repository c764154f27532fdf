"""One way through a circuit with noise: on a density matrix, or on a state vector with Kraus operators drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.noise.channel import Channel, NoiseModel
from onehop.quantum.noise.superoperators import moved
from onehop.quantum.random_numbers import uniform
from onehop.quantum.state import State

__all__ = ["Mixed", "Pure", "Run", "choose", "run_once"]


class MixedState(Protocol):
    """What a run needs of a `DensityMatrix`."""

    qubits: int
    state: State

    def do(self, items: Sequence[Operation | tuple[Channel, list[int]]]) -> None:
        """Apply gates and channels."""

    def probability_of_one(self, qubit: int) -> float:
        """Return the probability that a qubit is 1."""

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Keep the part where a qubit has this value."""


class Mixed:
    """Channels act on a density matrix as they are."""

    def __init__(self, matrix: MixedState) -> None:
        self.looks = matrix
        self.state = matrix.state
        self.clear()

    def clear(self) -> None:
        """Forget what was not flushed."""
        self._items: list[Operation | tuple[Channel, list[int]]] = []

    def gate(self, operation: Operation) -> None:
        """A gate, its condition decided."""
        self._items.append(operation)

    def channel(self, channel: Channel, qubits: list[int], _draw: Callable[[Any], int]) -> None:
        """A channel; nothing is drawn."""
        self._items.append((channel, qubits))

    def flush(self) -> None:
        """Do what has waited."""
        self.looks.do(self._items)
        self.clear()

    def probability_of_one(self, qubit: int) -> float:
        """The probability that a qubit is 1 now."""
        self.flush()
        return self.looks.probability_of_one(qubit)

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Keep the part where a qubit has this value, which has this probability."""
        self.looks.collapse(qubit, value, probability)


class Pure:
    """Of a channel one Kraus operator is drawn; gates wait until somebody has to look."""

    def __init__(self, state: State) -> None:
        self.looks = self.state = state
        self.clear()

    def clear(self) -> None:
        """Forget what was not flushed."""
        self._circuit = Circuit(self.state.qubits)

    def gate(self, operation: Operation) -> None:
        """A gate, its condition decided."""
        self._circuit.add(operation)

    def channel(self, channel: Channel, qubits: list[int], draw: Callable[[Any], int]) -> None:
        """A Kraus operator of a channel, which `draw` picks by the weights of all."""
        if channel.probabilities is None:
            self.flush()
            rho = self.looks.density_matrix(qubits)
            weights = np.array([np.trace(k @ rho @ k.conj().T).real for k in channel.kraus])
        else:  # nobody has to look
            weights = channel.probabilities
        chosen = draw(weights)
        kraus = channel.kraus[chosen] / np.sqrt(weights[chosen])
        if np.abs(kraus - np.eye(len(kraus))).max() > 1e-15:
            self._add(kraus, channel.name, qubits)

    def _add(self, matrix: NDArray[np.complex128], name: str, qubits: list[int]) -> None:
        if np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:
            self.gate(Operation("diagonal", name, qubits, values=np.diag(matrix).copy()))
        else:
            self.gate(Operation("matrix", name, qubits, values=np.ascontiguousarray(matrix).reshape(-1)))

    def flush(self) -> None:
        """Do what has waited."""
        if len(self._circuit):
            self.state._core.apply(self._circuit, 0)
            self.clear()

    def probability_of_one(self, qubit: int) -> float:
        """The probability that a qubit is 1 now."""
        self.flush()
        zero, one = self.looks.probabilities([qubit])
        return float(one / (zero + one))

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Keep the part where a qubit has this value, which has this probability."""
        self._add(np.diag([1.0 - value, float(value)]) / np.sqrt(probability), "collapse", [qubit])


def _holds(condition: Condition, clbits: list[int]) -> bool:
    if not condition:
        return True
    number = sum(clbits[bit] << i for i, bit in enumerate(condition.clbits))
    return (number == condition.value) != condition.negated


class Run:
    """One way through a circuit; whatever is drawn comes from `draw(weights)`."""

    def __init__(
        self, backend: Mixed | Pure, noise: NoiseModel, clbits: int, draw: Callable[[Any], int]
    ) -> None:
        self.backend = backend
        self.noise = noise
        self.draw = draw
        self.clbits = [0] * clbits

    def do(self, operations: Sequence[Operation]) -> None:
        """Operations and what the noise adds to each."""
        for operation in operations:
            holds = _holds(operation.condition, self.clbits)
            if operation.kind == "assign":
                self.clbits[operation.clbits[0]] = int(holds)
            elif holds and operation.is_gate:
                self._gate(operation)
            elif holds and operation.kind in ("measure", "reset"):
                self._measure(operation)
        self.backend.flush()

    def _gate(self, operation: Operation) -> None:
        # Without its condition, which holds.
        self.backend.gate(moved(operation, 0, conjugate=False) if operation.condition else operation)
        for channel, qubits in self.noise.after(operation):
            self.backend.channel(channel, qubits, self.draw)

    def _measure(self, operation: Operation) -> None:
        for i, qubit in enumerate(operation.targets):
            one = self.backend.probability_of_one(qubit)
            outcome = self.draw([1 - one, one])
            self.backend.collapse(qubit, outcome, one if outcome else 1 - one)
            if operation.kind == "measure":
                wrong = self.noise.misread(qubit)[outcome]
                flipped = self.draw([1 - wrong, wrong]) if wrong > 0 else 0
                self.clbits[operation.clbits[i]] = outcome ^ flipped
            elif outcome:
                self.backend.gate(Operation("matrix", "x", [qubit], values=np.array([0, 1, 1, 0], complex)))


def choose(weights: Any, numbers: Any) -> Any:
    """Which of the weights each number in [0, 1) falls on; never one that is 0."""
    cumulated = np.cumsum(np.maximum(weights, 0))
    return np.searchsorted(cumulated, np.asarray(numbers) * cumulated[-1], side="right")


def run_once(matrix: MixedState, circuit: Circuit, noise: NoiseModel, seed: int) -> list[int]:
    """Run a circuit on a density matrix that is there; returns the classical bits."""
    circuit.validate()
    if circuit.qubits != matrix.qubits:
        raise BadInput(f"the circuit has {circuit.qubits} qubits, the density matrix {matrix.qubits}")
    events = iter(range(1 << 40))
    run = Run(
        Mixed(matrix),
        noise,
        circuit.clbits + circuit.hidden_clbits,
        lambda weights: int(choose(weights, uniform(seed, 0, next(events)))),
    )
    run.do(circuit.operations)
    return run.clbits[: circuit.clbits]
