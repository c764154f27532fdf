"""`simulate` runs a circuit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.error import BadInput, Error
from onehop.figure import save_figure
from onehop.group import Group, group_or_alone
from onehop.output import check_name
from onehop.quantum import notebook
from onehop.quantum.circuit import Circuit, Register
from onehop.quantum.clifford import CliffordCircuit, NotClifford, has_stim
from onehop.quantum.observables import PauliSum, core_sum, real_where_real, sums_of
from onehop.quantum.profile import Profile, peak_flops
from onehop.quantum.run.checkpoint import Checkpoints
from onehop.quantum.run.checkpoint import remove_checkpoint as remove_checkpoint
from onehop.quantum.simulation_options import METHODS, SimulationOptions, common_seed, core_options
from onehop.quantum.state import State
from onehop.quantum.steps import require_certain
from onehop.refusals import collective
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
        Number of passes over a rank's amplitudes; of a state on disk, over its tiles in memory.
    disk_passes : float
        Number of passes over the file of a state on disk.
    largest_state_qubits : int
        Number of qubits of the largest state. Idle qubits are in no state, and qubits that no operation joins are in
        separate states.
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
    outcomes: _core.Outcomes = field(repr=False)
    _registers: tuple[_core.Register, ...] = field(repr=False, default=())
    resumed: bool = False
    """Whether the simulation resumed from a checkpoint; seconds, exchanges, bytes and passes count from there."""
    checkpoints: int = 0
    """Number of checkpoints that the simulation wrote."""
    profile: Profile | None = field(repr=False, default=None)
    """The times of passes and exchanges, if `profile=True` was given."""
    bytes_between_hosts: int = 0
    disk_passes: float = 0.0
    disk: tuple[int, int, float] = (0, 0, 0.0)
    """Bytes read from the file of the state and written to it, and the seconds in which either was under way."""
    fidelity_estimate: float = 1.0
    """Estimate of the fidelity that the rounding of an encoded state has left, the lowest of all runs; 1 for other
    precisions, whose rounding is not measured."""
    largest_state_qubits: int = 0
    method: str = "statevector"
    """How the circuit ran: "statevector", "clifford", "density_matrix" or "trajectories"."""
    measures_early: bool = False
    """Whether qubits were measured before the end because their state does not fit into memory."""
    _core: Any = field(repr=False, compare=False, default=None)
    _run: Callable[[], Any] | None = field(repr=False, compare=False, default=None)
    _state: Any = field(repr=False, compare=False, default=None)

    @property
    def state(self) -> State:
        """The state of all qubits after the last run, before the final measurements. Collective at first.

        It is made when it is asked for if the circuit ran on smaller states or on tableaus. Raises Error if its memory
        does not suffice.
        """
        if self._core is None and self._run is not None:
            self._core = self._run()
        # No cached_property: before Python 3.12 its lock would keep ranks that are threads from meeting.
        if self._state is None and self._core is not None:
            found = self._core.take_state()
            self._state = None if found is None else State._of(found)
        if self._state is None and self._core is not None:
            raise Error(
                "the state of all qubits does not fit into memory; the largest state of the run has "
                f"{self.largest_state_qubits} qubits; ask for counts or observables instead"
            )
        return self._state

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

    def _repr_html_(self) -> str:
        return notebook.result_html(self)

    def plot(self, file: str | None = None, *, most: int = notebook.MOST_BARS) -> Any:
        """Draw the counts as bars: the `most` frequent outcomes, in the order of their bits.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it. With `file`, it is written there, too; the suffix selects the format.

        Raises
        ------
        BadInput
            The result has no shots, or the file cannot be written.
        Error
            matplotlib is not installed.
        """
        if not self.shots:
            raise BadInput("plot: expected a result with shots, found one without; simulate with shots=1000")
        figure = notebook.counts_figure(self.counts, most=whole_number(most, "most", 1))
        if file is not None:
            save_figure(figure, file)
        return figure

    def __getstate__(self) -> dict[str, Any]:
        alone = self.ranks == 1
        if alone and self._core is not None:
            with contextlib.suppress(Error):  # the state of all qubits does not fit
                _ = self.state
        return self.__dict__ | {"_core": None, "_run": None, "_state": self._state if alone else None}

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


@collective
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
        Observables whose expectation values to compute, before the final measurements. With resets or measurements
        inside the circuit they are means over the shots.
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
        If the file exists, resume from it, on any number of ranks; the shots are the same. With `state_folder`, it lies
        there beside the files of the state. The caller removes it after the run, with `remove_checkpoint(file)`.
    every : float
        Time between checkpoints in seconds.
    state_folder : path, optional
        Keep the state in a file in this folder instead of in memory, which holds a part of it at a time. The file is
        gone after the run, unless it is a checkpoint. One rank.
    state_memory : int
        Bytes of memory for that part; 0: half of what is available.
    device : str
        As for `State`.
    profile : bool
        Record the time of each pass and exchange in `Result.profile`.
    method : str
        "statevector"; "clifford", with the package stim, for circuits of Clifford gates, measurements, resets and
        conditions; or "auto": "clifford" for such circuits whose largest state has more than 20 qubits, if stim is
        installed. The shots are the same. `Result.method` says which one ran.

    Raises
    ------
    BadInput
        The circuit is invalid, the number of ranks is no power of two, an observable names a qubit that the circuit
        does not have, or the checkpoint is damaged or belongs to another simulation.
    Error
        The memory does not suffice. This is found out before anything runs.
    """
    options = SimulationOptions.of("simulate", keywords)
    instance(circuit, Circuit, "circuit")
    group = group_or_alone(group)
    sums = sums_of(options.observables)
    if sums and not options.shots and isinstance(circuit, Circuit):
        require_certain(circuit)
    seed, checkpoints = options.seed, None
    if options.profile and options.state_folder is not None:
        raise BadInput("profile: expected a state in memory, found a state_folder; leave one of them out")
    if options.checkpoint is not None:
        if options.device != "cpu":
            raise BadInput(f"checkpoint: expected a state on the device 'cpu', found {options.device!r}")
        settings = {
            "seed": seed,
            "shots": options.shots,
            "precision": options.precision,
            "observables": [repr(s.terms) for s in sums],
        }
        circuit.validate()
        circuit.require_bound()
        (stored,) = _core.stored_circuits(circuit, divide=False)
        checkpoints = Checkpoints(
            options.checkpoint, group, circuit, stored, settings, options.every, options.state_folder
        )
        seed = checkpoints.settings["seed"]
    seed = common_seed(seed, group)
    names = (
        "shots",
        "precision",
        "threads",
        "staging",
        "search_seconds",
        "profile",
        "progress",
        "state_memory",
        "device",
    )
    given = {name: getattr(options, name) for name in names}
    given["state_folder"] = (
        str(check_name(options.state_folder, "state_folder")) if options.state_folder else ""
    )
    asked = core_options(**given, seed=seed, observables=[core_sum(one) for one in sums])
    # For a state vector the library compares.
    if options.method == "clifford" or getattr(circuit, "qubits", 0) > _LARGEST_STATE:
        _core.require_same_simulation(circuit, group, asked, options.method.removeprefix("auto"))
    clifford = clifford_of(circuit, group, options)
    if clifford is not None:
        return _clifford_result(clifford, circuit, sums, asked, lambda: _core.simulate(circuit, group, asked))
    with contextlib.nullcontext() if checkpoints is None else checkpoints.writing(asked):
        core = _core.simulate(circuit, group, asked)
    result = pure_result(core, circuit, sums, options.shots, seed)
    if checkpoints is not None:
        result.resumed, result.checkpoints = checkpoints.resumes, checkpoints.written
    if options.profile:
        result.profile = Profile.gather(
            group,
            core,
            _core.bytes_per_amplitude(options.precision),
            peak_flops(options.precision, _core.thread_count(options.threads, group)),
        )
    return result


