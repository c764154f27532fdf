"""`onehop launch`: run a program on several ranks of this machine, without MPI."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, current_value, renamed_option, write_json
from onehop.error import BadInput
from onehop.launch import Output, command_of, current_launch
from onehop.launch import launch as run_ranks


def launch(
    context: typer.Context,
    ranks: Annotated[int, typer.Option("-n", "--ranks", metavar="RANKS", help="Number of ranks to start.")],
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM ARGS...",
            help="The program to run, with its arguments. This Python runs a .py file.",
            show_default=False,
        ),
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", help="Run PROGRAM as a Python module, as `python -m` does.")
    ] = False,
    output: Annotated[
        Output,
        typer.Option(
            help="Form of the output. prefix: whole lines, each after its \\[rank]. rank0: that of rank 0 only. "
            "raw: unchanged."
        ),
    ] = Output.PREFIX,
    bind: Annotated[
        bool,
        typer.Option("--bind/--no-bind", help="Bind each rank to its own cores if there are enough."),
    ] = True,
    cores: Annotated[
        int, typer.Option(metavar="CORES", help="Number of cores that each rank is bound to.")
    ] = 1,
    kill_after: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Time that the other ranks have to exit by themselves after one has failed.",
        ),
    ] = 0.0,
    grace: Annotated[float | None, renamed_option("--grace", min=0)] = None,
    json_target: JsonOption = None,
) -> None:
    """Run a program on several ranks of this machine.

    The first rank that fails ends the launch, which exits with the code of that rank. No process, memory or file is
    left behind.

    --json writes how and when each rank ended. With `--json -` the output of the ranks goes to stderr.
    """
    kill_after = current_value(context, "--grace", "--kill-after")
    inside = current_launch()
    if inside is not None and inside.ranks > 1:
        raise BadInput(
            f"expected `onehop launch` outside of a launch, found that this is rank {inside.rank} of {inside.ranks} "
            f"({inside.launcher}); start the program directly, without `onehop launch`"
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
        kill_after=kill_after,
        stdout=2 if json_target == "-" else 1,
        on_result=lambda result: write_json(json_target, result.to_dict()),
    )
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_interspersed_args": False})(launch)
