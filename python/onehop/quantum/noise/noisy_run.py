"""One run of a circuit with noise, on a density matrix or, with sampled Kraus operators, on a state vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput, Error
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.saved import saved_value
from onehop.quantum.noise.superoperators import moved
from onehop.quantum.random_numbers import uniform
from onehop.quantum.state import State
from onehop.quantum.steps import Jump, Mark, Misread, Save, SetState
from onehop.text import counted

__all__ = ["RESET", "ChannelStep", "Item", "Mixed", "Pure", "Run", "choose", "run_once"]

_MOST_TURNS = 100_000  # turns of all loops in one run
#: A reset as a channel on its qubit.
RESET = Channel((np.array([[1, 0], [0, 0]]), np.array([[0, 1], [0, 0]])), "reset")


@dataclass(frozen=True, eq=False)
class ChannelStep:
    """A channel on some qubits under a condition."""

    channel: Channel
    qubits: list[int]
    condition: Condition = field(default_factory=lambda: Condition([], 0))


Item = Operation | ChannelStep | Save | SetState | Misread | Mark | Jump


class MixedState(Protocol):
    """The part of `DensityMatrix` that a run uses; importing the class itself would be circular."""

    qubits: int
    state: State

    def do(self, items: Sequence[Operation | tuple[Channel, list[int]]]) -> None:
        """Apply gates and channels."""

    def probability_of_one(self, qubit: int) -> float:
        """Return the probability that a qubit is 1."""

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Project onto a value of a qubit."""


class Mixed:
    """Backend of a noisy run that applies channels to a density matrix.

    Gates and channels are queued, so that one placement serves all of them, until a measurement or `flush`.
    """

    def __init__(self, matrix: MixedState) -> None:
        self.target = matrix
        self.clear()

    @property
    def state(self) -> State:
        """The vector of the matrix."""
        return self.target.state

    def clear(self) -> None:
        """Discard the queue."""
        self._items: list[Operation | tuple[Channel, list[int]]] = []

    def gate(self, operation: Operation) -> None:
        """Queue a gate, ignoring its condition."""
        self._items.append(operation)

    def channel(self, channel: Channel, qubits: list[int], _draw: Callable[[Any], int]) -> None:
        """Queue a channel; nothing is sampled."""
        self._items.append((channel, qubits))

    def flush(self) -> None:
        """Apply the queue."""
        self.target.do(self._items)
        self.clear()

    def probability_of_one(self, qubit: int) -> float:
        """Apply the queue and return the probability that a qubit is 1."""
        self.flush()
        return self.target.probability_of_one(qubit)

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Project onto a value of a qubit, which has this probability, and normalise."""
        self.target.collapse(qubit, value, probability)

    def reset(self, qubit: int, draw: Callable[[Any], int]) -> None:
        """Queue a reset, which is a channel; nothing is sampled."""
        self.channel(RESET, [qubit], draw)

    def set_state(self, values: NDArray[np.complex128]) -> None:
        """Set the state to amplitudes or to a density matrix."""
        self.clear()
        if values.ndim == 1:
            self.target.set_vector(values)
        else:
            self.target.set_matrix(values)


class Pure:
    """Backend of a noisy run that samples one Kraus operator of each channel for a state vector.

    Gates and Kraus operators are queued until a probability is needed, or until `flush`.
    """

    def __init__(self, state: State) -> None:
        self.target = self.state = state
        self.clear()

    def clear(self) -> None:
        """Discard the queue."""
        self._circuit = Circuit(self.state.qubits)

    def gate(self, operation: Operation) -> None:
        """Queue a gate, whose condition must have been removed."""
        self._circuit.add(operation)

    def channel(self, channel: Channel, qubits: list[int], draw: Callable[[Any], int]) -> None:
        """Queue one Kraus operator of a channel; `draw` picks its index by the weights of all operators."""
        if channel.probabilities is None:
            self.flush()
            rho = self.target.density_matrix(qubits)
            weights = np.array([np.trace(k @ rho @ k.conj().T).real for k in channel.kraus])
        else:  # the weights do not depend on the state
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
        """Apply the queue."""
        if len(self._circuit):
            self.state._core.apply(self._circuit, 0)
            self.clear()

    def probability_of_one(self, qubit: int) -> float:
        """Apply the queue and return the probability that a qubit is 1."""
        self.flush()
        return self.target.probability_of_one(qubit)

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Queue the projection onto a value of a qubit, which has this probability, and the normalisation."""
        self._add(np.diag([1.0 - value, float(value)]) / np.sqrt(probability), "collapse", [qubit])

    def reset(self, qubit: int, draw: Callable[[Any], int]) -> None:
        """Measure a qubit and flip it if the outcome is 1."""
        one = self.probability_of_one(qubit)
        outcome = draw([1 - one, one])
        self.collapse(qubit, outcome, one if outcome else 1 - one)
        if outcome:
            self.gate(Operation("matrix", "x", [qubit], values=np.array([0, 1, 1, 0], complex)))

    def set_state(self, values: NDArray[np.complex128]) -> None:
        """Set the state to amplitudes."""
        if values.ndim != 1:
            raise BadInput(
                f"set_density_matrix: expected a state vector, found a matrix of shape {values.shape}; simulate a "
                "density matrix"
            )
        self.clear()
        self.target.set_amplitudes(values)


