"""The commands of `onehop`. A module is imported only when its command runs or shows its help."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from onehop.error import Error

if TYPE_CHECKING:
    from onehop.options import Options


class Command(NamedTuple):
    """A command: its function, as `module:function`, in which a leading dot stands for `onehop.cli`.

    `summary` is its short help, by default the first sentence of the function's docstring. With `ends_at_argument` all
    words after the first argument belong to it, whatever they begin with.
    """

    place: str
    summary: str = ""
    ends_at_argument: bool = False

    @property
    def function(self) -> Callable[[Any], int | None]:
        """The function, whose docstring is the help. It returns the exit code, or None for 0."""
        return _found(self.place)

    @property
    def about(self) -> str:
        """The short help."""
        first = (
            " ".join((self.function.__doc__ or "").partition("\n\n")[0].split()) if not self.summary else ""
        )
        return self.summary or first.partition(". ")[0].rstrip(".") + "."

    @property
    def options(self) -> type[Options]:
        """The class of its options."""
        return self.function.__globals__[self.function.__annotations__["options"]]


class Group(NamedTuple):
    """Commands below a name; `parts` are the commands, or their place, as `module:name`."""

    about: str
    parts: dict[str, Command | Group] | str
    sections: dict[str, tuple[str, ...]] | None = None  # headings of the help with their commands

    @property
    def commands(self) -> dict[str, Command | Group]:
        """The commands by their names."""
        return _found(self.parts) if isinstance(self.parts, str) else self.parts


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    if module.startswith("onehop_bench.") and find_spec("onehop_bench") is None:
        raise Error(
            "the benchmarks are a package of their own, which is not installed: `pip install ./bench` in a checkout of "
            "onehop installs it"
        )
    return getattr(importlib.import_module(module, "onehop.cli"), name)


_RUN = Command(".quantum.run:run", "Simulate a circuit on several ranks.")
_PLAN = Command(".quantum.plan:plan", "Show the memory, exchanges and time that a circuit would take.")

_CIRCUITS = Group(
    "Write benchmark circuits as OpenQASM files.",
    {
        **{
            name: Command(f".quantum.circuit:{name}")
            for name in ("qft", "qpe", "tfim", "heisenberg", "ghz", "random", "qv", "qaoa")
        },
        "hamlib": Command(".quantum.circuit:from_hamlib"),
    },
)
_HAMLIB = Group(
    "Write and list HamLib files of Hamiltonians (HDF5).",
    {"tfim": Command(".quantum.hamlib:tfim"), "list": Command(".quantum.hamlib:list_names")},
)
_QUANTUM = Group(
    "Simulate quantum circuits on a state vector that is split over ranks.",
    {
        "run": _RUN,
        "plan": _PLAN,
        "circuit": _CIRCUITS,
        "hamlib": _HAMLIB,
        "qedc": Command(".quantum.qedc:qedc"),
    },
)
_LATTICE = Group(
    "Lattice QCD: halo layout, SU(3) gauge fields and quark propagators on a grid of ranks.",
    {
        name: Command(f".lattice.{name}:{name}")
        for name in (
            "info",
            "check",
            "measure",
            "convert",
            "thermalize",
            "reproduce",
            "analyse",
            "smear",
            "fix",
            "solve",
            "eigen",
        )
    }
    | {name: Command(f".lattice.plan:{name}") for name in ("plan", "campaign")},
)
_SCHEDULE = Group(
    "Build, show, count and verify schedules without running them.",
    {
        "halo": Command(".schedule:make_halo"),
        "show": Command(".schedule:show"),
        "count": Command(".schedule:count_schedule"),
        "verify": Command(".schedule:verify_schedule"),
    },
)

_COMPAT = Group(
    "Build programs against the drop-in interfaces.",
    {"qmp": Command(".compat:qmp", "Say how to compile and link a program that calls QMP.")},
)

COMMANDS = Group(
    "Move data between the ranks of a distributed simulation in one hop.",
    {
        "compat": _COMPAT,
        "completion": Command(
            ".completion:completion",
            "Print a script with which bash, zsh or fish complete commands and options.",
        ),
        "docs": Command(".docs:docs", "Show a page of the documentation as text, or list the pages."),
        "doctor": Command(
            ".doctor:doctor",
            "Examine this machine and its software, test the transports, and say how to mend problems.",
        ),
        "launch": Command(
            ".launch:launch", "Run a program on several ranks of this machine.", ends_at_argument=True
        ),
        "machines": Command(
            ".machines:machines", "List the machines that schedules can be simulated on, or show one."
        ),
        "map": Command(
            ".map:map_ranks", "Choose which rank runs on which host, so that few bytes travel between hosts."
        ),
        "poisson": Command(
            ".poisson:poisson", "Solve the Poisson equation by Jacobi's method on a grid of ranks."
        ),
        "run": _RUN._replace(summary=f"{_RUN.summary[:-1]} (short for `onehop quantum run`)."),
        "plan": _PLAN._replace(summary=f"{_PLAN.summary[:-1]} (short for `onehop quantum plan`)."),
        "rails": Command(
            ".rails:rails", "Compare assignments of the messages of a host to its network interfaces."
        ),
        "simulate": Command(
            ".simulate:simulate_command", "Predict how long a schedule takes on a machine, without a network."
        ),
        "status": Command(
            ".status:status",
            "Show what each rank of a running program waits for: which rank, which channel, and for how long.",
        ),
        "tour": Command(
            ".tour:tour",
            "Run small examples of each kind on a few ranks, check the results, and compare the times with plain MPI.",
        ),
        "trace": Command(
            ".trace:trace",
            "Sum up the trace of a run: who waited for whom and how long, bytes by link, times of operations.",
        ),
        "tune": Command(
            ".tune:tune",
            "Measure the fastest stores, chunks, slots, waiting and all-reduce algorithms of this machine and save "
            "them.",
        ),
        "bench": Group(
            "Compare onehop with plain MPI, reference simulators and bare code.",
            "onehop_bench.commands:COMMANDS",
        ),
        "lattice": _LATTICE,
        "quantum": _QUANTUM,
        "schedule": _SCHEDULE,
    },
    {
        "Run": ("run", "launch", "lattice", "poisson", "quantum", "status"),
        "Describe": ("plan", "schedule", "simulate"),
        "Machines": ("doctor", "machines", "map", "rails"),
        "Measure": ("bench", "tour", "trace", "tune"),
        "Build": ("compat",),
        "Shell and help": ("completion", "docs"),
    },
)


def leaves(group: Group = COMMANDS, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield all commands below a group, each with its path."""
    for name, part in group.commands.items():
        if isinstance(part, Group):
            yield from leaves(part, (*path, name))
        else:
            yield (*path, name), part
