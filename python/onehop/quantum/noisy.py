"""Circuits with noise: on density matrices, or as many trajectories of a state vector."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.channel import Channel, NoiseModel
from onehop.quantum.circuit import Circuit, Condition, Operation, Register
from onehop.quantum.density_matrix import DensityMatrix, moved, on_rows_and_columns
from onehop.quantum.observables import PauliSum
from onehop.quantum.random_numbers import uniform
from onehop.quantum.state import State

__all__ = ["NoisyResult", "run_once", "simulate_density", "simulate_trajectories"]

_READ = 1 << 41  # events apart from those of measurements inside a circuit


@dataclass
class NoisyResult:
    """What a simulation with noise came to; the same on every rank.

    Attributes
    ----------
    shots, seed, ranks, exchanges, bytes_moved
        As of `Result`.
    counts : dict from str to int
        As of `Result`.
    expectations : list of float or complex
        Of each observable; with trajectories the average over them.
    errors : list of float
        The standard error of each average: 0 for a density matrix without measurements inside.
    runs : int
        Different histories of outcomes and of noise, each run once.
    state : State or DensityMatrix
        After the last run.
    """

    shots: int
    seed: int
    counts: dict[str, int]
    expectations: list[float | complex]
    errors: list[float]
    seconds: float
    ranks: int
    runs: int
    exchanges: int
    bytes_moved: int
    state: State | DensityMatrix = field(repr=False)
    resumed: bool = False


class _Mixed:
    """Channels act on a density matrix as they are."""

    def __init__(self, matrix: DensityMatrix) -> None:
        self.looks = matrix
        self.state = matrix.state
        self.clear()

    def clear(self) -> None:
        self._items: list[Operation | tuple[Channel, list[int]]] = []

    def gate(self, operation: Operation) -> None:
        self._items.append(operation)

    def channel(self, channel: Channel, qubits: list[int], _draw: Callable[[Any], int]) -> None:
        self._items.append((channel, qubits))

    def flush(self) -> None:
        self.looks.do(self._items)
        self.clear()

    def probability_of_one(self, qubit: int) -> float:
        self.flush()
        return self.looks.probability_of_one(qubit)

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        self.looks.collapse(qubit, value, probability)


class _Pure:
    """Of a channel one Kraus operator is drawn; gates wait until somebody has to look."""

    def __init__(self, state: State) -> None:
        self.looks = self.state = state
        self.clear()

    def clear(self) -> None:
        self._circuit = Circuit(self.state.qubits)

    def gate(self, operation: Operation) -> None:
        self._circuit.add(operation)

    def channel(self, channel: Channel, qubits: list[int], draw: Callable[[Any], int]) -> None:
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
        if len(self._circuit):
            self.state._core.apply(self._circuit, 0)
            self.clear()

    def probability_of_one(self, qubit: int) -> float:
        self.flush()
        zero, one = self.looks.probabilities([qubit])
        return float(one / (zero + one))

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        self._add(np.diag([1.0 - value, float(value)]) / np.sqrt(probability), "collapse", [qubit])


@dataclass
class _Branch:
    history: tuple[int, ...]
    shots: NDArray[np.int64]


def _holds(condition: Condition, clbits: list[int]) -> bool:
    if not condition:
        return True
    number = sum(clbits[bit] << i for i, bit in enumerate(condition.clbits))
    return (number == condition.value) != condition.negated


def _split_last(circuit: Circuit) -> tuple[list[Operation], list[tuple[int, int]]]:
    """The circuit without measurements that nothing follows, and those: (classical bit, qubit)."""
    kept: list[Operation] = []
    last: list[tuple[int, int]] = []
    used: set[int] = set()
    bits: set[int] = set()
    for operation in reversed(circuit.operations):
        if operation.kind == "barrier":
            continue
        if operation.kind == "measure" and not operation.condition:
            inside = []
            for qubit, bit in reversed(list(zip(operation.targets, operation.clbits, strict=True))):
                if qubit in used or bit in bits:
                    inside.insert(0, (qubit, bit))
                    used.add(qubit)
                else:
                    last.append((bit, qubit))
                bits.add(bit)
            if inside:
                qubits, clbits = zip(*inside, strict=True)
                kept.append(Operation("measure", "measure", list(qubits), clbits=list(clbits)))
            continue
        used.update(operation.targets, operation.controls)
        bits.update(operation.clbits, operation.condition.clbits)
        kept.append(operation)
    return kept[::-1], last


class _Run:
    """One way through a circuit; whatever is drawn comes from `draw(weights)`."""

    def __init__(
        self, backend: _Mixed | _Pure, noise: NoiseModel, clbits: int, draw: Callable[[Any], int]
    ) -> None:
        self.backend = backend
        self.noise = noise
        self.draw = draw
        self.clbits = [0] * clbits

    def do(self, operations: Sequence[Operation]) -> None:
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


def _choose(weights: Any, numbers: Any) -> Any:
    """Which of the weights each number in [0, 1) falls on; never one that is 0."""
    cumulated = np.cumsum(np.maximum(weights, 0))
    return np.searchsorted(cumulated, np.asarray(numbers) * cumulated[-1], side="right")


def run_once(matrix: DensityMatrix, circuit: Circuit, noise: NoiseModel, seed: int) -> list[int]:
    """Run a circuit on a density matrix that is there; returns the classical bits."""
    circuit.validate()
    if circuit.qubits != matrix.qubits:
        raise BadInput(f"the circuit has {circuit.qubits} qubits, the density matrix {matrix.qubits}")
    events = iter(range(1 << 40))
    run = _Run(
        _Mixed(matrix),
        noise,
        circuit.clbits + circuit.hidden_clbits,
        lambda weights: int(_choose(weights, uniform(seed, 0, next(events)))),
    )
    run.do(circuit.operations)
    return run.clbits[: circuit.clbits]


class _Simulation:
    def __init__(
        self,
        backend: _Mixed | _Pure,
        circuit: Circuit,
        noise: NoiseModel,
        trajectories: int,
        shots: int,
        seed: int,
        sums: Sequence[PauliSum],
    ) -> None:
        self.backend, self.circuit, self.noise = backend, circuit, noise
        self.seed, self.sums, self.shots = seed, sums, shots
        self.operations, self.last = _split_last(circuit)
        self.trajectories = trajectories
        self.bits = np.zeros((shots, circuit.clbits), np.uint8)
        self.open = [_Branch((), np.arange(trajectories))]
        self.values: list[tuple[int, list[complex]]] = []

    def branch(self, branch: _Branch) -> None:
        event = 0

        def draw(weights: Any) -> int:
            nonlocal event
            event += 1
            if event <= len(branch.history):
                return branch.history[event - 1]
            chosen = _choose(weights, uniform(self.seed, branch.shots, event - 1))
            numbers = np.bincount(chosen)
            follow = int(numbers.argmax())
            for other in np.flatnonzero(numbers):
                if other != follow:
                    rest = _Branch((*branch.history, int(other)), branch.shots[chosen == other])
                    self.open.append(rest)
            branch.history = (*branch.history, follow)
            branch.shots = branch.shots[chosen == follow]
            return follow

        self.backend.looks.set_basis_state(0)
        self.backend.clear()
        run = _Run(self.backend, self.noise, self.circuit.clbits + self.circuit.hidden_clbits, draw)
        run.do(self.operations)
        if self.sums:
            self.values.append((len(branch.shots), self.backend.looks.expectations(self.sums)))
        self._note(branch, run.clbits)

    def _note(self, branch: _Branch, clbits: list[int]) -> None:
        # Shot s belongs to trajectory s modulo their number.
        turns = -(-self.shots // self.trajectories)
        shots = (branch.shots[:, None] + self.trajectories * np.arange(turns)).reshape(-1)
        shots = np.sort(shots[shots < self.shots])
        if not len(shots) or not self.circuit.clbits:
            return
        self.bits[shots] = np.array(clbits[: self.circuit.clbits], np.uint8)
        last = [(bit, qubit) for bit, qubit in self.last if bit < self.circuit.clbits]
        if not last:
            return
        qubits = sorted({qubit for _, qubit in last})
        # Other histories must not draw the same outcomes.
        mixed = hashlib.blake2b(repr((self.seed, branch.history)).encode(), digest_size=8).digest()
        values = self.backend.looks.sample(len(shots), qubits, seed=int.from_bytes(mixed, "little") >> 1)
        for bit, qubit in last:
            read = (values >> np.uint64(qubits.index(qubit)) & np.uint64(1)).astype(np.uint8)
            zero, one = self.noise.misread(qubit)
            if zero > 0 or one > 0:
                wrong = uniform(self.seed, shots, _READ + bit) < np.where(read, one, zero)
                read ^= wrong.astype(np.uint8)
            self.bits[shots, bit] = read

    def averages(self) -> tuple[list[float | complex], list[float]]:
        if not self.sums:
            return [], []
        weights = np.array([number for number, _ in self.values]) / self.trajectories
        values = np.array([one for _, one in self.values])
        average = weights @ values
        spread = weights @ np.abs(values - average) ** 2
        errors = np.sqrt(spread / max(self.trajectories - 1, 1))
        return [value.item() for value in average], errors.tolist()

    def counts(self) -> dict[str, int]:
        if not self.shots:
            return {}
        rows, numbers = np.unique(self.bits[:, ::-1], axis=0, return_counts=True)
        return {
            _text(row, self.circuit.registers): int(number) for row, number in zip(rows, numbers, strict=True)
        }


def _text(row: NDArray[np.uint8], registers: Sequence[Register]) -> str:
    text = "".join(map(str, row.tolist()))
    if len(registers) < 2:
        return text
    parts = [text[len(text) - r.first - r.size : len(text) - r.first] for r in registers]
    return " ".join(reversed(parts))


def _usable(circuit: Circuit, noise: NoiseModel, group: Group, *, mixed: bool) -> Group:
    """The ranks that a circuit can be split over: fewer than there are if it is small; parts repeat what others do."""
    items: list[Operation | tuple[Channel, list[int]]] = []
    for operation in circuit.operations:
        if operation.is_gate:
            items += [operation, *noise.after(operation)]
    if mixed:
        largest = on_rows_and_columns(items, circuit.qubits)
    else:
        largest = Circuit(circuit.qubits)
        for item in items:
            if isinstance(item, Operation):
                largest.add(moved(item, 0, conjugate=False))
            else:  # all its qubits may have to be local
                largest.add(Operation("matrix", "channel", item[1], values=_full(item[0].qubits)))
    ranks = _core.usable_ranks(largest, group.size)
    if ranks == group.size or group.size & (group.size - 1):
        return group
    return Group(group.split(group.rank // ranks, group.rank % ranks))


def _full(qubits: int) -> NDArray[np.complex128]:
    return np.ones(4**qubits, complex)


def _simulate(
    mixed: bool,
    make: Callable[[Group], _Mixed | _Pure],
    circuit: Circuit,
    noise: NoiseModel | None,
    group: Group,
    trajectories: int,
    shots: int,
    seed: int | None,
    observables: Sequence[Any],
) -> NoisyResult:
    circuit.validate()
    if shots < 0 or trajectories < 1:
        raise BadInput(f"expected 0 shots or more and a trajectory, found {shots} and {trajectories}")
    sums = [PauliSum.of(one) for one in observables]
    for one in sums:
        one.require(circuit.qubits)
    if seed is None:
        seed = int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    begin = time.perf_counter()
    noise = noise or NoiseModel()
    group = _usable(circuit, noise, group, mixed=mixed)
    backend = make(group)
    simulation = _Simulation(backend, circuit, noise, trajectories, shots, seed, sums)
    histories = 0
    while simulation.open:
        simulation.branch(simulation.open.pop())
        histories += 1
    expectations, errors = simulation.averages()
    sent = sum(int(one) for one in group.allgather(str(backend.state.bytes_sent).encode()))
    return NoisyResult(
        shots=shots,
        seed=seed,
        counts=simulation.counts(),
        expectations=expectations,
        errors=errors,
        seconds=time.perf_counter() - begin,
        ranks=backend.state.ranks,
        runs=histories,
        exchanges=backend.state.exchanges,
        bytes_moved=sent,
        state=backend.looks,
    )


def simulate_density(
    circuit: Circuit,
    group: Group | None = None,
    *,
    noise: NoiseModel | None = None,
    shots: int = 0,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
) -> NoisyResult:
    """Run a circuit with noise from |0...0> on a density matrix. Collective; arguments as for `simulate`.

    Expectation values are exact, but for measurements inside the circuit, whose histories are drawn.
    """
    return _simulate(
        True,
        lambda group: _Mixed(DensityMatrix(circuit.qubits, group, precision=precision, threads=threads)),
        circuit,
        noise,
        group or Group.alone(),
        max(shots, 1),
        shots,
        seed,
        observables,
    )


def simulate_trajectories(
    circuit: Circuit,
    group: Group | None = None,
    *,
    noise: NoiseModel | None = None,
    trajectories: int = 1000,
    shots: int | None = None,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
) -> NoisyResult:
    """Run a circuit with noise from |0...0> many times on a state vector. Collective; arguments as for `simulate`.

    In each trajectory one Kraus operator of each channel is drawn; equal trajectories run once. The same seed gives the
    same trajectories on every number of ranks.

    Parameters
    ----------
    trajectories : int
        How many; errors of averages fall as one over its square root.
    shots : int, optional
        Shot s is drawn at the end of trajectory s modulo their number; one shot for each unless given.
    """
    return _simulate(
        False,
        lambda group: _Pure(State(circuit.qubits, group, precision=precision, threads=threads)),
        circuit,
        noise,
        group or Group.alone(),
        trajectories,
        trajectories if shots is None else shots,
        seed,
        observables,
    )
