"""The command `onehop`. Each subcommand is a module of the same name with a function `register(app)`."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from onehop._core import __version__, check_environment
from onehop.cli.common import print_error
from onehop.error import Error
from onehop.exit_code import exit_code

COMMANDS = (
    "bench",
    "doctor",
    "lattice",
    "launch",
    "poisson",
    "quantum",
    "schedule",
    "tour",
    "tune",
)


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
    check_environment()  # a wrong value ends every command here, before it starts ranks


def make_app() -> typer.Typer:
    """Build the command line with all its subcommands."""
    app = typer.Typer(
        name="onehop",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in COMMANDS:
        importlib.import_module(f"onehop.cli.{name}").register(app)
    return app


def _json_to_stdout(arguments: Sequence[str]) -> list[str]:
    """Insert `-` (stdout) after a `--json` that is not followed by a file.

    Typer has no options with an optional value (`flag_value` of Click), so the arguments are rewritten before parsing.
    """
    made = list(arguments)
    end = made.index("--") if "--" in made else len(made)
    if "launch" in made[:1]:
        return made  # the options may be those of a program
    for place in reversed(range(end)):
        following = made[place + 1] if place + 1 < end else "-n"
        if made[place] == "--json" and (
            following.endswith(".qasm") or (following[0:1] == "-" and following != "-")
        ):
            made.insert(place + 1, "-")
    return made


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
    command = typer.main.get_command(make_app())
    try:
        code = command.main(
            args=_json_to_stdout(sys.argv[1:] if arguments is None else arguments),
            prog_name="onehop",
            standalone_mode=False,
        )
        sys.stdout.flush()  # a full disk is found here, not when Python ends
        return code if isinstance(code, int) else 0
    except Error as error:
        print_error(error)
        return exit_code(error)
    except (KeyboardInterrupt, typer.Abort):
        return exit_code(KeyboardInterrupt())
    except BrokenPipeError:  # as in `onehop ... | head`
        sys.stderr.close()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        print_error(
            Error(f"the output could not be written: {error.strerror}; make room, or write elsewhere")
        )
        # What is still in the buffer has no place either; Python would try again at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the command line's library ends with 1 for it
            return 128 + signal.SIGPIPE
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        # A wrong command line; typer has its own exception classes for that, which differ between its versions.
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        show()
        return code
