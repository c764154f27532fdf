"""Simulation of circuits with noise, on a density matrix or as trajectories of a state vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.group import Group, group_or_alone
from onehop.options import Options
from onehop.quantum.circuit import Circuit
from onehop.quantum.circuit_plan import CircuitPlan, MemoryPlan, plan_matrices, plan_memory
from onehop.quantum.noise.core_program import noisy_program
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.noise.model import NoiseModel, warn_without
from onehop.quantum.observables import PauliSum, core_sum, real_where_real, sums_of
from onehop.quantum.precision import require_plain
from onehop.quantum.simulation_options import common_seed, core_options
from onehop.quantum.simulator import Result, result_of
from onehop.quantum.state import State
from onehop.refusals import collective

if TYPE_CHECKING:
    from onehop._keywords import NoisyKeywords, Unpack

__all__ = ["NoisyResult", "plan_density", "simulate_density", "simulate_trajectories"]


@dataclass(repr=False)
class NoisyResult(Result):
    """The result of a simulation with noise; the same on every rank. It has no checkpoints and no profile.

    Attributes
    ----------
    shots, seed, counts, outcomes, seconds, ranks, exchanges, bytes_moved, bytes_between_hosts, passes
        As for `Result`.
    expectations : list of float or complex
        Value of each observable, averaged over the trajectories.
    errors : list of float
        Standard error of each average; 0 for a density matrix without measurements inside the circuit.
    runs : int
        Number of distinct records of measurement outcomes and noise; each is run once.
    """

    errors: list[float] = field(default_factory=list)
    _kind: type[State | DensityMatrix] = field(repr=False, default=State)

    @property
    def state(self) -> State | DensityMatrix | None:  # type: ignore[override]
        """The state after a run, the only one if `runs` is 1; None on a rank that computed no trajectory."""
        found = None if self._core is None else self._core.take_state()
        if found is not None:
            self._state = self._kind._of(found)
        return self._state


@dataclass(kw_only=True)
class NoisyOptions(Options):
    """The options that `simulate_density` and `simulate_trajectories` have in common."""

    noise: NoiseModel | None = None
    seed: int | None = None
    precision: str = "double"
    observables: Sequence[Any] = ()
    threads: int = 0
    device: str = "cpu"


def _averages(
    core: _core.SimulationResult, sums: Sequence[PauliSum]
) -> tuple[list[float | complex], list[float]]:
    """Return the average of each observable over the trajectories, and the standard errors."""
    if not sums:
        return [], []
    counts = np.array([run.count for run in core.made], float)
    values = np.array([run.values for run in core.made])
    weights = counts / counts.sum()
    average = weights @ values
    errors = np.sqrt(weights @ np.abs(values - average) ** 2 / max(counts.sum() - 1, 1))
    return real_where_real(sums, average.tolist()), errors.tolist()


def run_noisy(circuit: Circuit, group: Group | None, options: NoisyOptions, **more: Any) -> NoisyResult:
    """Run a circuit with noise, without a warning; `more`: further options of `run_program` of the library."""
    group, noise = group_or_alone(group), options.noise
    circuit.validate()
    circuit.require_bound()
    more["shots"] = whole_number(more["shots"], "shots", 0, 1 << 31)
    more["trajectories"] = whole_number(more.get("trajectories", max(more["shots"], 1)), "trajectories", 1)
    sums = sums_of(options.observables, circuit.qubits)
    seed = common_seed(options.seed, group)
    asked = core_options(
        seed=seed,
        observables=[core_sum(one) for one in sums],
        precision=options.precision,
        threads=options.threads,
        device=options.device,
        **more,
    )
    core = _core.run_program(noisy_program(circuit, noise), group, asked)
    expectations, errors = _averages(core, sums)
    return result_of(
        NoisyResult,
        core,
        circuit,
        shots=more["shots"],
        seed=seed,
        expectations=expectations,
        errors=errors,
        method="density_matrix" if more["mixed"] else "trajectories",
        _kind=DensityMatrix if more["mixed"] else State,
    )


def _run_with_warning(
    circuit: Circuit, group: Group | None, options: NoisyOptions, **more: Any
) -> NoisyResult:
    instance(circuit, Circuit, "circuit")
    if options.noise is not None:
        instance(options.noise, NoiseModel, "noise")
    group = group_or_alone(group)
    warn_of_gates(circuit, options.noise, group)
    return run_noisy(circuit, group, options, **more)


def plan_density(
    circuit: Circuit,
    ranks: int = 1,
    precision: str = "double",
    *,
    noise: NoiseModel | None = None,
    ranks_per_node: int | None = None,
    ranks_per_host: int | None = None,
) -> CircuitPlan:
    """Plan `simulate_density`: the memory and the exchanges that it would take.

    A circuit with measurements inside runs once for each measurement record, in pieces between the measurements. The
    plan is for one run in one piece.

    Parameters
    ----------
    circuit, ranks, precision, ranks_per_node, ranks_per_host
        As for `plan`.
    noise : NoiseModel, optional
        Channels after the gates. Default: no noise.

    Raises
    ------
    BadInput
        As for `plan`.
    """
    instance(circuit, Circuit, "circuit").validate()
    require_plain(precision, "plan_density")
    if noise is not None:
        instance(noise, NoiseModel, "noise")
    both = noisy_program(circuit, noise).without_idle().on_rows_and_columns()
    planned = plan_matrices(both, ranks, precision, ranks_per_node, ranks_per_host)
    return replace(planned, **_as_density(circuit, both))


def _as_density(circuit: Circuit, both: Circuit) -> dict[str, Any]:
    """Return what a plan of the rows and columns of a density matrix says about its circuit."""
    return {
        "qubits": circuit.qubits,
        "largest_state_qubits": both.qubits // 2,
        "kind": "density matrix",
    }


def plan_density_memory(
    circuit: Circuit, ranks: int, precision: str, noise: NoiseModel, ranks_per_node: int | None
) -> MemoryPlan:
    """Compute the ranks and the memory of `simulate_density`, without a placement; arguments as for `plan_density`."""
    circuit.validate()
    both = noisy_program(circuit, noise).without_idle().on_rows_and_columns()
    needed = plan_memory(both, ranks, precision, ranks_per_node)
    return replace(needed, **_as_density(circuit, both))


@collective
def simulate_density(
    circuit: Circuit, group: Group | None = None, *, shots: int = 0, **keywords: Unpack[NoisyKeywords]
) -> NoisyResult:
    """Run a circuit with noise from |0...0> on a density matrix. Collective.

    Expectation values are exact unless the circuit contains measurements that other operations follow; the records of
    those are sampled, once per shot.

    Parameters
    ----------
    circuit, group, shots
        As for `simulate`.

    Other Parameters
    ----------------
    seed, precision, observables, threads, device
        As for `simulate`.
    noise : NoiseModel, optional
        Channels after the gates, and readout errors. Default: no noise.

    Raises
    ------
    BadInput, Error
        As for `simulate`.
    """
    options = NoisyOptions.of("simulate_density", keywords)
    return _run_with_warning(circuit, group, options, mixed=True, shots=shots)


def warn_of_gates(circuit: Circuit, noise: NoiseModel | None, group: Group) -> None:
    """Warn on rank 0 about the gates of a circuit without noise."""
    if noise is not None and group.rank == 0:
        warn_without(noise.without(circuit))


@collective
def simulate_trajectories(
    circuit: Circuit,
    group: Group | None = None,
    *,
    trajectories: int = 1000,
    shots: int | None = None,
    memory: int = 0,
    **keywords: Unpack[NoisyKeywords],
) -> NoisyResult:
    """Run a circuit with noise from |0...0> many times on a state vector. Collective.

    Each trajectory samples one Kraus operator of each channel; equal trajectories run once. The same seed gives the
    same trajectories on every number of ranks.

    Trajectories of a circuit without measurements inside share the beginning of their runs, and different ranks and
    threads compute different ones wherever a few states fit into the memory of a rank. Otherwise a state is split over
    the ranks.

    Parameters
    ----------
    circuit, group
        As for `simulate`.
    trajectories : int
        Number of trajectories. Statistical errors fall as one over its square root.
    shots : int, optional
        Number of shots; shot s is drawn at the end of trajectory s modulo their number. Default: one per trajectory.
    memory : int
        Bytes of each rank for states. Default: half of what is available.

    Other Parameters
    ----------------
    noise, seed, precision, observables, threads, device
        As for `simulate_density`.

    Raises
    ------
    BadInput, Error
        As for `simulate`.
    """
    return _run_with_warning(
        circuit,
        group,
        NoisyOptions.of("simulate_trajectories", keywords),
        mixed=False,
        histories=True,
        shots=trajectories if shots is None else shots,
        trajectories=trajectories,
        memory=whole_number(memory, "memory", 0),
    )
