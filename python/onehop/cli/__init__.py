"""The command `onehop`. Each subcommand is a module of the same name with a function `register(app)`."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from onehop._core import __version__, check_environment
from onehop._interrupt import restore_interrupt
from onehop.cli.common import print_error, warnings_in_one_line
from onehop.cli.failure import fail
from onehop.cli.outputs import check_outputs
from onehop.cli.usage import usage_message
from onehop.cli.variables import say_unknown_variables
from onehop.error import BadInput
from onehop.launch.environment import check_paths, current_launch

# The modules, and the commands that each of them adds.
COMMANDS = {
    "bench": ("bench",),
    "doctor": ("doctor",),
    "lattice": ("lattice",),
    "launch": ("launch",),
    "machines": ("machines",),
    "map": ("map",),
    "poisson": ("poisson",),
    "quantum": ("quantum", "run", "plan", "circuit", "hamlib", "qedc"),
    "rails": ("rails",),
    "schedule": ("schedule",),
    "simulate": ("simulate",),
    "status": ("status",),
    "tour": ("tour",),
    "tune": ("tune",),
}

# The modules that import only the subcommands that the command line names.
GROUPS = ("bench", "lattice", "quantum")

# The commands and their short descriptions, in the order of `onehop --help`, which imports none of them.
SUMMARIES = {
    "doctor": "Examine this machine and its software, test the transports, and say how to mend problems.",
    "launch": "Run a program on several ranks of this machine.",
    "machines": "List the machines that schedules can be simulated on, or show one.",
    "map": "Choose which rank runs on which host, so that few bytes travel between hosts.",
    "poisson": "Solve the Poisson equation by Jacobi's method on a grid of ranks.",
    "run": "Simulate a circuit on several ranks (short for `onehop quantum run`).",
    "plan": "Show the memory, exchanges and time that a circuit would take (short for `onehop quantum plan`).",
    "rails": "Compare assignments of the messages of a host to its network interfaces.",
    "simulate": "Predict how long a schedule takes on a machine, without a network.",
    "status": "Show what each rank of a running program waits for: which rank, which channel, and for how long.",
    "tour": "Run small examples of each kind on a few ranks, check the results, and compare the times with plain MPI.",
    "tune": "Measure the fastest stores, chunks, slots, waiting and all-reduce algorithms of this machine and save "
    "them.",
    "bench": "Compare onehop with plain MPI, reference simulators and the speed of light.",
    "lattice": "Lattice QCD: halo layout, SU(3) gauge fields and quark propagators on a grid of ranks.",
    "quantum": "Simulate quantum circuits on a state vector that is split over ranks.",
    "schedule": "Build, show, count and verify schedules without running them.",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onehop {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Move data between the ranks of a distributed simulation in one hop."""
    # A wrong value ends every command here, before it starts ranks.
    check_environment()
    check_paths()
    current_launch()


def _new_app() -> typer.Typer:
    app = typer.Typer(
        name="onehop",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    return app


def make_app(*words: str) -> typer.Typer:
    """Build the command line for its first two words: the module of the command, or all modules if none has it."""
    app = _new_app()
    for name in [one for one, names in COMMANDS.items() if words and words[0] in names] or COMMANDS:
        module = importlib.import_module(f"onehop.cli.{name}")
        if name in GROUPS:
            module.register(app, words)
        else:
            module.register(app)
    return app


def _flowing(text: str) -> str:
    """Join the lines of each paragraph, so that a terminal of any width can break them. Lists and examples stay."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    kept = re.compile(r"^(\s|- |\d+\. |\x08)", re.MULTILINE)
    return "\n\n".join(one if kept.search(one) else one.replace("\n", " ") for one in paragraphs)


def _let_help_flow(command: Any) -> None:
    """Let the help of a command and of its subcommands flow: typer keeps line breaks after the first paragraph."""
    command.help = _flowing(command.help or "")
    for part in getattr(command, "commands", {}).values():
        _let_help_flow(part)


def _make_summary() -> Any:
    """Build the command line with the names of all commands and without their contents."""
    app = _new_app()
    for name, summary in SUMMARIES.items():
        app.command(name, help=summary)(lambda: None)
    return typer.main.get_command(app)


def make_command(*words: str) -> Any:
    """Build the command line (see `make_app`) as a click command, with help texts that fill the terminal."""
    command = typer.main.get_command(make_app(*words))
    _let_help_flow(command)
    return command


def _json_to_stdout(arguments: Sequence[str]) -> list[str]:
    """Insert `-` (stdout) after a `--json` that is not followed by a file.

    `--json` takes an optional value. Click has `flag_value` for that, but Typer does not support it: since version 0.29
    Typer contains its own parser, which ignores `flag_value` and requires a value after the option. Therefore the
    arguments are completed before parsing.
    """
    completed = list(arguments)
    end = completed.index("--") if "--" in completed else len(completed)
    if "launch" in completed[:1]:
        return completed  # a --json may belong to the launched program
    for place in reversed(range(end)):
        following = completed[place + 1] if place + 1 < end else "-n"
        if completed[place] == "--json" and (
            following.endswith(".qasm") or (following[0:1] == "-" and following != "-")
        ):
            completed.insert(place + 1, "-")
    return completed


def _open_closed_streams() -> None:
    """Open the null device as each standard stream that the caller has closed.

    Without it, the next file that is opened becomes standard output, and whatever is printed lands in it.
    """
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _run(arguments: Sequence[str]) -> int:
    """Run the command line; raise what ends it, except for a wrong command line."""
    # Importing and building all commands takes longer than most commands run.
    first = arguments[0] if arguments else "--help"
    is_known = any(first in names for names in COMMANDS.values())
    say_unknown_variables(keep=first == "launch")
    command = make_command(*arguments[:2]) if is_known else _make_summary()
    try:
        completed = _json_to_stdout(arguments)
        check_outputs(completed)
        with warnings_in_one_line():
            code = command.main(
                args=completed,
                prog_name="onehop",
                standalone_mode=False,
            )
        sys.stdout.flush()  # reports a full disk here rather than at the end of Python
        return code if isinstance(code, int) else 0
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Rich turns it into exit code 1
            return 128 + signal.SIGPIPE
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        # A wrong command line. The class of this exception differs between versions of Typer, but its methods do not.
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            show()
            words = " ".join(["onehop", *arguments])
            print_error(BadInput(f"`{words}` needs a command; the help lists them"))
        else:
            print_error(BadInput(usage_message(error, command, arguments)))
        return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after `onehop`; by default those of this process.

    Returns
    -------
    int
        The exit code: 0, 1 for a failure, 2 for bad input, 3 for a lost peer, 130 after Ctrl-C.
    """
    try:
        restore_interrupt()
        _open_closed_streams()
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BaseException as error:
        return fail(error)
