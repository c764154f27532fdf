"""Circuits of Clifford gates, measurements, resets and conditions on stim's tableaus, for any number of qubits.

Shots draw the same random numbers as on a state vector, so that their outcomes are the same.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.observables import PauliSum

# stim imports NumPy at its first array; two threads that do so at once wait for each other.
_FIRST_USE = threading.Lock()

_LARGEST_GATE = 6  # qubits of a gate whose matrix may be that of a Clifford gate


def has_stim() -> bool:
    """Whether stim is installed."""
    return find_spec("stim") is not None


class NotClifford(BadInput):
    """A circuit has a gate that is no Clifford gate."""


class CliffordCircuit:
    """A circuit as steps on a tableau. Raises NotClifford, or BadInput if stim is not installed."""

    def __init__(self, circuit: Circuit) -> None:
        if not has_stim():
            raise BadInput("method 'clifford': expected the package stim, found none; `pip install stim`")
        with _FIRST_USE:
            self._stim: Any = importlib.import_module("stim")
            self._stim.Tableau(1).to_unitary_matrix(endian="little")
        self._known: dict[Any, Any] = {}
        self._circuit = circuit
        body, self._width, self._last = _core.split_measurements(circuit)
        # Gates without conditions, joined, or an operation with the gates that it does under its condition.
        self._steps: list[tuple[Operation | None, Any]] = []
        for operation in body.operations:
            if operation.kind == "barrier":
                continue
            if operation.kind == "jump":
                raise NotClifford(
                    "method 'clifford': expected a circuit without loops whose end depends on measurements, found "
                    "one; simulate with method 'statevector'"
                )
            gates = self._gates(operation) if operation.is_gate else None
            if gates is None or operation.condition:
                self._steps.append((operation, gates))
            elif self._steps and self._steps[-1][0] is None:
                self._steps[-1][1].__iadd__(gates)
            else:
                self._steps.append((None, gates))

    def _gates(self, operation: Operation) -> Any:
        """Return a gate as a circuit of stim."""
        qubits = [*operation.targets, *operation.controls]
        gates = self._stim.Circuit()
        if not qubits:
            return gates  # a global phase
        matrix = None
        if len(qubits) <= _LARGEST_GATE and not operation.angles:
            size = 1 << len(operation.targets)
            matrix = np.eye(1 << len(qubits), dtype=complex)
            place = slice(operation.control_values * size, (operation.control_values + 1) * size)
            matrix[place, place] = operation.matrix().reshape(size, size)
        key = None if matrix is None else matrix.tobytes()
        if key not in self._known:
            self._known[key] = None if matrix is None else self._clifford(matrix)
        if self._known[key] is None:
            raise NotClifford(
                f"method 'clifford': expected Clifford gates, found {operation.name} on {qubits}; simulate with method "
                "'statevector'"
            )
        for one in self._known[key]:
            gates.append(one.name, [qubits[target.value] for target in one.targets_copy()])
        return gates

    def _clifford(self, matrix: NDArray[np.complex128]) -> Any:
        """Return the circuit of a matrix; None for one that is no Clifford gate."""
        try:
            tableau = self._stim.Tableau.from_unitary_matrix(matrix, endian="little")
        except ValueError:
            return None
        # stim takes matrices near that of a Clifford gate, too: diag(1, exp(0.3i)) as the identity.
        exact = tableau.to_unitary_matrix(endian="little")
        place = np.unravel_index(np.argmax(abs(exact)), exact.shape)
        phase = matrix[place] / exact[place]
        return tableau.to_circuit() if np.allclose(matrix, phase * exact, rtol=0, atol=1e-6) else None

    def run(
        self, shots: int, seed: int, sums: Sequence[PauliSum]
    ) -> tuple[_core.Outcomes, list[complex], int, float]:
        """Run the circuit; return outcomes, expectation values, the number of runs, and the seconds."""
        begin = time.perf_counter()
        simulator = self._stim.TableauSimulator()
        simulator.set_num_qubits(self._circuit.qubits)
        everything = np.arange(max(shots, 1), dtype=np.uint64)
        clbits = [False] * (self._circuit.clbits + self._circuit.hidden_clbits)
        waiting = [_Branch(simulator, clbits, everything)]
        bits = np.zeros((shots, -(-self._width // 64) * 64), np.uint8)
        values, runs = np.zeros(len(sums), complex), 0
        while waiting:
            branch = waiting.pop()
            self._follow(branch, waiting, seed)
            runs += 1
            part = len(branch.shots) / len(everything)
            values += [part * self._value(one, branch.simulator) for one in sums]
            if shots:
                self._note(branch, bits, seed)
        words = np.packbits(bits, axis=1, bitorder="little").view("<u8").reshape(-1)
        outcomes = _core.outcomes_of(words, self._width, shots)
        return outcomes, values.tolist(), runs, time.perf_counter() - begin

    def _string(self, letters: Sequence[tuple[int, str]]) -> Any:
        string = self._stim.PauliString(self._circuit.qubits)
        for qubit, letter in letters:
            string[qubit] = letter
        return string

    def _value(self, observable: PauliSum, simulator: Any) -> complex:
        value = simulator.peek_observable_expectation
        return sum(complex(term.coefficient) * value(self._string(term.paulis)) for term in observable.terms)

    def _follow(self, branch: _Branch, waiting: list[_Branch], seed: int) -> None:
        """Run a branch to its end; shots whose outcomes differ from those of most wait as new branches."""
        while branch.step < len(self._steps):
            operation, gates = self._steps[branch.step]
            holds = operation is None or _holds(operation.condition, branch.clbits)
            if operation is not None and operation.kind == "assign":
                branch.clbits[operation.clbits[0]] = holds
            elif holds and gates is not None:
                branch.simulator.do_circuit(gates)
            elif holds and operation is not None:
                while branch.target < len(operation.targets):
                    _draw(branch, operation, waiting, seed)
            branch.step, branch.target = branch.step + 1, 0

    def _note(self, branch: _Branch, bits: NDArray[np.uint8], seed: int) -> None:
        """Write the bits of the shots of a branch: those of its run, and samples of the measurements at the end.

        Those outcomes are uniform on the solutions of linear equations modulo 2: one for each string of Z on measured
        qubits of which the state is an eigenvector. Qubits are drawn from the highest one down; an equation gives the
        value of the last of its qubits.
        """
        mine = branch.shots.astype(np.int64)
        bits[mine, : self._circuit.clbits] = branch.clbits[: self._circuit.clbits]
        measured = sorted({qubit for _, qubit in self._last})
        rows = _equations(branch.simulator.canonical_stabilizers(), measured, self._circuit.qubits)
        sampled = np.zeros((len(mine), self._circuit.qubits), np.uint8)
        for event, qubit in enumerate(reversed(measured)):
            if qubit in rows:
                string = self._string([(other, "Z") for other in (qubit, *rows[qubit])])
                odd = branch.simulator.peek_observable_expectation(string) < 0
                sampled[:, qubit] = (sampled[:, rows[qubit]].sum(axis=1) + odd) & 1
            else:
                sampled[:, qubit] = _core.draw_numbers(seed, branch.shots, event, True) < 0.5
        for bit, qubit in self._last:
            bits[mine, bit] = sampled[:, qubit]


@dataclass
class _Branch:
    """Shots whose outcomes have agreed so far, and their run."""

    simulator: Any
    clbits: list[bool]
    shots: NDArray[np.uint64]
    step: int = 0
    target: int = 0  # of the operation that draws
    events: int = 0

    def take(self, operation: Operation, outcome: bool) -> None:
        """Give the next target of a measurement or reset its outcome."""
        qubit = operation.targets[self.target]
        self.simulator.postselect_z(qubit, desired_value=outcome)
        if operation.kind == "measure":
            self.clbits[operation.clbits[self.target]] = outcome
        elif outcome:
            self.simulator.x(qubit)
        self.target += 1
        self.events += 1


def _draw(branch: _Branch, operation: Operation, waiting: list[_Branch], seed: int) -> None:
    """Draw the outcome of the next target of a measurement or reset for each shot, and follow that of most."""
    sign = branch.simulator.peek_z(operation.targets[branch.target])
    outcome = sign < 0
    if sign == 0:
        ones = _core.draw_numbers(seed, branch.shots, branch.events, False) < 0.5
        outcome = bool(2 * np.count_nonzero(ones) > len(ones))
        others = branch.shots[ones != outcome]
        if len(others):
            copy = branch.simulator.copy()
            waiting.append(replace(branch, simulator=copy, clbits=list(branch.clbits), shots=others))
            waiting[-1].take(operation, not outcome)
            branch.shots = branch.shots[ones == outcome]
    branch.take(operation, outcome)


def _holds(condition: Condition, clbits: Sequence[bool]) -> bool:
    value = sum(1 << place for place, bit in enumerate(condition.clbits) if clbits[bit])
    return not condition.clbits or (value == condition.value) != condition.negated


def _equations(stabilizers: Sequence[Any], measured: Sequence[int], qubits: int) -> dict[int, list[int]]:
    """Return for each measured qubit whose value others determine these others, which are higher and not determined."""
    both = np.array([np.concatenate(one.to_numpy()) for one in stabilizers])  # X of all qubits, then Z
    hidden = [qubit for qubit in range(qubits) if qubit not in set(measured)]
    pivots: dict[int, int] = {}
    for column in (*range(qubits), *(qubits + qubit for qubit in (*hidden, *measured))):
        row = len(pivots)
        candidates = np.flatnonzero(both[row:, column])
        if not len(candidates):
            continue
        both[[row, row + candidates[0]]] = both[[row + candidates[0], row]]
        others = both[:, column].copy()
        others[row] = False
        both[others] ^= both[row]
        pivots[column - qubits] = row
    return {
        qubit: [k for k in np.flatnonzero(both[pivots[qubit], qubits:]).tolist() if k != qubit]
        for qubit in measured
        if qubit in pivots
    }
