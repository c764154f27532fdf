"""Whether the run of a circuit fits into memory, and its plan in one line."""

from __future__ import annotations

from onehop.error import Error
from onehop.quantum import Circuit, CircuitPlan, NoiseModel, plan_density
from onehop.quantum import plan as plan_circuit
from onehop.quantum.circuit_plan import MemoryPlan, plan_memory
from onehop.quantum.noise.noisy import plan_density_memory
from onehop.text import bytes_text, counted


def _as_density(noise: NoiseModel | None, trajectories: int | None) -> bool:
    return noise is not None and trajectories is None


def memory_of_run(
    circuit: Circuit, ranks: int, noise: NoiseModel | None, trajectories: int | None, precision: str
) -> MemoryPlan:
    """Compute the ranks and the memory of a run on this machine. They do not depend on a placement."""
    if noise is not None:
        noise.check_names(circuit)
        if _as_density(noise, trajectories):
            return plan_density_memory(circuit, ranks, precision, noise, ranks)
    circuit.validate()
    return plan_memory(circuit, ranks, precision, ranks)


def plan_run(
    circuit: Circuit,
    ranks: int,
    noise: NoiseModel | None,
    trajectories: int | None,
    precision: str,
    **hosts: int | None,
) -> CircuitPlan:
    """Plan a run on `ranks` ranks. `hosts` are the arguments `ranks_per_node` and `ranks_per_host` of `plan`.

    With noise and without trajectories, the plan is for a density matrix.
    """
    if noise is not None:
        noise.check_names(circuit)
    if _as_density(noise, trajectories):
        return plan_density(circuit, ranks, precision, noise=noise, **hosts)
    return plan_circuit(circuit, ranks, precision, **hosts)


def one_line(circuit_plan: CircuitPlan, seconds: float, trajectories: int | None = None) -> str:
    """Return the line that `run` prints before it starts. `seconds` is the predicted time."""
    each = f" for each of up to {counted(trajectories, 'trajectory')}" if trajectories is not None else ""
    what = " as a density matrix" if circuit_plan.kind == "density matrix" else ""
    passes = f"{circuit_plan.passes:.4g} pass{'' if circuit_plan.passes == 1 else 'es'}"
    return (
        f"{counted(circuit_plan.qubits, 'qubit')}{what} on {counted(circuit_plan.ranks, 'rank')}: "
        f"{bytes_text(circuit_plan.memory_per_rank)} a rank, {counted(circuit_plan.exchanges, 'exchange')}, "
        f"{bytes_text(circuit_plan.bytes_per_rank)} sent by each rank, {passes}, about {seconds:.2g} s{each}"
    )


def remedy(circuit_plan: MemoryPlan) -> str:
    """Name the machines or the precision that would suffice if this machine does not."""
    ranks = circuit_plan.ranks
    while circuit_plan.memory_in_all / ranks > circuit_plan.memory_available:
        ranks *= 2
    more = f"{ranks} machines like this one with a rank each" if ranks > 1 else "fewer ranks on this machine"
    single = "" if circuit_plan.precision == "single" else ", or half as much with --precision single"
    return f"use {more} ({bytes_text(circuit_plan.memory_in_all)} in all){single}"


def check_fits(circuit_plan: MemoryPlan, name: str, what: str = "circuit") -> None:
    """Check that a circuit, or `what`, fits into the memory of this machine."""
    if not circuit_plan.fits:
        need = "1 rank needs" if circuit_plan.ranks == 1 else f"{circuit_plan.ranks} ranks need"
        each = "" if circuit_plan.ranks == 1 else " each"
        raise Error(
            f"{what} {name} of {counted(circuit_plan.qubits, 'qubit')} does not fit: {need} "
            f"{bytes_text(circuit_plan.memory_per_rank)}{each}, and "
            f"{bytes_text(circuit_plan.memory_available)} are available on this machine; "
            f"{remedy(circuit_plan)}"
        )
