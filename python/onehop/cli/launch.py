"""`onehop launch`: run a program on several ranks of this machine, without MPI."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.cli.common import JsonOptions, write_json
from onehop.error import BadInput
from onehop.launch import LaunchOptions, Output, command_of, current_launch
from onehop.launch import launch as run_ranks
from onehop.options import argument, option

_OUTPUTS = {"rank": Output.PREFIX, "rank0": Output.RANK0, "raw": Output.RAW}


@dataclass(kw_only=True)
class Launch(LaunchOptions, JsonOptions):
    program: list[str] = argument(
        "PROGRAM ARGS...",
        "The program to run, with its arguments. This Python runs a .py file.",
        [],
    )
    ranks: int = option(..., "Number of ranks to start.", "-n", "--ranks", metavar="RANKS")
    m: bool = option(False, "Run PROGRAM as a Python module, as `python -m` does.", "-m")
    prefix: str = option(
        "rank",
        "Form of the output. rank: whole lines, each after its [rank]. rank0: that of rank 0 only. raw: unchanged.",
        choices=tuple(_OUTPUTS),
    )


def launch(options: Launch) -> int:
    """Run a program on several ranks of this machine.

    The first rank that fails ends the launch, which exits with the code of that rank. No process, memory or file is
    left behind.

    --json writes how and when each rank ended. With `--json -` the output of the ranks goes to stderr.
    """
    inside = current_launch()
    if inside is not None and inside.ranks > 1:
        raise BadInput(
            f"expected `onehop launch` outside of a launch, found that this is rank {inside.rank} of {inside.ranks} "
            f"({inside.launcher}); start the program directly, without `onehop launch`"
        )
    if not options.program:
        raise BadInput("expected a program to launch, for example: onehop launch -n 2 program.py")
    return run_ranks(
        options.ranks,
        command_of(options.program[0], options.program[1:], module=options.m),
        output=_OUTPUTS[options.prefix],
        stdout=2 if options.json == "-" else 1,
        on_result=lambda result: write_json(options.json, result.to_dict()),
        **options.part(LaunchOptions),
    )
