"""The options of `onehop quantum run`: parsed, and checked before any rank starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onehop.cli.common import check_plot
from onehop.cli.quantum.gradient import check_gradient, memory_of_gradient
from onehop.cli.quantum.plan import check_fits
from onehop.error import BadInput
from onehop.launch.supervisor import SIGKILL_AFTER
from onehop.quantum import Circuit, NoiseModel
from onehop.quantum.compiled import REPRODUCIBLE_RANKS
from onehop.quantum.gradients import is_pure
from onehop.quantum.io.state_file import check_state_file
from onehop.quantum.observables import PauliSum
from onehop.quantum.parameters import values_of

SIGKILL_AFTER_CHECKPOINT = 600.0
DEFAULT_EVERY = "10m"
DEFAULT_SHOTS = 1000


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run. Each attribute has the value of the option of the same name, unless noted.

    Attributes
    ----------
    observables : list of str
        The values of --observable.
    every : float
        Seconds between checkpoints.
    noise : NoiseModel or None
        The parsed model.
    json_target : str or None
        The value of --json.
    """

    file: str
    ranks: int | None
    shots: int
    seed: int | None
    observables: list[str]
    bind: list[str]
    gradient: bool
    reproducible: bool
    variance: bool
    precision: str
    save: str | None
    plot: str | None
    profile: bool
    rows: int
    checkpoint: str | None
    every: float
    noise: NoiseModel | None
    trajectories: int | None
    json_target: str | None

    def __post_init__(self) -> None:
        """Check what needs no circuit.

        Raises
        ------
        BadInput
            A file cannot be written, or options exclude each other.
        """
        check_plot(self.plot)
        if self.variance and not self.observables:
            raise BadInput("--variance: expected at least one --observable, found none")
        if self.save is not None:
            check_state_file(self.save)
        if self.noise is None:
            if self.trajectories is not None:
                raise BadInput("--trajectories needs --noise: without noise all trajectories are the same")
            return
        if self.checkpoint is not None:
            raise BadInput(
                "--checkpoint does not work with --noise: a noisy run cannot be resumed; leave one of them out"
            )
        if self.save is not None and self.trajectories is not None:
            raise BadInput(
                "--save needs one final state, and --trajectories simulates many: leave one of them out"
            )
        if self.profile:
            raise BadInput("--profile does not work with --noise; leave one of them out")

    @property
    def sigkill_after(self) -> float:
        """Seconds from SIGTERM to SIGKILL: a rank needs time to write its checkpoint."""
        return SIGKILL_AFTER if self.checkpoint is None else SIGKILL_AFTER_CHECKPOINT

    def values_for(self, circuit: Circuit) -> list[float]:
        """Return the values of the parameters of a circuit, in its order of them.

        Raises
        ------
        BadInput
            A value is missing or wrong, or --gradient cannot differentiate the circuit.
        """
        if self.gradient:
            check_gradient(circuit, self.observables, self.noise)
        if self.reproducible and not (self.gradient and self.noise is None and is_pure(circuit)):
            raise BadInput(
                "--reproducible: expected --gradient and a circuit of gates without --noise; leave the option out"
            )
        ranks = self.ranks or 1
        if self.reproducible and ranks > REPRODUCIBLE_RANKS:
            raise BadInput(
                f"--reproducible: expected at most {REPRODUCIBLE_RANKS} ranks, found {ranks}; compile(..., "
                "reproducible=RANKS) takes more"
            )
        return _values(self.bind, circuit)

    def observables_for(self, circuit: Circuit) -> list[PauliSum]:
        """Parse the observables.

        Raises
        ------
        BadInput
            One is wrong, acts on a qubit that the circuit lacks, or has a variance to compute but is not Hermitian.
        """
        found = _observables(self.observables, circuit.qubits)
        for text, one in zip(self.observables, found, strict=True):
            if self.variance and not one.is_hermitian:
                raise BadInput(
                    f"--variance: expected Hermitian observables with real weights, found {text!r}"
                )
        return found

    def has_variances_of_state(self, circuit: Circuit) -> bool:
        """Whether to compute variances, and from the final state, which takes a second one."""
        return self.variance and self.noise is None and is_pure(circuit)

    def check_extras_fit(self, circuit: Circuit, ranks: int, ranks_per_node: int) -> None:
        """Check that variances and the gradient, if asked for, fit into memory; all parameters have values."""
        if self.has_variances_of_state(circuit):
            needed = memory_of_gradient(circuit, ranks, None, 1, self.precision, ranks_per_node)
            check_fits(needed, circuit.name, "the variances of circuit")
        if self.gradient:
            count = len(self.observables)
            needed = memory_of_gradient(circuit, ranks, self.noise, count, self.precision, ranks_per_node)
            check_fits(needed, circuit.name, "the gradient of circuit")


def checkpoint_interval(every: str | None, checkpoint: str | None) -> float:
    """Return the seconds between checkpoints that --every asks for.

    Raises
    ------
    BadInput
        It is no duration, or there is no --checkpoint.
    """
    if every is None:
        return parse_duration(DEFAULT_EVERY)
    if checkpoint is None:
        raise BadInput("--every is for --checkpoint; leave it out")
    return parse_duration(every)


def shots_of(asked: int | None, gradient: bool) -> int:
    """Return the number of shots of a run; `asked` is the value of --shots, or None without the option.

    Raises
    ------
    BadInput
        A gradient of shots was asked for.
    """
    if gradient and asked:
        raise BadInput(
            f"--gradient: expected no shots, because its derivatives are exact, found --shots {asked}; leave one of "
            "them out, or average shots at shifted angles with onehop.quantum.parameter_shift"
        )
    if asked is not None:
        return asked
    return 0 if gradient else DEFAULT_SHOTS


def parse_duration(text: str) -> float:
    """Parse a duration such as 90, 30s, 10m or 2h; return seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in "smh" else (text, "s")
    try:
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600}[unit or "s"]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"--every: expected a time above 0 such as 30s, 10m or 2h, found {text!r}")
    return seconds


def _observables(texts: list[str], qubits: int) -> list[PauliSum]:
    found = []
    for text in texts:
        observable = PauliSum.parse(text)
        try:
            observable.require(qubits)
        except BadInput as error:
            raise BadInput(f"--observable {text!r}: {error}") from error
        found.append(observable)
    return found


def _values(texts: list[str], circuit: Circuit) -> list[float]:
    """Parse values of parameters such as theta=0.3; return them in the order of the circuit's parameters."""
    given: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not equals or not math.isfinite(value) or name.strip() in given:
            raise BadInput(
                f"--bind: expected NAME=NUMBER with a finite number, each name once, found {text!r}"
            )
        given[name.strip()] = value
    try:
        return values_of(circuit, given)
    except BadInput as error:
        raise BadInput(f"--bind: {error}; for example --bind NAME=0.5") from error
