"""Derivatives of expectation values: the adjoint method, and parameter shifts for circuits that it cannot take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop import _core
from onehop.arguments import instance
from onehop.error import BadInput, WrongType
from onehop.group import Group, group_or_alone
from onehop.options import Options
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.compiled import GradientResult, check_weights
from onehop.quantum.compiled import compile as compile_circuit
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.noisy import NoisyOptions, run_noisy, warn_of_gates
from onehop.quantum.observables import PauliSum, sums_of
from onehop.quantum.parameters import Bindings, values_of
from onehop.refusals import collective

if TYPE_CHECKING:
    from onehop._keywords import GradientKeywords, Unpack

__all__ = ["gradients", "parameter_shift"]


@dataclass(kw_only=True)
class GradientOptions(Options):
    """The options of `gradients`, which documents them."""

    precision: str = "double"
    threads: int = 0
    search_seconds: float = 1
    reproducible: bool | int = False
    device: str = "cpu"


@collective
def gradients(
    circuit: Circuit,
    bindings: Bindings,
    observables: Sequence[Any],
    group: Group | None = None,
    *,
    weights: Sequence[float] | None = None,
    variance: bool = False,
    noise: NoiseModel | None = None,
    **keywords: Unpack[GradientKeywords],
) -> GradientResult:
    """Compute expectation values and all their derivatives. Collective.

    Circuits of gates take the adjoint method. Circuits with noise, or with measurements, resets or conditions before
    their end, take parameter shifts on a density matrix.

    Parameters
    ----------
    circuit : Circuit
        Circuit with parameters.
    bindings : mapping from str or Parameter to float, or sequence of float
        Values by name, or in the order of `Circuit.parameters`.
    observables : sequence of PauliSum or str
        Hermitian observables.
    group : Group, optional
        As for `simulate`.
    weights : sequence of float, optional
        One for each observable: the derivatives are those of the weighted sum of the values.
    variance : bool
        Compute the variances of the observables and their derivatives instead of the expectation values.
    noise : NoiseModel, optional
        Channels after the gates. Default: no noise.

    Other Parameters
    ----------------
    precision, threads, search_seconds, device
        As for `simulate`.
    reproducible : bool or int
        Compute the same bits on every number of ranks, as for `compile`; with the adjoint method only.

    Raises
    ------
    BadInput
        A parameter has no value, a name is unknown, a gate has no derivative, an observable is not Hermitian, or
        `reproducible` is asked of parameter shifts.
    Error
        The memory does not suffice.
    """
    options = GradientOptions.of("gradients", keywords)
    instance(circuit, Circuit, "circuit")
    if noise is None and is_pure(circuit):
        compiled = compile_circuit(circuit, group, **vars(options))
        return compiled.gradients(bindings, observables, weights, variance=variance)

    if options.reproducible:
        raise BadInput(
            "reproducible: expected a circuit of gates without noise, whose gradient takes the adjoint method, found "
            "one that takes parameter shifts on a density matrix"
        )

    if noise is not None:
        instance(noise, NoiseModel, "noise")
    group = group_or_alone(group)

    def evaluate(bound: Circuit, sums: Sequence[PauliSum]) -> list[float]:
        asked = NoisyOptions(
            noise=noise,
            seed=0,
            precision=options.precision,
            observables=sums,
            threads=options.threads,
            device=options.device,
        )
        found = run_noisy(bound, group, asked, mixed=True, shots=0)
        return [complex(one).real for one in found.expectations]

    require_exact(circuit)
    warn_of_gates(circuit, noise, group)
    if not variance:
        return parameter_shift(circuit, bindings, observables, evaluate, weights=weights)
    sums = sums_of(observables, circuit.qubits, hermitian=True)
    check_weights(weights, len(sums))
    both = parameter_shift(circuit, bindings, [*sums, *(one.squared() for one in sums)], evaluate)
    means, squares = both.values.reshape(2, -1)
    of_means, of_squares = both.derivatives.reshape(2, len(sums), -1)
    derivatives = of_squares - 2 * means[:, None] * of_means
    if weights is not None:
        derivatives = np.asarray(weights, float) @ derivatives
    return GradientResult(both.parameters, np.maximum(squares - means**2, 0), derivatives, both.method)


@collective
def parameter_shift(
    circuit: Circuit,
    bindings: Bindings,
    observables: Sequence[Any],
    evaluate: Callable[[Circuit, Sequence[PauliSum]], Sequence[float]],
    *,
    weights: Sequence[float] | None = None,
) -> GradientResult:
    """Compute derivatives from expectation values at shifted angles.

    Every angle of every gate is shifted by itself: two runs for a rotation or a phase, four for a controlled rotation.
    The result is exact if the expectation values are, whatever else happens in the circuit.

    Parameters
    ----------
    circuit, bindings, observables, weights
        As for `gradients`.
    evaluate : callable
        Function `evaluate(circuit, observables)` that returns the expectation values of a circuit without parameters,
        for example from shots.

    Raises
    ------
    BadInput
        As for `gradients`.
    """
    instance(circuit, Circuit, "circuit").validate()
    if not callable(evaluate):
        raise WrongType(f"evaluate: expected a function, found {evaluate!r}")
    sums = sums_of(observables, circuit.qubits, hermitian=True)
    check_weights(weights, len(sums))
    values = values_of(circuit, bindings)
    rules = {
        (index, angle): _frequencies(index, operation, angle, circuit.parameters[terms[0][0]])
        for index, operation in enumerate(circuit.operations)
        for angle, (_, terms) in enumerate(operation.angles)
        if terms
    }
    derivatives = np.zeros((len(sums), len(values)))
    for (index, angle), (unit, most) in rules.items():
        slope = np.zeros(len(sums))
        for shift, weight in _shifts(unit, most):
            slope += weight * np.array(evaluate(_shifted(circuit, index, angle, shift).bind(values), sums))
        for parameter, factor in circuit.operation(index).angles[angle][1]:
            derivatives[:, parameter] += factor * slope
    found = np.array(evaluate(circuit.bind(values), sums), float)
    if weights is not None:
        derivatives = np.asarray(weights, float) @ derivatives
    return GradientResult(circuit.parameters, found, derivatives, "parameter-shift")


# The frequencies of an expectation value as a function of an angle are multiples of a unit, up to a largest one.
_ROTATIONS = frozenset(("rx", "ry", "rz", "rxx", "ryy", "rzz", "rzx", "crx", "cry", "crz", "pauli_rotation"))
_PHASES = frozenset(("p", "phase", "u0", "u1", "u2", "cp", "cphase", "cu1", "mcphase", "gphase"))
_GENERAL = frozenset(("u", "U", "u3", "cu3", "cu"))


def _frequencies(index: int, operation: Operation, angle: int, parameter: str) -> tuple[float, int]:
    """Return the unit of the frequencies and the largest multiple of it."""
    name, has_controls = operation.name, bool(operation.controls)
    kind = operation.kind if operation.kind in ("global_phase", "pauli_rotation") else name
    if kind == "global_phase" or kind in _PHASES or (kind in _GENERAL and angle > 0):
        return 1.0, 1
    if kind in _ROTATIONS | _GENERAL:
        return (0.5, 2) if has_controls else (1.0, 1)
    if kind == "r":
        return (0.5, 4) if has_controls else (1.0, 2 if angle else 1)
    raise BadInput(
        f"operation {index} ({name}): parameter {parameter!r}: expected a gate whose angles are those of rotations and "
        "phases, which has derivatives; use a gate of OpenQASM or pauli_rotation"
    )


def _shifts(unit: float, most: int) -> list[tuple[float, float]]:
    """Return shifts and weights for frequencies unit, 2 unit, ..., most unit.

    The rule is that of D. Wierichs et al., "General parameter-shift rules for quantum gradients", Quantum 6, 677
    (2022), equation 27.
    """
    rule = []
    for k in range(1, 2 * most + 1):
        place = (2 * k - 1) * math.pi / (2 * most)
        weight = (-1) ** (k - 1) / (4 * most * math.sin(place / 2) ** 2)
        rule.append((place / unit, unit * weight))
    return rule


def _shifted(circuit: Circuit, index: int, angle: int, shift: float) -> Circuit:
    """Return the circuit with one angle of an operation shifted."""
    operations = circuit.operations
    angles: list[Any] = list(operations[index].angles)
    angles[angle] = (angles[angle][0] + shift, angles[angle][1])
    operations[index].angles = angles
    return Circuit._like(circuit, operations)


def is_pure(circuit: Circuit) -> bool:
    """Check that the circuit has nothing but gates, and measurements that no operation follows."""
    circuit.validate()
    return _core.Program(circuit).has_gates_only


def require_exact(circuit: Circuit) -> None:
    """Raise BadInput if expectation values would be sampled, because an operation follows a measurement."""
    measured: set[int] = set()
    bits: set[int] = set()
    for index, operation in enumerate(circuit.operations):
        uses = {*operation.targets, *operation.controls}
        conditional = bits.intersection(operation.condition.clbits) or operation.kind == "assign"
        if operation.kind != "barrier" and (measured & uses or conditional):
            raise BadInput(
                f"operation {index} ({operation.name}): expected no operation after a measurement of its qubits "
                "or bits, because the expectation values would be those of samples; pass a function that "
                "averages over shots to parameter_shift"
            )
        if operation.kind == "measure":
            measured.update(operation.targets)
            bits.update(operation.clbits)
