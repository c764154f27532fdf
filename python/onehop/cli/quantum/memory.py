"""What the run of a circuit and its gradient need: memory, checks before anything runs, and the plan in one line."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from onehop import _core
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.quantum import Circuit, CircuitPlan, NoiseModel, gradients, plan_density
from onehop.quantum.circuit_plan import MemoryPlan, plan_largest, plan_states
from onehop.quantum.gradients import is_pure, require_exact
from onehop.quantum.noise.noisy import plan_density_memory
from onehop.quantum.observables import PauliSum
from onehop.text import bytes_text, counted, seconds_text

# Precisions, the most accurate first. Noisy states and gradients take the first one only.
_SMALLER = ("single", "fp16", "q8", "q6")
_NOISY = "noisy state vector"


def _as_density(noise: NoiseModel | None, trajectories: int | None) -> bool:
    return noise is not None and trajectories is None


def _storage(noise: NoiseModel | None, storage: dict[str, Any]) -> dict[str, Any]:
    return storage if noise is None else {"divide": False}


def memory_of_run(
    circuit: Circuit,
    ranks: int,
    noise: NoiseModel | None,
    trajectories: int | None,
    precision: str,
    **storage: Any,
) -> MemoryPlan:
    """Compute the ranks and the memory of a run on this machine. They do not depend on a placement.

    `storage` as for `stored_circuits`. With noise, qubits that are not idle are in one state.
    """
    if noise is not None:
        noise.check_names(circuit)
        if _as_density(noise, trajectories):
            return plan_density_memory(circuit, ranks, precision, noise, ranks)
    circuit.validate()
    found = plan_largest(circuit, ranks, precision, ranks, **_storage(noise, storage))
    return found if noise is None else replace(found, kind=_NOISY)


def plan_run(
    circuit: Circuit,
    ranks: int,
    noise: NoiseModel | None,
    trajectories: int | None,
    precision: str,
    *,
    ranks_per_node: int | None,
    ranks_per_host: int | None,
    **storage: Any,
) -> CircuitPlan:
    """Plan a run on `ranks` ranks. Arguments are those of `plan` and of `memory_of_run`.

    With noise and without trajectories, the plan is for a density matrix.
    """
    hosts = {"ranks_per_node": ranks_per_node, "ranks_per_host": ranks_per_host}
    if noise is not None:
        noise.check_names(circuit)
    if _as_density(noise, trajectories):
        return plan_density(circuit, ranks, precision, noise=noise, **hosts)
    each = (ranks_per_node, ranks_per_host)
    found = plan_states(circuit, ranks, precision, each, **_storage(noise, storage))
    return found if noise is None else replace(found, kind=_NOISY)


def one_line(
    circuit_plan: CircuitPlan, seconds: float, trajectories: int | None = None, *, passes: bool = True
) -> str:
    """Return the line that `run` prints before it starts. `seconds` is the predicted time."""
    each = f" for each of up to {counted(trajectories, 'trajectory')}" if trajectories is not None else ""
    what = " as a density matrix" if circuit_plan.kind == "density matrix" else ""
    number = f"{circuit_plan.passes:.4g} pass{'' if circuit_plan.passes == 1 else 'es'}, " if passes else ""
    time = (
        "less than 1 ms" if seconds < 1e-3 else f"about {seconds_text(seconds, 2)}"
    )  # starting takes some of it
    return (
        f"{qubits_of(circuit_plan)}{what} on {counted(circuit_plan.ranks, 'rank')}: "
        f"{bytes_text(circuit_plan.memory_per_rank)} per rank, {counted(circuit_plan.exchanges, 'exchange')}, "
        f"{bytes_text(circuit_plan.bytes_per_rank)} sent by each, {number}{time}{each}"
    )


def qubits_of(circuit_plan: MemoryPlan) -> str:
    """Name the qubits of a circuit, and those of its largest state if these are fewer."""
    largest = circuit_plan.largest_state_qubits
    fewer = f" ({largest} in the largest state)" if largest < circuit_plan.qubits else ""
    return counted(circuit_plan.qubits, "qubit") + fewer


def remedy(circuit_plan: MemoryPlan) -> str:
    """Name the machines or the precision that would suffice if this machine does not."""
    ranks = circuit_plan.ranks
    while circuit_plan.memory_in_all / ranks > circuit_plan.memory_available:
        ranks *= 2
    more = f"{ranks} machines like this one with a rank each" if ranks > 1 else "fewer ranks on this machine"
    return f"use {more} ({bytes_text(circuit_plan.memory_in_all)} in all){_smaller(circuit_plan)}"


def _smaller(circuit_plan: MemoryPlan) -> str:
    """Name the most accurate precision with which the circuit fits, or else a file for the state."""
    encodable = circuit_plan.kind == "state vector"
    here = circuit_plan.memory_per_rank * circuit_plan.ranks_per_node
    size = (circuit_plan.largest_state_qubits, circuit_plan.ranks)
    kept, *others = (
        _core.memory_need(*size, name, circuit_plan.ranks_per_node).per_rank
        for name in (circuit_plan.precision, *_SMALLER[: None if encodable else 1])
    )
    for name, other in zip(_SMALLER, others, strict=False):
        need = math.ceil(here * other / kept)
        if need < here and need <= circuit_plan.memory_available:
            return f", or --precision {name} ({bytes_text(need)} here)"
    if not encodable or circuit_plan.ranks > 1:
        return ""
    return f", or --state-folder FOLDER on a disk with {bytes_text(here)} of free space (twice that with --checkpoint)"


def check_fits(circuit_plan: MemoryPlan, name: str, what: str = "circuit") -> None:
    """Check that a circuit, or `what`, fits into the memory of this machine."""
    if not circuit_plan.fits:
        need = "1 rank needs" if circuit_plan.ranks == 1 else f"{circuit_plan.ranks} ranks need"
        each = "" if circuit_plan.ranks == 1 else " each"
        raise Error(
            f"{what} {name} of {qubits_of(circuit_plan)} does not fit: {need} "
            f"{bytes_text(circuit_plan.memory_per_rank)}{each}, and "
            f"{bytes_text(circuit_plan.memory_available)} are available on this machine; "
            f"{remedy(circuit_plan)}"
        )


# The ket, the bra and, for more than one observable, the final state.
GRADIENT_STATES = 3
_GRADIENT = "ket, bra and final state"

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
        kind=_GRADIENT,
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
    one = plan_largest(circuit, ranks, precision, ranks_per_node, divide=False)
    states = GRADIENT_STATES if observables > 1 else 2
    return replace(
        one,
        kind=_GRADIENT,
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
