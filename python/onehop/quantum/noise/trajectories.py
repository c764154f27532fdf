"""Noisy runs of a circuit, grouped by measurement record: shots with equal records share one run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.quantum.circuit import Circuit, Operation, Register
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.noisy_run import ChannelStep, Item, Mixed, Pure, Run, choose
from onehop.quantum.observables import PauliSum
from onehop.quantum.outcome_text import outcome_texts
from onehop.quantum.random_numbers import uniform
from onehop.quantum.steps import Apply, Save, Step

__all__ = ["READ_EVENT", "Trajectories", "counts_of", "outcome_bits", "split_last"]

READ_EVENT = 1 << 41  # first event of readout errors, beyond all events inside a circuit


@dataclass
class _Branch:
    """A run to make: the choices so far, and the trajectories that agree with them."""

    record: tuple[int, ...]
    shots: NDArray[np.int64]


def split_last(
    items: Sequence[Item | Step], qubits: int, clbits: int
) -> tuple[list[Item | Step], list[tuple[int, int]]]:
    """Split off the final measurements; return the other items and the (classical bit, qubit) pairs."""
    kept: list[Item | Step] = []
    last: list[tuple[int, int]] = []
    used: set[int] = set()
    bits: set[int] = set()
    for operation in reversed(items):
        if not isinstance(operation, Operation):
            is_channel = isinstance(operation, (ChannelStep, Apply))
            used.update(operation.qubits if is_channel else range(qubits))
            bits.update(operation.condition.clbits if is_channel else range(clbits))
            kept.append(operation)
            continue
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
                measured, places = zip(*inside, strict=True)
                kept.append(Operation("measure", "measure", list(measured), clbits=list(places)))
            continue
        used.update(operation.targets, operation.controls)
        bits.update(operation.clbits, operation.condition.clbits)
        kept.append(operation)
    return kept[::-1], last


def outcome_bits(
    circuit: Circuit, last: Sequence[tuple[int, int]], items: Sequence[Item] | None
) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of bits of an outcome, and the (bit, qubit) pairs that are measured at the end of a run.

    These are the classical bits of the circuit; for a circuit that has none, and saves nothing, all qubits.
    """
    if circuit.clbits or any(isinstance(item, Save) for item in items or ()):
        return circuit.clbits, [(bit, qubit) for bit, qubit in last if bit < circuit.clbits]
    return circuit.qubits, [(qubit, qubit) for qubit in range(circuit.qubits)]


class Trajectories:
    """The runs of a noisy simulation. Trajectories share a run as long as all their random choices agree.

    Parameters
    ----------
    backend : Mixed or Pure
        Applies gates and channels.
    circuit, noise
        The circuit, and the noise that follows its gates.
    trajectories : int
        Number of trajectories.
    shots : int
        Number of shots. Shot s is drawn at the end of trajectory s modulo their number.
    seed : int
        Seed of all random choices.
    sums : sequence of PauliSum
        Observables to evaluate at the end of each run.
    items : sequence of Item, optional
        Operations and steps to execute. Default: the operations of the circuit.

    Attributes
    ----------
    open : list
        Runs that are still to be made.
    saved : list
        Shots of each run, and what the run has saved.
    """

    def __init__(
        self,
        backend: Mixed | Pure,
        circuit: Circuit,
        noise: NoiseModel,
        trajectories: int,
        shots: int,
        seed: int,
        sums: Sequence[PauliSum],
        items: Sequence[Item] | None = None,
    ) -> None:
        self.backend, self.circuit, self.noise = backend, circuit, noise
        self.seed, self.sums, self.shots = seed, sums, shots
        self.operations, last = split_last(
            circuit.operations if items is None else items,
            circuit.qubits,
            circuit.clbits + circuit.hidden_clbits,
        )
        self.trajectories = trajectories
        width, self.last = outcome_bits(circuit, last, items)
        self.bits = np.zeros((shots, width), np.uint8)
        self.open = [_Branch((), np.arange(trajectories))]
        self.values: list[tuple[int, list[complex]]] = []
        self.saved: list[tuple[NDArray[np.int64], list[Any]]] = []

    def branch(self, branch: _Branch) -> None:
        """Make one run. At each choice it follows the majority; the other trajectories go to `open`."""
        event = 0

        def draw(weights: Any) -> int:
            nonlocal event
            event += 1
            if event <= len(branch.record):
                return branch.record[event - 1]
            chosen = choose(weights, uniform(self.seed, branch.shots, event - 1))
            numbers = np.bincount(chosen)
            follow = int(numbers.argmax())
            for other in np.flatnonzero(numbers):
                if other != follow:
                    rest = _Branch((*branch.record, int(other)), branch.shots[chosen == other])
                    self.open.append(rest)
            branch.record = (*branch.record, follow)
            branch.shots = branch.shots[chosen == follow]
            return follow

        self.backend.target.set_basis_state(0)
        self.backend.clear()
        run = Run(self.backend, self.noise, self.circuit.clbits + self.circuit.hidden_clbits, draw)
        run.do(self.operations)
        if self.sums:
            self.values.append((len(branch.shots), self.backend.target.expectations(self.sums)))
        if run.saved:
            self.saved.append((branch.shots, run.saved))
        self._note(branch, run.clbits)

    def _note(self, branch: _Branch, clbits: list[int]) -> None:
        # Shot s belongs to trajectory s modulo their number.
        turns = -(-self.shots // self.trajectories)
        shots = (branch.shots[:, None] + self.trajectories * np.arange(turns)).reshape(-1)
        shots = np.sort(shots[shots < self.shots])
        if not len(shots):
            return
        if self.circuit.clbits:
            self.bits[shots] = np.array(clbits[: self.circuit.clbits], np.uint8)
        if not self.last:
            return
        qubits = sorted({qubit for _, qubit in self.last})
        # The record enters the seed, so that runs with different records draw independent outcomes.
        mixed = hashlib.blake2b(repr((self.seed, branch.record)).encode(), digest_size=8).digest()
        values = self.backend.target.sample(len(shots), qubits, seed=int.from_bytes(mixed, "little") >> 1)
        for bit, qubit in self.last:
            read = (values >> np.uint64(qubits.index(qubit)) & np.uint64(1)).astype(np.uint8)
            zero, one = self.noise.misread(qubit)
            if zero > 0 or one > 0:
                wrong = uniform(self.seed, shots, READ_EVENT + bit) < np.where(read, one, zero)
                read ^= wrong.astype(np.uint8)
            self.bits[shots, bit] = read

    def averages(self) -> tuple[list[float | complex], list[float]]:
        """Return the average of each observable over the trajectories, and the standard errors."""
        if not self.sums:
            return [], []
        weights = np.array([number for number, _ in self.values]) / self.trajectories
        values = np.array([one for _, one in self.values])
        average = weights @ values
        spread = weights @ np.abs(values - average) ** 2
        errors = np.sqrt(spread / max(self.trajectories - 1, 1))
        return [value.item() for value in average], errors.tolist()

    def counts(self) -> dict[str, int]:
        """Return the number of shots with each outcome; bits as in `Result.counts`."""
        return counts_of(self.bits, self.circuit.registers)


def counts_of(bits: NDArray[np.uint8], registers: Sequence[Register]) -> dict[str, int]:
    """Count equal rows of classical bits, shape (shots, clbits); the keys are those of `Result.counts`."""
    if not len(bits):
        return {}
    rows, numbers = np.unique(bits[:, ::-1], axis=0, return_counts=True)
    return dict(zip(outcome_texts(rows[:, ::-1], registers), numbers.tolist(), strict=True))
