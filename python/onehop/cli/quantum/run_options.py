"""The options of `onehop quantum run`: parsed, and checked before any rank starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from onehop.cli.common import JsonOptions, RanksOptions
from onehop.cli.quantum.memory import check_fits, check_gradient, memory_of_gradient
from onehop.error import BadInput
from onehop.group import Group
from onehop.options import LARGEST_SHOTS, argument, file_option, option
from onehop.quantum import Circuit, NoiseModel
from onehop.quantum.circuit_plan import plan_largest
from onehop.quantum.compiled import REPRODUCIBLE_RANKS
from onehop.quantum.gradients import is_pure
from onehop.quantum.io.state_file import check_state_file
from onehop.quantum.observables import PauliSum
from onehop.quantum.parameters import values_of
from onehop.quantum.precision import require_plain
from onehop.quantum.simulation_options import SimulationOptions
from onehop.quantum.simulator import clifford_of

GRACE_OF_CHECKPOINT = 600.0
DEFAULT_SHOTS = 1000


@dataclass(kw_only=True)
class Run(SimulationOptions, RanksOptions, JsonOptions):
    title = "Options"

    file: str = argument("FILE", "OpenQASM 2 or 3 file.")
    shots: int | None = option(  # type: ignore[assignment]
        None,
        "Number of shots; 0: no sampling.",
        low=0,
        high=LARGEST_SHOTS,
        default="1000, and 0 with --gradient",
    )
    observable: list[str] = option(
        [],
        'Observable to evaluate, for example "Z0 Z1 + 0.5*X2", or "IZZ" with the letter of qubit 0 last. The option '
        "may be repeated.",
        metavar="TEXT",
    )
    bind: list[str] = option(
        [],
        "Value of a parameter (`input float NAME;` in OpenQASM 3). The option may be repeated.",
        metavar="NAME=NUMBER",
    )
    gradient: bool = option(
        False,
        "Compute the derivatives of every observable by every parameter. They are exact and take no shots.",
    )
    reproducible: bool = option(
        False, "With --gradient: derivatives with the same bits on 1, 2, 4 and 8 ranks."
    )
    variance: bool = option(False, "Also compute the variance <O^2> - <O>^2 of every observable O.")
    noise: str | None = option(
        None,
        'Noise model, for example "depolarizing=0.01:cx,cz; readout=0.02" (`onehop docs density`).',
        metavar="SPEC",
    )
    trajectories: int | None = option(
        None,
        "Number of noisy state vectors to simulate.",
        low=1,
        high=LARGEST_SHOTS,
        default="a density matrix instead",
    )
    save: str | None = file_option(
        "Write the final state to FILE (HDF5); with --noise, the density matrix.", "the state"
    )
    plot: str | None = file_option(
        "Plot the counts, or the profile, to FILE (.png, .svg or .pdf).", "the plot"
    )
    rows: int = option(20, "Maximum number of rows in a table.", low=1)

    @cached_property
    def model(self) -> NoiseModel | None:
        """The noise model."""
        return None if self.noise is None else NoiseModel.parse(self.noise)

    @property
    def number_of_shots(self) -> int:
        """The number of shots, with its default."""
        if self.shots is not None:
            return self.shots
        return 0 if self.gradient else DEFAULT_SHOTS

    def check(self) -> None:
        """Check what needs no circuit."""
        if self.checkpoint is None:
            self.refuse(("every",), "is for --checkpoint")
        if self.gradient and self.shots:
            raise BadInput(
                f"--gradient: expected no shots, because its derivatives are exact, found --shots {self.shots}; leave "
                "one of them out, or average shots at shifted angles with onehop.quantum.parameter_shift"
            )
        if self.variance and not self.observable:
            raise BadInput("--variance: expected at least one --observable, found none")
        for name in ("noise", "gradient", "variance"):
            if getattr(self, name):
                require_plain(self.precision, f"--{name}")
                if self.state_folder is not None:
                    raise BadInput(f"--state-folder does not work with --{name}; leave one of them out")
        for name in ("checkpoint", "save", "state_folder", "reproducible"):
            if self.device != "cpu" and getattr(self, name):
                option_name = name.replace("_", "-")
                raise BadInput(f"--{option_name}: expected --device cpu, found {self.device!r}")
        if self.state_folder is not None and self.profile:
            raise BadInput("--state-folder does not work with --profile; leave one of them out")
        if self.state_folder is None:
            self.refuse(("state_memory",), "is for --state-folder")
        elif self.ranks is not None and self.ranks > 1:
            raise BadInput(f"--state-folder: expected 1 rank, found {self.ranks}; its threads share the work")
        if self.save is not None:
            check_state_file(self.save)
        if self.model is None:
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
        for name, given in (("--profile", self.profile), ("--method", self.method != "auto")):
            if given:
                raise BadInput(f"{name} does not work with --noise; leave one of them out")

    @property
    def grace(self) -> float | None:
        """Seconds from SIGTERM to SIGKILL: a rank needs time to write its checkpoint."""
        return None if self.checkpoint is None else GRACE_OF_CHECKPOINT

    def values_for(self, circuit: Circuit) -> list[float]:
        """Return the values of the parameters of a circuit, in its order of them."""
        if self.gradient:
            check_gradient(circuit, self.observable, self.model)
        if self.reproducible and not (self.gradient and self.model is None and is_pure(circuit)):
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
        """Parse the observables."""
        found = _observables(self.observable, circuit.qubits)
        for text, one in zip(self.observable, found, strict=True):
            if self.variance and not one.is_hermitian:
                raise BadInput(
                    f"--variance: expected Hermitian observables with real weights, found {text!r}"
                )
        return found

    @property
    def needs_state(self) -> bool:
        """Whether the run needs a state vector, whatever the circuit."""
        return super().needs_state or self.save is not None

    def is_clifford(self, circuit: Circuit, group: Group) -> bool:
        """Whether the circuit runs on tableaus. Collective for large circuits."""
        return self.model is None and clifford_of(circuit, group, self) is not None

    def storage(self, circuit: Circuit) -> dict[str, Any]:
        """Return what decides on the states of a run, as for `stored_circuits`."""
        return {"divide": self.checkpoint is None, "observables": self.observables_for(circuit)}

    def has_variances_of_state(self, circuit: Circuit) -> bool:
        """Whether to compute variances, and from the only state, which takes a second one."""
        if not self.variance or self.model is not None or not is_pure(circuit):
            return False
        if self.is_clifford(circuit, Group.alone()):
            return False
        return plan_largest(circuit, 1, self.precision, 1).largest_state_qubits == circuit.qubits

    def check_extras_fit(self, circuit: Circuit, ranks: int, ranks_per_node: int) -> None:
        """Check that variances and the gradient, if asked for, fit into memory; all parameters have values."""
        if self.has_variances_of_state(circuit):
            needed = memory_of_gradient(circuit, ranks, None, 1, self.precision, ranks_per_node)
            check_fits(needed, circuit.name, "the variances of circuit")
        if self.gradient:
            count = len(self.observable)
            needed = memory_of_gradient(circuit, ranks, self.model, count, self.precision, ranks_per_node)
            check_fits(needed, circuit.name, "the gradient of circuit")


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
        example = "".join(f"; for example --bind {name}=0.5" for name in circuit.parameters[:1])
        raise BadInput(f"--bind: {error}{example}") from error
