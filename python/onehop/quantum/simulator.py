"""`simulate` runs a circuit; `plan` says beforehand what that needs and moves."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import Placement
from onehop.group import Group
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import PauliSum
from onehop.quantum.profile import Profile
from onehop.quantum.run.checkpoint import Checkpoints
from onehop.quantum.state import State, core_sum, real_where_real

__all__ = ["CircuitPlan", "Result", "plan", "simulate"]


@dataclass
class Result:
    """What a simulation came to; the same on every rank.

    Attributes
    ----------
    shots, seed : int
    counts : dict from str to int
        How often each outcome was drawn. Bits as Qiskit writes them: classical bit 0 is the last character, registers
        are separated by blanks, the first one last.
    expectations : list of float or complex
        Of each observable, in their order.
    seconds : float
        For everything after the placement.
    ranks : int
        Over which the state was split: fewer than the group has if the circuit is too small for all.
    runs : int
        How often the circuit ran: once, or once for each measurement record if it measures inside.
    exchanges, bytes_moved : int
        Exchanges between ranks; bytes, the sum over the ranks.
    passes : float
        Passes over a rank's amplitudes.
    """

    shots: int
    seed: int
    expectations: list[float | complex]
    seconds: float
    ranks: int
    runs: int
    exchanges: int
    bytes_moved: int
    passes: float
    state: State
    """The state after the last run, measurements at the end not made."""
    outcomes: _core.Outcomes = field(repr=False)
    _registers: tuple[_core.Register, ...] = field(repr=False, default=())
    resumed: bool = False
    """Whether it went on from a checkpoint; seconds, exchanges, bytes and passes are those since then."""
    profile: Profile | None = field(repr=False, default=None)
    """Where the time went, if it was asked for."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each outcome was drawn."""
        counts = self.outcomes.counts.tolist()
        return dict(zip(self._texts(), counts, strict=True))

    @cached_property
    def hex_counts(self) -> dict[str, int]:
        """The same by hexadecimal numbers, as Qiskit's results carry them."""
        return {hex(v): c for v, c in zip(self.outcomes.values, self.outcomes.counts.tolist(), strict=True)}

    @property
    def memory(self) -> list[str]:
        """The outcome of each shot, in hexadecimal."""
        values = [hex(v) for v in self.outcomes.values]
        return [values[i] for i in self.outcomes.of_shot.tolist()]

    def shot_values(self) -> NDArray[Any]:
        """The outcome of each shot as a number, bit i classical bit i; Python's integers beyond 64 bits."""
        values = self.outcomes.values
        kind: Any = np.uint64 if self.outcomes.clbits <= 64 else object
        return np.array(values, kind)[self.outcomes.of_shot] if values else np.array([], kind)

    def _texts(self) -> list[str]:
        """The outcomes as `counts` writes them; there may be millions."""
        width = self.outcomes.clbits
        values = self.outcomes.values
        registers = self._registers if len(self._registers) > 1 else ()
        if width == 0 or not values:
            return [" " * max(len(registers) - 1, 0)] * len(values)
        octets = b"".join(value.to_bytes((width + 7) // 8, "little") for value in values)
        bits = np.frombuffer(octets, np.uint8).reshape(len(values), -1)
        bits = np.unpackbits(bits, axis=1, count=width, bitorder="little") + ord("0")
        columns: list[NDArray[Any]] = []
        if registers:
            blank = np.full((len(values), 1), ord(" "), np.uint8)
            for register in reversed(registers):
                columns += [blank, bits[:, register.first : register.first + register.size][:, ::-1]]
            bits = np.concatenate(columns[1:], axis=1)
        else:
            bits = bits[:, ::-1]
        text = np.ascontiguousarray(bits).tobytes().decode("ascii")
        length = bits.shape[1]
        return [text[i : i + length] for i in range(0, len(text), length)]


@dataclass(frozen=True)
class CircuitPlan:
    """What a circuit needs and moves, before anything runs. Bytes are of a rank unless they say otherwise.

    Attributes
    ----------
    qubits, ranks : int
        The ranks over which the state is split: fewer than asked for if the circuit is too small for all.
    operations : int
        That are left to do after swaps and gates on fresh qubits were taken out.
    fits : bool
        Whether the memory of this machine suffices for `ranks_per_node` of the ranks.
    memory_per_rank, memory_in_all, memory_available : int
        Amplitudes and staging; what there is on this machine for its ranks together.
    exchanges : int
    bytes_per_rank : int
        Sent by each rank, in all exchanges.
    bytes_per_exchange : list of int
        Of each exchange.
    baseline_bytes_per_rank : int
        If each gate on a bit of the rank's number exchanged with the partner by itself.
    one_swap_at_a_time_bytes_per_rank : int
        If each such qubit were swapped down by itself, and back after the gate.
    passes : float
        Passes over a rank's amplitudes.
    placement : Placement
        Stage by stage.
    circuit : Circuit
        What acts on the state: the circuit that was given, or one on the rows and columns of a density matrix.
    ranks_per_node : int
        How many of the ranks share this machine.
    kind : str
        "state vector" or "density matrix".
    """

    qubits: int
    ranks: int
    precision: str
    operations: int
    fits: bool
    memory_per_rank: int
    memory_in_all: int
    memory_available: int
    exchanges: int
    bytes_per_rank: int
    bytes_per_exchange: list[int]
    baseline_bytes_per_rank: int
    one_swap_at_a_time_bytes_per_rank: int
    passes: float
    placement: Placement = field(repr=False, compare=False)
    circuit: Circuit = field(repr=False, compare=False)
    ranks_per_node: int
    kind: str = "state vector"


def plan(
    circuit: Circuit,
    ranks: int = 1,
    precision: str = "double",
    *,
    ranks_per_node: int | None = None,
    search_seconds: float = 1,
) -> CircuitPlan:
    """What running a circuit on so many ranks needs and moves.

    Parameters
    ----------
    circuit : Circuit
    ranks : int
        A power of two. No rank has to exist.
    precision : str
        "double" or "single".
    ranks_per_node : int, optional
        How many of them share this machine's memory; all unless given.
    search_seconds : float
        Approximate time in seconds to search for a placement that moves fewer bytes; 0 uses the heuristic alone.

    Raises
    ------
    BadInput
        A circuit that cannot be, or ranks that are no power of two.
    """
    circuit.validate()
    return plan_matrices(circuit, ranks, precision, ranks_per_node, search_seconds)


def plan_matrices(
    circuit: Circuit,
    ranks: int,
    precision: str,
    ranks_per_node: int | None,
    search_seconds: float,
    *,
    keep_order: bool = False,
) -> CircuitPlan:
    """As `plan`, of matrices that need not be unitary; keep_order: the state exists already, qubit i on bit i."""
    usable = _core.usable_ranks(circuit, ranks) if ranks > 0 and ranks & (ranks - 1) == 0 else ranks
    amplitude = 8 if precision == "single" else 16
    local_ranks = usable if ranks_per_node is None else min(ranks_per_node, usable)
    need = _core.memory_need(circuit.qubits, usable, precision, local_ranks)
    bits = list(range(circuit.qubits)) if keep_order else []
    placement = _core.place(circuit, usable, amplitude, search_seconds, bits)
    share = amplitude << placement.local_bits
    baselines = placement.baselines
    return CircuitPlan(
        qubits=circuit.qubits,
        ranks=usable,
        precision=precision,
        operations=sum(len(stage.operations) for stage in placement.stages),
        fits=need.fits,
        memory_per_rank=need.per_rank,
        memory_in_all=need.in_all,
        memory_available=need.available,
        exchanges=placement.exchanges,
        bytes_per_rank=placement.bytes_per_rank,
        bytes_per_exchange=[round(s.fraction_moved * share) for s in placement.stages if s.swaps],
        baseline_bytes_per_rank=round(baselines["gate_by_gate"] * share),
        one_swap_at_a_time_bytes_per_rank=round(baselines["one_swap_at_a_time"] * share),
        passes=placement.passes(),
        placement=placement,
        circuit=circuit,
        ranks_per_node=local_ranks,
    )


def simulate(
    circuit: Circuit,
    group: Group | None = None,
    *,
    shots: int = 0,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
    staging: int = 0,
    search_seconds: float = 1,
    progress: Callable[[int, int, int, int], None] | None = None,
    checkpoint: str | Path | None = None,
    every: float = 600,
    profile: bool = False,
) -> Result:
    """Run a circuit from |0...0>. Collective over the group; every rank gets the same result.

    Parameters
    ----------
    circuit : Circuit
    group : Group, optional
        A power of two of ranks; this process alone unless given.
    shots : int
        How often to draw the outcomes of its measurements; up to millions cost little where they stand at the end.
    seed : int, optional
        The same seed gives the same shots on every number of ranks; a fresh one unless given.
    precision : str
        "double" or "single".
    observables : sequence of PauliSum or str
        Whose expectation values are wanted.
    threads : int
        Of each rank; 0: its share of the cores that it may use.
    staging : int
        Bytes that an exchange may hold per partner, at most; 0: 8 MiB.
    search_seconds : float
        Approximate time in seconds to search for a placement that moves fewer bytes; 0 uses the heuristic alone.
    progress : callable, optional
        Called on every rank with the operations done and the operations of a run, the number of the run, and the shots
        that are done. It may raise to end the simulation.
    checkpoint : path, optional
        Save progress to this file (HDF5, needs h5py) periodically, on SIGUSR1, and on SIGTERM before the program ends.
        If the file exists, resume from it, on any number of ranks; the shots are the same. The caller removes the file
        when it has the result.
    every : float
        Seconds between checkpoints.
    profile : bool
        Record the time of each pass over the amplitudes; without it nothing is timed.

    Raises
    ------
    BadInput
        A circuit that cannot be, ranks that are no power of two, an observable on qubits that the circuit does not
        have, a checkpoint that is damaged or of something else.
    Error
        The memory does not suffice; nothing has been done then.
    """
    group = group or Group.alone()
    sums = [PauliSum.of(o) for o in observables]
    checkpoints = None
    if checkpoint is not None:
        settings = {
            "seed": seed,
            "shots": shots,
            "precision": precision,
            "observables": [repr(s.terms) for s in sums],
        }
        checkpoints = Checkpoints(checkpoint, group, circuit, settings, every)
        seed = checkpoints.settings["seed"]
    if seed is None:
        # One for all: every rank would draw another.
        seed = int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    options: dict[str, Any] = {
        "shots": shots,
        "seed": seed,
        "precision": precision,
        "observables": [core_sum(s) for s in sums],
        "threads": threads,
        "staging": staging,
        "search_seconds": search_seconds,
        "profile": profile,
        "progress": progress,
    }
    if checkpoints is None:
        core = _core.simulate(circuit, group, **options)
    else:
        checkpoints.settings["seed"] = seed
        with checkpoints.signals():
            core = _core.simulate(
                circuit,
                group,
                **options,
                due=checkpoints.due,
                keep=checkpoints.keep,
                resume=checkpoints.state(),
                restore=checkpoints.restore,
            )
    state = State._of(core.take_state())
    went = None
    if profile:
        pass_bytes = 2 * (8 if precision == "single" else 16) * 2**circuit.qubits // core.ranks
        went = Profile.gather(group, core.ranks, core.profile, core.seconds, core.pass_seconds, pass_bytes)
    return Result(
        shots=shots,
        seed=seed,
        expectations=real_where_real(sums, core.expectations),
        seconds=core.seconds,
        ranks=core.ranks,
        runs=core.runs,
        exchanges=core.exchanges,
        bytes_moved=core.bytes_moved,
        passes=core.passes,
        state=state,
        outcomes=core.outcomes,
        _registers=circuit.registers,
        resumed=checkpoints is not None and checkpoints.resumes,
        profile=went,
    )
