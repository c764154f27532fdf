"""`simulate` runs a circuit."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.group import Group, group_or_alone
from onehop.quantum.circuit import Circuit, Register
from onehop.quantum.observables import PauliSum, core_sum, real_where_real, sums_of
from onehop.quantum.profile import Profile
from onehop.quantum.run.checkpoint import Checkpoints
from onehop.quantum.simulation_options import SimulationOptions, common_seed, core_options, require_plain
from onehop.quantum.state import State
from onehop.text import counted, seconds_text

if TYPE_CHECKING:
    from onehop._keywords import SimulationKeywords, Unpack

__all__ = ["Result", "simulate"]


R = TypeVar("R", bound="Result")


@dataclass(repr=False)
class Result:
    """The result of a simulation; the same on every rank.

    Copies and pickles have no state if it is split over several ranks.

    Attributes
    ----------
    shots, seed : int
        Number of shots, and their seed.
    expectations : list of float or complex
        Expectation value of each observable, in their order; a float if the observable's coefficients are real.
    seconds : float
        Time for everything after the placement.
    ranks : int
        Number of ranks over which the state was split; fewer than the group has if the circuit is too small.
    runs : int
        Number of times the circuit ran: once, or once per measurement record if it contains measurements that other
        operations follow.
    exchanges : int
        Number of exchanges between ranks.
    bytes_moved : int
        Bytes that all ranks together have sent in the exchanges.
    bytes_between_hosts : int
        Part of these bytes that was sent from one host to another. Ranks that share memory are on one host.
    passes : float
        Number of passes over a rank's amplitudes.
    outcomes : Outcomes
        The distinct outcomes, their counts, and the outcome of each shot.
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
    """The state after the last run, before the final measurements."""
    outcomes: _core.Outcomes = field(repr=False)
    _registers: tuple[_core.Register, ...] = field(repr=False, default=())
    resumed: bool = False
    """Whether the simulation resumed from a checkpoint; seconds, exchanges, bytes and passes count from there."""
    checkpoints: int = 0
    """Number of checkpoints that the simulation wrote."""
    profile: Profile | None = field(repr=False, default=None)
    """The times of passes and exchanges, if `profile=True` was given."""
    bytes_between_hosts: int = 0
    fidelity_estimate: float = 1.0
    """Estimate of the fidelity that the rounding of an encoded state has left, the lowest of all runs; 1 for other
    precisions, whose rounding is not measured."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of shots with each outcome.

        Outcomes are written as in Qiskit: classical bit 0 is the last character, and registers are separated by
        blanks, the first one last. If a bit is in no register, the outcomes have all bits without blanks.
        """
        texts = outcome_texts(_outcome_bits(self.outcomes), self._registers)
        return dict(zip(texts, self.outcomes.counts.tolist(), strict=True))

    @cached_property
    def hex_counts(self) -> dict[str, int]:
        """Number of shots with each outcome, by hexadecimal numbers as in Qiskit's results."""
        return {hex(v): c for v, c in zip(self.outcomes.values, self.outcomes.counts.tolist(), strict=True)}

    @property
    def memory(self) -> list[str]:
        """Outcome of each shot as a hexadecimal number."""
        values = [hex(v) for v in self.outcomes.values]
        return [values[i] for i in self.outcomes.of_shot.tolist()]

    def __repr__(self) -> str:
        values = f", {counted(len(self.expectations), 'expectation')}" if self.expectations else ""
        return (
            f"<{type(self).__name__}: {counted(self.shots, 'shot')}, "
            f"{counted(len(self.outcomes.values), 'outcome')}{values}, "
            f"{seconds_text(self.seconds)} on {counted(self.ranks, 'rank')}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        is_split = self.state is not None and self.state.ranks > 1
        return self.__dict__ | ({"state": None} if is_split else {})

    def shot_values(self) -> NDArray[Any]:
        """Return the outcome of each shot as a number.

        Returns
        -------
        array of uint64, or of Python integers for more than 64 classical bits, shape (shots,)
            Bit i is classical bit i.
        """
        values = self.outcomes.values
        kind: Any = np.uint64 if self.outcomes.clbits <= 64 else object
        return np.array(values, kind)[self.outcomes.of_shot] if values else np.array([], kind)


def outcome_texts(bits: NDArray[np.uint8], registers: Sequence[Register]) -> list[str]:
    """Write outcomes as in Qiskit: the last classical bit first, and blanks between registers, the first one last.

    All bits in their order are cut at the sizes of the registers, as Qiskit does for registers that share bits or are
    in another order, too. If a bit is in no register, the texts have all bits without blanks. NumPy does the work,
    because there may be millions.
    """
    number, width = bits.shape
    inside = set().union(*(range(one.first, one.first + one.size) for one in registers))
    sizes = [one.size for one in registers] if registers and inside == set(range(width)) else [width]
    blank = np.full((number, 1), ord(" "), np.uint8)
    columns: list[NDArray[np.uint8]] = []
    digits, start = bits[:, ::-1] + np.uint8(ord("0")), 0
    for size in reversed(sizes):
        columns += [blank, digits[:, start : start + size]]
        start += size
    rows = np.concatenate(columns[1:], axis=1)
    text, length = rows.tobytes().decode("ascii"), rows.shape[1]
    return [text[k * length : (k + 1) * length] for k in range(number)]


def shot_bits(outcomes: _core.Outcomes) -> NDArray[np.uint8]:
    """Return the classical bits of each shot, shape (shots, clbits)."""
    return _outcome_bits(outcomes)[outcomes.of_shot]


def _outcome_bits(outcomes: _core.Outcomes) -> NDArray[np.uint8]:
    """Return the classical bits of each distinct outcome, shape (outcomes, clbits)."""
    width, values = outcomes.clbits, outcomes.values
    octets = b"".join(value.to_bytes((width + 7) // 8, "little") for value in values)
    bits = np.frombuffer(octets, np.uint8).reshape(len(values), (width + 7) // 8)
    return np.unpackbits(bits, axis=1, count=width, bitorder="little")


def simulate(circuit: Circuit, group: Group | None = None, **keywords: Unpack[SimulationKeywords]) -> Result:
    """Run a circuit from |0...0>. Collective; every rank gets the same result.

    Parameters
    ----------
    circuit : Circuit
        Circuit to run.
    group : Group, optional
        Ranks that hold the state, a power of two of them. Default: this process alone.

    Other Parameters
    ----------------
    shots : int
        Number of samples of the measurement outcomes. Millions cost little if no operation follows a measurement. In a
        circuit without classical bits, all qubits are measured at the end; bit i of an outcome is qubit i.
    seed : int, optional
        The same seed gives the same shots on every number of ranks. Default: a random seed.
    precision : str
        "double" or "single", or a codec that keeps the state in fewer bytes: "fp16", "bf16", "q8" or "q6". Gates then
        work in single precision, and `Result.fidelity_estimate` says what the rounding costs.
    observables : sequence of PauliSum or str
        Observables whose expectation values to compute, before the final measurements.
    threads : int
        Threads per rank; 0: the rank's share of the cores.
    staging : int
        Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.
    search_seconds : float
        Approximate time in seconds to search for a placement that moves fewer bytes; 0 uses the heuristic alone.
    progress : callable, optional
        Function `progress(done, total, run, shots_done)`, called on every rank: operations done and operations in
        all of the current run, the number of the run, and the number of finished shots. It may raise an exception to
        end the simulation.
    checkpoint : path, optional
        Save progress to this file (HDF5, needs h5py) periodically, on SIGUSR1, and on SIGTERM before the program ends.
        If the file exists, resume from it, on any number of ranks; the shots are the same. The caller removes the file
        after the run.
    every : float
        Time between checkpoints in seconds.
    profile : bool
        Record the time of each pass and exchange in `Result.profile`.

    Raises
    ------
    BadInput
        The circuit is invalid, the number of ranks is no power of two, an observable names a qubit that the circuit
        does not have, or the checkpoint is damaged or belongs to another simulation.
    Error
        The memory does not suffice. This is found out before anything runs.
    """
    options = SimulationOptions.of("simulate", keywords)
    group = group_or_alone(group)
    sums = sums_of(options.observables)
    seed, checkpoints = options.seed, None
    if options.checkpoint is not None:
        require_plain(options.precision, "checkpoint")
        settings = {
            "seed": seed,
            "shots": options.shots,
            "precision": options.precision,
            "observables": [repr(s.terms) for s in sums],
        }
        checkpoints = Checkpoints(options.checkpoint, group, circuit, settings, options.every)
        seed = checkpoints.settings["seed"]
    seed = common_seed(seed, group)
    names = ("shots", "precision", "threads", "staging", "search_seconds", "profile", "progress")
    given = {name: getattr(options, name) for name in names}
    asked = core_options(**given, seed=seed, observables=[core_sum(one) for one in sums])
    with contextlib.nullcontext() if checkpoints is None else checkpoints.writing(asked):
        core = _core.simulate(circuit, group, asked)
    result = pure_result(core, circuit, sums, options.shots, seed)
    if checkpoints is not None:
        result.resumed, result.checkpoints = checkpoints.resumes, checkpoints.written
    if options.profile:
        amplitude_bytes = _core.bytes_per_amplitude(options.precision)
        pass_bytes = round(2 * amplitude_bytes * 2**circuit.qubits / core.ranks)
        result.profile = Profile.gather(
            group, core.ranks, core.profile, core.seconds, core.pass_seconds, pass_bytes
        )
    return result


# The attributes that a result takes from that of the library.
_FROM_CORE = (
    "seconds",
    "ranks",
    "runs",
    "exchanges",
    "bytes_moved",
    "bytes_between_hosts",
    "passes",
    "fidelity_estimate",
    "outcomes",
)


def result_of(kind: type[R], core: _core.SimulationResult, circuit: Circuit, **fields: Any) -> R:
    """Return a result with the values of the library's result, and with further fields."""
    return kind(**fields, **{name: getattr(core, name) for name in _FROM_CORE}, _registers=circuit.registers)


def pure_result(
    core: _core.SimulationResult, circuit: Circuit, sums: Sequence[PauliSum], shots: int, seed: int
) -> Result:
    """Return the result of a run on a state vector, with the expectation values of these sums."""
    expectations, state = real_where_real(sums, core.expectations), State._of(core.take_state())
    return result_of(Result, core, circuit, shots=shots, seed=seed, expectations=expectations, state=state)
