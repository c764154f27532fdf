"""`onehop launch`: ranks on this machine, without MPI."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, renamed_option, write_json
from onehop.error import BadInput
from onehop.launch import Output, command_of, current_launch
from onehop.launch import launch as run_ranks


def launch(
    ranks: Annotated[int, typer.Option("-n", "--ranks", metavar="RANKS", help="How many ranks to start.")],
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM ARGS...",
            help="A program, or a .py file, which this Python runs.",
            show_default=False,
        ),
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", help="PROGRAM is a Python module, as after `python -m`.")
    ] = False,
    output: Annotated[
        Output,
        typer.Option(help="prefix: whole lines after \\[rank]. rank0: rank 0 alone. raw: as it comes."),
    ] = Output.PREFIX,
    bind: Annotated[
        bool,
        typer.Option("--bind/--no-bind", help="Bind every rank to cores of its own, if there are enough."),
    ] = True,
    cores: Annotated[int, typer.Option(metavar="CORES", help="Cores per rank, when bound.")] = 1,
    kill_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="After a rank has failed, wait this long before ending the other ranks."
        ),
    ] = 0.0,
    grace: Annotated[float | None, renamed_option("--grace", "--kill-after")] = None,
    json_target: JsonOption = None,
) -> None:
    """Run a program on several ranks of this machine.

    The first rank that fails ends the launch with its exit code. Nothing is left behind.

    The result of --json is how each rank ended, and when; with `--json -` what the ranks print goes to stderr.
    """
    inside = current_launch()
    if inside is not None and inside.ranks > 1:
        raise BadInput(
            f"this is rank {inside.rank} of {inside.ranks} of a launch already ({inside.launcher}): start the program "
            f"there directly, without `onehop launch`"
        )
    if not program:
        raise BadInput("expected a program to launch, for example: onehop launch -n 2 program.py")
    command = command_of(program[0], program[1:], module=module)
    code = run_ranks(
        ranks,
        command,
        output=output,
        bind=bind,
        cores_each=cores,
        kill_after=kill_after if grace is None else grace,
        stdout=2 if json_target == "-" else 1,
        told=lambda result: write_json(json_target, result.to_dict()),
    )
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_interspersed_args": False})(launch)