def _holds(condition: Condition, clbits: list[int]) -> bool:
    if not condition:
        return True
    number = sum(clbits[bit] << i for i, bit in enumerate(condition.clbits))
    return (number == condition.value) != condition.negated


class Run:
    """One run of a circuit with noise.

    Parameters
    ----------
    backend : Mixed or Pure
        Applies gates and channels.
    noise : NoiseModel
        Channels after gates, and readout errors.
    clbits : int
        Number of classical bits, hidden ones included.
    draw : callable
        Called with weights for each random choice: a measurement outcome, a readout error or a Kraus operator.
        Returns the chosen index.
    """

    def __init__(
        self, backend: Mixed | Pure, noise: NoiseModel, clbits: int, draw: Callable[[Any], int]
    ) -> None:
        self.backend = backend
        self.noise = noise
        self.draw = draw
        self.clbits = [0] * clbits
        self.saved: list[tuple[Save, tuple[int, ...], NDArray[Any]]] = []

    def do(self, items: Sequence[Item]) -> None:
        """Execute operations and the noise that follows each of them, and the steps of a program.

        Raises
        ------
        Error
            The loops make more than 100,000 turns.
        """
        marks = {item.label: place for place, item in enumerate(items) if isinstance(item, Mark)}
        place = turns = 0
        while place < len(items):
            item = items[place]
            place += 1
            holds = _holds(item.condition, self.clbits)
            if isinstance(item, Jump):
                turns += holds
                if turns > _MOST_TURNS:
                    raise Error(
                        f"the loops of a run made more than {_MOST_TURNS:,} turns; does one never end?"
                    )
                place = marks[item.label] if holds else place
            elif isinstance(item, Operation):
                self._operation(item, holds)
            elif holds:
                self._step(item)
        self.backend.flush()

    def _operation(self, operation: Operation, holds: bool) -> None:
        if operation.kind == "assign":
            self.clbits[operation.clbits[0]] = int(holds)
        elif holds and operation.is_gate:
            self._gate(operation)
        elif holds and operation.kind == "measure":
            self._measure(operation)
        elif holds and operation.kind == "reset":
            for qubit in operation.targets:
                self.backend.reset(qubit, self.draw)

    def _step(self, item: Item) -> None:
        if isinstance(item, ChannelStep):
            self.backend.channel(item.channel, item.qubits, self.draw)
        elif isinstance(item, SetState):
            self.backend.set_state(item.values)
        elif isinstance(item, Misread):
            row = item.table[sum(self.clbits[bit] << k for k, bit in enumerate(item.clbits))]
            read = self.draw(row)
            for k, bit in enumerate(item.clbits):
                self.clbits[bit] = read >> k & 1
        elif isinstance(item, Save):
            self.backend.flush()
            self.saved.append((item, tuple(self.clbits), saved_value(item, self.backend.target)))

    def _gate(self, operation: Operation) -> None:
        # The condition holds, so leave it out: the backends take gates without conditions.
        self.backend.gate(moved(operation, 0, conjugate=False) if operation.condition else operation)
        for channel, qubits in self.noise.after(operation):
            self.backend.channel(channel, qubits, self.draw)

    def _measure(self, operation: Operation) -> None:
        for i, qubit in enumerate(operation.targets):
            one = self.backend.probability_of_one(qubit)
            outcome = self.draw([1 - one, one])
            self.backend.collapse(qubit, outcome, one if outcome else 1 - one)
            wrong = self.noise.misread(qubit)[outcome]
            flipped = self.draw([1 - wrong, wrong]) if wrong > 0 else 0
            self.clbits[operation.clbits[i]] = outcome ^ flipped


def choose(weights: Any, numbers: Any) -> Any:
    """Choose indices by weight from uniform numbers.

    Parameters
    ----------
    weights : array, shape (k,)
        Weights, which need not be normalised. Negative ones, due to rounding, count as 0.
    numbers : float or array
        Numbers in [0, 1).

    Returns
    -------
    int or array of int
        An index for each number, never one of weight 0.
    """
    cumulated = np.cumsum(np.maximum(weights, 0))
    return np.searchsorted(cumulated, np.asarray(numbers) * cumulated[-1], side="right")


def run_once(matrix: MixedState, circuit: Circuit, noise: NoiseModel, seed: int) -> list[int]:
    """Run a circuit on an existing density matrix; return the classical bits. See `DensityMatrix.run`."""
    circuit.validate()
    circuit.require_bound()
    if circuit.qubits != matrix.qubits:
        raise BadInput(
            f"expected a circuit of {counted(matrix.qubits, 'qubit')}, as the density matrix has, found "
            f"{circuit.qubits}"
        )
    events = iter(range(1 << 40))
    run = Run(
        Mixed(matrix),
        noise,
        circuit.clbits + circuit.hidden_clbits,
        lambda weights: int(choose(weights, uniform(seed, 0, next(events)))),
    )
    run.do(circuit.operations)
    return run.clbits[: circuit.clbits]
