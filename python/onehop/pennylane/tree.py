"""Measurements inside a circuit as a tree: one run of a program for each record of outcomes that occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pennylane.devices.qubit.measure import measure
from pennylane.devices.qubit.sampling import measure_with_samples
from pennylane.exceptions import DeviceError
from pennylane.measurements import CountsMP, ExpectationMP, ProbabilityMP, SampleMP, Shots, VarianceMP
from pennylane.ops import Conditional, MidMeasure
from pennylane.tape import QuantumScript

from onehop.quantum import Circuit
from onehop.quantum.circuit import Condition
from onehop.quantum.noise.core_program import run_tree
from onehop.quantum.steps import Program, Save

_KINDS = (ExpectationMP, VarianceMP, ProbabilityMP, SampleMP, CountsMP)


@dataclass
class _Leaf:
    """A final state, its probability or its number of shots, and the outcomes on the way to it."""

    weight: float
    values: dict[Any, int]
    amplitudes: NDArray[np.complex128]


def measured_tree(
    script: QuantumScript,
    start: NDArray[np.complex128] | None,
    append: Callable[[Circuit, Any], None],
    places: Callable[[Any], int],
    rng: np.random.Generator,
    options: dict[str, Any],
) -> Any:
    """Return the results of a circuit with measurements inside, without its preparation of the state `start`."""
    for one in script.measurements:
        if not isinstance(one, _KINDS):
            raise DeviceError(
                f"mcm_method 'tree-traversal' cannot compute {type(one).__name__}: expected 'deferred'"
            )
    program, bits = _program(script, start, append, places)
    sizes = (
        [one.shots for one in script.shots.shot_vector for _ in range(one.copies)] if script.shots else [0]
    )
    results = []
    for shots in sizes:
        runs = run_tree(program, shots, lambda number, one: int(rng.binomial(number, one)), **options)
        leaves = [
            _Leaf(weight, {mid: int(clbits[bit]) for mid, bit in bits.items()}, amplitudes)
            for weight, clbits, amplitudes in runs
        ]
        results.append(_combined(script, leaves, shots, rng))
    return tuple(results) if script.shots.has_partitioned_shots else results[0]


def _program(
    script: QuantumScript,
    start: NDArray[np.complex128] | None,
    append: Callable[[Circuit, Any], None],
    places: Callable[[Any], int],
) -> tuple[Program, dict[Any, int]]:
    """Return the circuit as a program that saves its final states, and the bit of each measurement inside."""
    mids = [one for one in script.operations if isinstance(one, MidMeasure)]
    bits = {mid: bit for bit, mid in enumerate(mids)}
    qubits = max(len(script.wires), 1)
    circuit = Circuit(qubits, len(mids))
    everything = list(range(qubits))
    program = Program(circuit)
    if start is not None:
        program.set_state(start, everything)
    for operation in script.operations:
        if isinstance(operation, MidMeasure):
            bit = bits[operation]
            qubit = places(operation.wires[0])
            circuit.measure(qubit, bit)
            if operation.postselect is not None:
                program.postselect(Condition([bit], int(operation.postselect)))
            if operation.reset:
                with circuit.when(bit):
                    circuit.x(qubit)
        elif isinstance(operation, Conditional):
            for condition in _conditions(operation.meas_val, bits):
                with circuit.when(condition.clbits, condition.value):
                    append(circuit, operation.base)
        else:
            append(circuit, operation)
    program.save(Save("statevector", "final", "list"), everything)
    return program, bits


def _conditions(value: Any, bits: dict[Any, int]) -> list[Condition]:
    """Return the outcomes for which a value of measurements is true; at most one of them holds."""
    mids = list(value.measurements)
    used = [bits[mid] for mid in mids]
    return [
        Condition(used, sum(bit << place for place, bit in enumerate(outcomes)))
        for outcomes in product((0, 1), repeat=len(mids))
        if value.concretize(dict(zip(mids, outcomes, strict=True)))
    ]


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
        every = map("".join, product("01", repeat=len(bits))) if several else one.eigvals().tolist()
        counted = {"".join(map(str, bits)) if several else value.item(): number}
        return (dict.fromkeys(every, 0) if one.all_outcomes else {}) | counted
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
