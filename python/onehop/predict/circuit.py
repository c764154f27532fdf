"""The predicted time of a circuit on a machine: passes at memory bandwidth, and exchanges through `simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core
from onehop.error import BadInput
from onehop.machine import Machine, Simulation, permutation_traffic, simulate
from onehop.machine.reader import machine_of
from onehop.predict.common import (
    add_bytes,
    bounding_level,
    check_memory,
    check_ranks,
    ranks_per_host,
)
from onehop.quantum import Circuit, CircuitPlan
from onehop.quantum.circuit_plan import LARGEST_STATE, plan_states
from onehop.quantum.precision import BLOCK_BITS
from onehop.text import counted


@dataclass(frozen=True)
class StagePrediction:
    """One stage of a circuit: an exchange between ranks, or none, and the passes after it on the busier rank.

    Attributes
    ----------
    exchange_seconds : float
        Time of the exchange.
    rank_bits : tuple of int
        Bits of the rank number that the exchange replaces, ascending; empty without an exchange.
    bytes_by_level : dict of str to int
        Bytes that all ranks together send in the exchange, by the level of the machine that they cross.
    bound : str
        What limits the exchange: the links of a level, or latency and overhead; empty without an exchange.
    passes : int
        Passes over the amplitudes of a rank.
    pass_seconds : float
        Time of the passes.
    arithmetic_seconds : float
        The part of `pass_seconds` in passes that multiply-adds limit; 0 if the machine file does not give their rate.
    """

    exchange_seconds: float
    rank_bits: tuple[int, ...]
    bytes_by_level: dict[str, int]
    bound: str
    passes: int
    pass_seconds: float
    arithmetic_seconds: float


@dataclass(frozen=True)
class CircuitPrediction:
    """The predicted time of a circuit on a machine.

    Attributes
    ----------
    machine : str
        Name of the machine.
    ranks : int
        Number of ranks over which the state is split; fewer than asked for if the circuit is too small.
    predicted_seconds : float
        Time of all passes and exchanges, one after the other.
    pass_seconds, exchange_seconds : float
        Time of the passes, and of the exchanges.
    arithmetic_seconds : float
        The part of `pass_seconds` in passes that multiply-adds limit rather than memory.
    counts_arithmetic : bool
        Whether the machine file gives the rate of multiply-adds; otherwise only memory and messages count.
    passes, exchanges : int
        Number of passes over the amplitudes of a rank, and of exchanges.
    bytes_per_pass : int
        Bytes that a rank reads and writes in one pass.
    bytes_by_level : dict of str to int
        Bytes that all ranks together send, by the level of the machine that they cross.
    bound : str
        What takes the largest part of the time.
    stages : tuple of StagePrediction
        The parts of every stage.
    """

    machine: str
    ranks: int
    predicted_seconds: float
    pass_seconds: float
    exchange_seconds: float
    arithmetic_seconds: float
    counts_arithmetic: bool
    passes: int
    exchanges: int
    bytes_per_pass: int
    bytes_by_level: dict[str, int]
    bound: str
    stages: tuple[StagePrediction, ...]

    def to_dict(self) -> dict[str, Any]:
        """The prediction as an object for JSON."""
        return asdict(self)


class _Exchanges:
    """Simulated exchanges of a plan. Exchanges of the same bits of the rank number take the same time."""

    def __init__(self, circuit_plan: CircuitPlan, machine: Machine, places: Sequence[int] | None) -> None:
        self.plan = circuit_plan
        self.machine = machine
        self.places = places
        self.known: dict[tuple[int, ...], Simulation] = {}

    def simulated(self, swaps: Sequence[tuple[int, int]]) -> Simulation:
        key = tuple(sorted(rank_bit for _, rank_bit in swaps))
        if key not in self.known:
            placement, precision = self.plan.placement, self.plan.precision
            # Encoded amplitudes move in blocks of 2^inside.
            inside = 0 if precision in ("double", "single") else BLOCK_BITS
            permutation = list(range(placement.qubits - inside))
            for one, other in swaps:
                low, high = max(one - inside, 0), other - inside
                permutation[low], permutation[high] = permutation[high], permutation[low]
            traffic = permutation_traffic(
                placement.qubits - inside,
                local=placement.local_bits - inside,
                permutation=permutation,
                dtype=np.dtype(f"V{round(_core.bytes_per_amplitude(precision) * 2**inside)}"),
            )
            self.known[key] = simulate(traffic, self.machine, ranks=self.places)
        return self.known[key]


class _Passes:
    """Times of passes over the amplitudes of a rank."""

    def __init__(self, circuit_plan: CircuitPlan, machine: Machine) -> None:
        double = circuit_plan.precision == "double"
        self.amplitudes = 1 << circuit_plan.placement.local_bits
        self.bytes = round(2 * _core.bytes_per_amplitude(circuit_plan.precision) * self.amplitudes)
        # Decoding and encoding an amplitude takes the time of so many multiply-adds.
        self.recoding = 0 if circuit_plan.precision in ("double", "single") else 100
        self.memory_seconds = self.bytes / machine.memory_bandwidth.value
        # Per second; 0 if the machine file does not say.
        self.multiply_adds = (machine.multiply_adds_double if double else machine.multiply_adds_single).value

    def timed(self, groups: Sequence[dict[str, Any]]) -> tuple[int, float, float]:
        """Return the number of passes, their seconds, and the seconds of those that multiply-adds limit."""
        arithmetic = []
        if self.multiply_adds > 0:
            arithmetic = [
                (group["multiply_adds"] + self.recoding) * self.amplitudes / self.multiply_adds
                for group in groups
            ]
        longer = sum(seconds for seconds in arithmetic if seconds > self.memory_seconds)
        others = len(groups) - sum(1 for seconds in arithmetic if seconds > self.memory_seconds)
        return len(groups), longer + others * self.memory_seconds, float(longer)


def _check(circuit_plan: CircuitPlan, machine: Machine) -> None:
    ranks = circuit_plan.ranks
    needed = ranks
    while circuit_plan.memory_in_all / needed > machine.memory.value:
        needed *= 2
    remedy = (
        f"use {counted(needed, 'rank')} or more"
        if needed <= machine.processors and needed > ranks
        else "use fewer qubits or another precision"
        if circuit_plan.precision != "q6"
        else "use fewer qubits"
    )
    what = f"a {circuit_plan.kind} of {counted(circuit_plan.qubits, 'qubit')} on {counted(ranks, 'rank')}"
    check_memory(circuit_plan.memory_per_rank, machine, what, remedy)


def predict_circuit(
    circuit: Circuit | CircuitPlan,
    machine: Machine | str | Path,
    ranks: int = 1,
    precision: str = "double",
    *,
    places: Sequence[int] | None = None,
    search_seconds: float = 1,
) -> CircuitPrediction:
    """Predict how long a circuit takes on a machine with one rank per processor.

    Every pass of the engine, or of the engine of devices where the processors are cards, reads and writes the
    amplitudes of a rank once, at the memory bandwidth of the machine. It
    takes the time of its multiply-adds instead if that is longer and the machine file gives their rate. Every exchange
    takes the time that `onehop.machine.simulate` gives. Passes and exchanges do not overlap. Planning, the first state
    and sampling are left out.

    Parameters
    ----------
    circuit : Circuit or CircuitPlan
        The circuit, or a plan of it by `onehop.quantum.plan`, which determines ranks and precision then.
    machine : Machine, str or path
        The machine, the name of an installed one, or the path of a TOML file.
    ranks : int
        Number of ranks, a power of two. The ranks need not exist.
    precision : str
        Precision of the amplitudes, as for `onehop.quantum.simulate`.
    places : sequence of int, optional
        The place of every rank on the machine, as for `onehop.machine.simulate`.
    search_seconds : float
        As for `onehop.quantum.plan`.

    Raises
    ------
    BadInput
        The circuit is invalid, the number of ranks is no power of two or larger than the number of processors, or the
        state does not fit.

    Examples
    --------
    >>> circuit = onehop.quantum.generators.qft(33)
    >>> prediction = onehop.predict.predict_circuit(circuit, "genesis")
    >>> prediction.exchanges, round(prediction.pass_seconds / prediction.passes, 4)
    (0, 0.0344)
    """
    described = machine_of(machine)
    if ranks < 1:
        raise BadInput(f"expected at least 1 rank, found {ranks}")
    check_ranks(ranks, described)
    if isinstance(circuit, CircuitPlan):
        circuit_plan = circuit
    else:
        # With places of their own, ranks with neighbouring numbers may be far apart.
        per_host = ranks_per_host(described, ranks) if places is None else 0
        options = {"search_seconds": search_seconds, "largest": LARGEST_STATE}
        circuit_plan = plan_states(circuit, ranks, precision, (1, per_host), **options)
    check_ranks(circuit_plan.ranks, described)
    _check(circuit_plan, described)
    stages = [stage for one in circuit_plan.states for stage in _stages(one, described, places)]
    return _sum_up(described, circuit_plan, stages)


def _stages(
    circuit_plan: CircuitPlan, machine: Machine, places: Sequence[int] | None
) -> Iterator[StagePrediction]:
    """Predict the stages of one state."""
    passes = _Passes(circuit_plan, machine)
    exchanges = _Exchanges(circuit_plan, machine, places)
    local = circuit_plan.placement.local_bits
    # Controls on bits of the rank number leave rank 0 the least to do and the last rank the most, or the reverse.
    both = [
        circuit_plan.placement.groups(rank, on_device=machine.device) for rank in (0, circuit_plan.ranks - 1)
    ]
    for stage, *groups in zip(circuit_plan.placement.stages, *both, strict=True):
        found = exchanges.simulated(stage.swaps) if stage.swaps else None
        number, pass_seconds, arithmetic_seconds = max(map(passes.timed, groups), key=lambda timed: timed[1])
        yield StagePrediction(
            exchange_seconds=found.seconds if found else 0.0,
            rank_bits=tuple(sorted(bit - local for _, bit in stage.swaps)),
            bytes_by_level={} if found is None else {k: round(v) for k, v in found.bytes_by_level.items()},
            bound="" if found is None else bounding_level(found),
            passes=number,
            pass_seconds=pass_seconds,
            arithmetic_seconds=arithmetic_seconds,
        )


def _sum_up(machine: Machine, circuit_plan: CircuitPlan, stages: list[StagePrediction]) -> CircuitPrediction:
    passes = _Passes(circuit_plan, machine)
    passing = sum(stage.pass_seconds for stage in stages)
    computing = sum(stage.arithmetic_seconds for stage in stages)
    parts = {"memory bandwidth": passing - computing, "multiply-adds": computing}
    total = {level.name: 0 for level in machine.levels}
    for stage in stages:
        add_bytes(total, stage.bytes_by_level)
        if stage.bound:
            parts[stage.bound] = parts.get(stage.bound, 0.0) + stage.exchange_seconds
    exchanging = sum(stage.exchange_seconds for stage in stages)
    return CircuitPrediction(
        machine=machine.name,
        ranks=circuit_plan.ranks,
        predicted_seconds=passing + exchanging,
        pass_seconds=passing,
        exchange_seconds=exchanging,
        arithmetic_seconds=computing,
        counts_arithmetic=passes.multiply_adds > 0,
        passes=sum(stage.passes for stage in stages),
        exchanges=sum(1 for stage in stages if stage.rank_bits),
        bytes_per_pass=passes.bytes,
        bytes_by_level=total,
        bound=max(parts, key=lambda part: parts[part]),
        stages=tuple(stages),
    )