# A Clifford circuit with a larger state goes to stim, unless another method is asked for.
_LARGEST_STATE = 20


def clifford_of(circuit: Circuit, group: Group, options: SimulationOptions) -> CliffordCircuit | None:
    """Return the circuit for stim if it runs there. Collective for large circuits."""
    if options.method not in METHODS:
        raise BadInput(f"expected the method {' or '.join(METHODS)}, found {options.method!r}")
    if options.method == "clifford" and options.needs_state:
        raise BadInput(
            "method 'clifford': expected no checkpoint, profile, device or file for the state, which need a state "
            "vector"
        )
    if options.method == "auto":
        if options.needs_state or circuit.qubits <= _LARGEST_STATE:
            return None
        circuit.validate()
        # Without qubits that are measured early.
        parts = _core.stored_circuits(circuit, largest=circuit.qubits)
        if max(one.qubits for one in parts) <= _LARGEST_STATE:
            return None
        if not all(group.allgather(b"1" if has_stim() else b"")):
            return None
        try:
            return CliffordCircuit(circuit)
        except NotClifford:
            return None
    if options.method != "clifford":
        return None
    circuit.validate()
    return CliffordCircuit(circuit)


def _clifford_result(
    clifford: CliffordCircuit,
    circuit: Circuit,
    sums: Sequence[PauliSum],
    asked: _core.ProgramOptions,
    run: Callable[[], _core.SimulationResult],
) -> Result:
    """Run a circuit on tableaus. `run` runs it on a state vector, if its state is asked for."""
    for one in sums:
        one.require(circuit.qubits)
    outcomes, values, runs, seconds = clifford.run(asked.shots, asked.seed, sums)
    return Result(
        shots=asked.shots,
        seed=asked.seed,
        expectations=real_where_real(sums, values),
        seconds=seconds,
        ranks=1,
        runs=runs,
        exchanges=0,
        bytes_moved=0,
        passes=0.0,
        outcomes=outcomes,
        _registers=tuple(circuit.registers),
        method="clifford",
        _run=run,
    )


# The attributes that a result takes from that of the library.
_FROM_CORE = (
    "seconds",
    "ranks",
    "runs",
    "exchanges",
    "bytes_moved",
    "bytes_between_hosts",
    "passes",
    "disk_passes",
    "disk",
    "fidelity_estimate",
    "outcomes",
    "largest_state_qubits",
    "measures_early",
)


def result_of(kind: type[R], core: _core.SimulationResult, circuit: Circuit, **fields: Any) -> R:
    """Return a result with the values of the library's result, and with further fields."""
    values = {name: getattr(core, name) for name in _FROM_CORE}
    return kind(**fields, **values, _registers=circuit.registers, _core=core)


def pure_result(
    core: _core.SimulationResult, circuit: Circuit, sums: Sequence[PauliSum], shots: int, seed: int
) -> Result:
    """Return the result of a run on a state vector, with the expectation values of these sums."""
    expectations = real_where_real(sums, core.expectations)
    return result_of(Result, core, circuit, shots=shots, seed=seed, expectations=expectations)
