"""Measurements inside a circuit as a tree: one state for each record of outcomes that occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pennylane.devices.qubit.measure import measure
from pennylane.devices.qubit.sampling import measure_with_samples
from pennylane.exceptions import DeviceError
from pennylane.measurements import CountsMP, ExpectationMP, ProbabilityMP, SampleMP, Shots, VarianceMP
from pennylane.ops import Conditional, MidMeasure
from pennylane.tape import QuantumScript

from onehop.pennylane.postselection import NEVER
from onehop.quantum import Circuit, State
from onehop.quantum.circuit import Operation

__all__ = ["measured_tree"]

_KINDS = (ExpectationMP, VarianceMP, ProbabilityMP, SampleMP, CountsMP)


@dataclass
class _Leaf:
    """A final state, its probability or its number of shots, and the outcomes on the way to it."""

    weight: float
    values: dict[Any, int]
    amplitudes: NDArray[np.complex128]


def measured_tree(
    script: QuantumScript,
    state: State,
    append: Callable[[Circuit, Any], None],
    places: Callable[[Any], int],
    rng: np.random.Generator,
) -> Any:
    """Return the results of a circuit with measurements inside.

    Parameters
    ----------
    script : QuantumScript
        Circuit on wires 0, 1, ..., whose preparation of the initial state has been removed.
    state : State
        Initial state; it is changed.
    append : callable
        Function that appends an operator of PennyLane to a circuit.
    places : callable
        Function from wires to qubits.
    rng : numpy.random.Generator
        Random numbers of the shots.

    Raises
    ------
    DeviceError
        A measurement at the end is no expectation value, variance, probability, sample or count.
    """
    for one in script.measurements:
        if not isinstance(one, _KINDS):
            raise DeviceError(
                f"mcm_method 'tree-traversal' cannot compute {type(one).__name__}: expected 'deferred'"
            )
    sizes = (
        [one.shots for one in script.shots.shot_vector for _ in range(one.copies)] if script.shots else [0]
    )
    start = state.vector()
    results = []
    for shots in sizes:
        state._core.set_amplitudes(start, check=False)
        leaves: list[_Leaf] = []
        tree = _Tree(append, places, rng, leaves, bool(shots))
        tree.grow(state, list(script.operations), float(shots or 1), {})
        results.append(_combined(script, leaves, shots, rng))
    return tuple(results) if script.shots.has_partitioned_shots else results[0]


@dataclass
class _Tree:
    append: Callable[[Circuit, Any], None]
    places: Callable[[Any], int]
    rng: np.random.Generator
    leaves: list[_Leaf]
    sampled: bool

    def grow(self, state: State, operations: Sequence[Any], weight: float, values: dict[Any, int]) -> None:
        """Run operations up to the next measurement, and both of its branches."""
        circuit = Circuit(state.qubits)
        for number, operation in enumerate(operations):
            if isinstance(operation, MidMeasure):
                if len(circuit):
                    state.run(circuit)
                self._branches(state, operation, operations[number + 1 :], weight, values)
                return
            if isinstance(operation, Conditional):
                if operation.meas_val.concretize(values):
                    self.append(circuit, operation.base)
            else:
                self.append(circuit, operation)
        if len(circuit):
            state.run(circuit)
        self.leaves.append(_Leaf(weight, values, state.vector()))

    def _branches(
        self, state: State, mid: Any, rest: Sequence[Any], weight: float, values: dict[Any, int]
    ) -> None:
        qubit = self.places(mid.wires[0])
        one = min(max(state.probability_of_one(qubit), 0.0), 1.0)
        ones = float(self.rng.binomial(round(weight), one)) if self.sampled else weight * one
        before = state.vector()
        for outcome, part, chance in ((0, weight - ones, 1 - one), (1, ones, one)):
            if part <= (0 if self.sampled else NEVER) or mid.postselect not in (None, outcome):
                continue
            state._core.set_amplitudes(before, check=False)
            kept = np.array([1.0 - outcome, float(outcome)], complex) / np.sqrt(chance)
            circuit = Circuit(state.qubits)
            circuit.add(Operation("diagonal", "collapse", [qubit], values=kept))
            if mid.reset and outcome:
                circuit.x(qubit)
            state._core.apply(circuit, 0)
            self.grow(state, rest, part, {**values, mid: outcome})


def _combined(script: QuantumScript, leaves: list[_Leaf], shots: int, rng: np.random.Generator) -> Any:
    total = sum(leaf.weight for leaf in leaves)
    if not total:
        raise DeviceError("expected outcomes that postselection keeps, found none")
    order = rng.permutation(round(total)) if shots else None
    columns = [_leaf_results(script, leaf, shots, rng) for leaf in leaves]
    weights = np.array([leaf.weight for leaf in leaves]) / total
    found = []
    for number, one in enumerate(script.measurements):
        parts = [column[number] for column in columns]
        found.append(_merged(one, parts, weights, order))
    return found[0] if len(found) == 1 else tuple(found)


def _leaf_results(script: QuantumScript, leaf: _Leaf, shots: int, rng: np.random.Generator) -> list[Any]:
    """Return the result of each measurement in one leaf; of a variance, the mean and the mean square."""
    tensor = leaf.amplitudes.reshape((2,) * len(script.wires))
    number = round(leaf.weight)
    outer = [one for one in script.measurements if one.mv is None]
    plain = [
        SampleMP(obs=one.obs, wires=None if one.obs else one.wires) if isinstance(one, VarianceMP) else one
        for one in outer
    ]
    if shots:
        sampled = iter(measure_with_samples(plain, tensor, shots=Shots(number), rng=rng) if plain else ())
    results = []
    for one in script.measurements:
        if one.mv is not None:
            results.append(_of_record(one, leaf, number))
        elif shots:
            value = next(sampled)
            results.append(
                (np.mean(value), np.mean(np.square(value))) if isinstance(one, VarianceMP) else value
            )
        elif isinstance(one, VarianceMP):
            mean = float(measure(ExpectationMP(obs=one.obs), tensor))
            results.append((mean, float(measure(one, tensor)) + mean**2))
        else:
            results.append(measure(one, tensor))
    return results


def _of_record(one: Any, leaf: _Leaf, number: int) -> Any:
    """Return the result of a measurement of outcomes inside the circuit."""
    several = isinstance(one.mv, (list, tuple, np.ndarray))
    bits = [int(value.concretize(leaf.values)) for value in one.mv] if several else None
    value = np.array(bits) if several else np.asarray(one.mv.concretize(leaf.values))
    if isinstance(one, ExpectationMP):
        return float(value)
    if isinstance(one, VarianceMP):
        return float(value), float(value) ** 2
    if isinstance(one, ProbabilityMP):
        digits = bits if several else [int(value)]
        place = int("".join(map(str, digits)), 2)
        return np.eye(1, 1 << len(digits), place)[0]
    if isinstance(one, CountsMP):
        return {"".join(map(str, bits)) if several else value.item(): number}
    return np.repeat(value[None], number, axis=0)


def _merged(one: Any, parts: list[Any], weights: NDArray[np.float64], order: NDArray[Any] | None) -> Any:
    if isinstance(one, CountsMP):
        total: Counter[Any] = Counter()
        for part in parts:
            total.update(part)
        return dict(sorted(total.items()))
    if isinstance(one, SampleMP):
        return np.concatenate([np.atleast_1d(part) for part in parts])[order]
    if isinstance(one, VarianceMP):
        mean, square = weights @ np.array(parts, float)
        return np.array(max(square - mean**2, 0.0))
    return np.tensordot(weights, np.array(parts, float), axes=1)
