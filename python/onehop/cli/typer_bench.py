"""Options of `onehop bench` for Typer, until the benchmarks have options of their own."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NoReturn

import typer

from onehop.cli.former import say_renamed
from onehop.cli.usage import usage_message
from onehop.error import BadInput
from onehop.options import LARGEST_SIZE
from onehop.output import check_file_target


def _json_target(target: str | None) -> str | None:
    """Check the target of `--json` before the work starts, so that a long run does not fail at its end."""
    if target is None or target == "-":
        return target
    check_file_target(target, "--json")
    return target


JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON to FILE, or to stdout (- or no FILE).",
        callback=_json_target,
    ),
]
RanksOption = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--ranks",
        metavar="RANKS",
        help="Number of ranks to start. Inside a launch, the ranks of that launch are used.",
    ),
]
MpiOption = Annotated[
    str | None,
    typer.Option(
        "--mpi",
        metavar="openmpi|mpich|PATH|none",
        help="MPI implementation to start under and to compare with. none: use the built-in launcher.",
    ),
]


def refuse_both(old: str, new: str) -> NoReturn:
    """Raise BadInput for a command line that has an option by its present name and by its former one."""
    raise BadInput(f"expected {new} or its former name {old}, found both; leave {old} out")


def _parameters(context: typer.Context) -> dict[str, str]:
    """Return the parameter of each option of a command."""
    return {option: str(one.name) for one in context.command.params for option in one.opts}


def given(context: typer.Context, options: Iterable[str]) -> list[str]:
    """Return those of these options, such as "--per-host", that the command line has."""
    parameters = _parameters(context)
    sources = {option: context.get_parameter_source(parameters[option]) for option in options}
    return [option for option, source in sources.items() if getattr(source, "name", "") == "COMMANDLINE"]


def renamed_option(old: str, **limits: Any) -> Any:
    """Return a hidden option that keeps the former name of an option. Its value is read by `current_value`."""
    return typer.Option(old, hidden=True, **limits)


def current_value(context: typer.Context, old: str, new: str) -> Any:
    """Return the value of an option, which the command line may give by its former name.

    Parameters
    ----------
    context : typer.Context
        The command's context.
    old, new : str
        The former name, made by `renamed_option`, and the present name.

    Raises
    ------
    BadInput
        The command line has both.
    """
    found = given(context, (old, new))
    if len(found) == 2:
        refuse_both(old, new)
    if old in found:
        say_renamed(old, new)
    return context.params[_parameters(context)[old if old in found else new]]


def parse_numbers(text: str, option: str, separator: str = ",", largest: int = LARGEST_SIZE) -> list[int]:
    """Parse an option such as "10,24", or with "x" as `separator` "128x64x64"; commas are accepted as well.

    Raises
    ------
    BadInput
        The text is not a list of integers, or one is above `largest` or below its negative.
    """
    try:
        numbers = [int(number) for number in text.replace(",", separator).split(separator)]
    except ValueError:
        example = separator.join(("128", "64", "64"))
        raise BadInput(
            f"expected {option} as numbers with {separator!r} between them, for example {example}, found {text!r}"
        ) from None
    for number in numbers:
        if abs(number) > largest:
            raise BadInput(f"expected {option} with numbers of at most {largest}, found {number}")
    return numbers


def check_seconds(seconds: float) -> None:
    """Raise BadInput unless the duration of a measurement is positive and finite."""
    if not 0 < seconds < float("inf"):
        raise BadInput(f"expected --seconds above 0 and finite, found {seconds:g}")


def run_bench(arguments: Sequence[str]) -> int:
    """Run `onehop bench`."""
    app = typer.Typer(
        name="onehop",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)
    importlib.import_module("onehop.cli.bench").register(app, arguments[:2])
    command = typer.main.get_command(app)
    try:
        code = command.main(args=_json_to_stdout(arguments), prog_name="onehop", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:
        raise
    except Exception as error:
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            show()
            words = " ".join(["onehop", *arguments])
            raise BadInput(f"`{words}` needs a command; the help lists them") from None
        raise BadInput(usage_message(error, command, arguments)) from None


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
