"""Gradients in `onehop quantum run` and `plan`: what they need, and the checks before anything runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit, CircuitPlan, NoiseModel, gradients
from onehop.quantum.circuit_plan import MemoryPlan, plan_memory
from onehop.quantum.gradients import is_pure, require_exact
from onehop.quantum.noise.noisy import plan_density_memory
from onehop.quantum.observables import PauliSum

# The ket, the bra and, for more than one observable, the final state.
GRADIENT_STATES = 3

# The gates act once on the ket forwards, and once on ket and bra backwards.
GRADIENT_SWEEPS = 3


def with_gradient(circuit_plan: CircuitPlan) -> CircuitPlan:
    """Return the plan of a gradient: its states, and its passes and exchanges forwards and backwards."""
    states, sweeps = GRADIENT_STATES, GRADIENT_SWEEPS
    memory_here = states * circuit_plan.memory_per_rank * circuit_plan.ranks_per_node
    return replace(
        circuit_plan,
        memory_per_rank=states * circuit_plan.memory_per_rank,
        memory_in_all=states * circuit_plan.memory_in_all,
        fits=memory_here <= circuit_plan.memory_available,
        exchanges=sweeps * circuit_plan.exchanges,
        bytes_per_rank=sweeps * circuit_plan.bytes_per_rank,
        bytes_per_exchange=[*circuit_plan.bytes_per_exchange, *circuit_plan.bytes_per_exchange[::-1] * 2],
        bytes_by_level={level: sweeps * moved for level, moved in circuit_plan.bytes_by_level.items()},
        passes=sweeps * circuit_plan.passes,
        kind="ket, bra and final state",
    )


def check_gradient(circuit: Circuit, observables: list[str], noise: NoiseModel | None) -> None:
    """Check that a run can compute the derivatives of observables by the parameters of a circuit."""
    if not circuit.parameters:
        raise BadInput(
            f"--gradient: expected a circuit with parameters, found none in {circuit.name}; declare them with "
            "`input float NAME;` in OpenQASM 3"
        )
    if not observables:
        raise BadInput("--gradient: expected at least one --observable, found none")
    for text in observables:
        if not PauliSum.parse(text).is_hermitian:
            raise BadInput(f"--gradient: expected Hermitian observables with real weights, found {text!r}")
    if noise is not None or not is_pure(circuit):
        try:
            require_exact(circuit)
        except BadInput as error:
            raise BadInput(f"--gradient: {error}") from error


def memory_of_gradient(
    circuit: Circuit,
    ranks: int,
    noise: NoiseModel | None,
    observables: int,
    precision: str,
    ranks_per_node: int | None,
) -> MemoryPlan:
    """Compute the memory of a gradient, which takes a density matrix for noise and for circuits with resets."""
    if noise is not None or not is_pure(circuit):
        return plan_density_memory(circuit, ranks, precision, noise or NoiseModel(), ranks_per_node)
    one = plan_memory(circuit, ranks, precision, ranks_per_node)
    states = GRADIENT_STATES if observables > 1 else 2
    return replace(
        one,
        memory_per_rank=states * one.memory_per_rank,
        memory_in_all=states * one.memory_in_all,
        fits=states * one.memory_per_rank * one.ranks_per_node <= one.memory_available,
    )


def gradient_report(
    circuit: Circuit, values: list[float], observables: list[str], group: Group, **options: Any
) -> dict[str, Any]:
    """Return the part of the report that has the derivatives: by observable, then by parameter. Collective."""
    begin = time.perf_counter()
    found = gradients(circuit, values, observables, group, **options)
    rows = [dict(zip(found.parameters, row, strict=True)) for row in found.derivatives.tolist()]
    return {
        "gradients": dict(zip(observables, rows, strict=True)),
        "gradient_method": found.method,
        "gradient_seconds": time.perf_counter() - begin,
    }
