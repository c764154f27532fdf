"""`onehop launch`: run a program on several ranks of this machine, without MPI."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.cli.common import JsonOptions, write_json
from onehop.cli.parser import parse
from onehop.error import BadInput
from onehop.launch import LaunchOptions, Output, current_launch
from onehop.launch import launch as run_ranks
from onehop.launch.programs import Program, starts_of
from onehop.options import Options, argument, option

_OUTPUTS = {"rank": Output.PREFIX, "rank0": Output.RANK0, "raw": Output.RAW}


@dataclass(kw_only=True)
class ProgramOptions(Options):
    """One program, and the ranks that run it."""

    program: list[str] = argument(
        "PROGRAM ARGS...",
        "The program to run, with its arguments. This Python runs a .py file. `: -n RANKS PROGRAM ARGS...` may follow.",
        [],
    )
    ranks: int | None = option(
        None, "Number of ranks to start.", "-n", "--ranks", metavar="RANKS", default="that of --ranks-file"
    )
    m: bool = option(False, "Run PROGRAM as a Python module, as `python -m` does.", "-m")
    env: list[str] = option(
        [],
        "Variable of the program's ranks; {rank} in VALUE becomes the rank's number. The option may be repeated.",
        metavar="NAME=VALUE",
    )


@dataclass(kw_only=True)
class Launch(ProgramOptions, LaunchOptions, JsonOptions):
    prefix: str = option(
        "rank",
        "Form of the output. rank: whole lines, each after its [rank]. rank0: that of rank 0 only. raw: unchanged.",
        choices=tuple(_OUTPUTS),
    )
    ranks_file: str | None = option(
        None,
        "File with lines RANKS [cores=CORES] [NAME=VALUE ...] [PROGRAM ARGS...], such as `0,4-7 cores=0-3 b.py`.",
        metavar="FILE",
    )

    def programs(self) -> list[Program]:
        """Return the programs of the command line, which a word `:` separates."""
        own, rest = _up_to_colon(self.program)
        found = [Program(self.ranks, own, self.m, self.env)]
        while rest is not None:
            words, rest = _up_to_colon(rest)
            more = parse(ProgramOptions, words, "launch", ends_at_argument=True)
            found.append(Program(more.ranks, more.program, more.m, more.env))
        alone = len(found) == 1 and self.ranks_file is not None
        for program in found:
            if program.ranks is None and not alone:
                raise BadInput("missing option -n RANKS; see `onehop launch --help`")
            if not program.words and not alone:
                raise BadInput("expected a program to launch, for example: onehop launch -n 2 program.py")
        return found


def _up_to_colon(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words before the first colon, and those after it; None if there is none."""
    if ":" not in words:
        return words, None
    place = words.index(":")
    return words[:place], words[place + 1 :]


def launch(options: Launch) -> int:
    """Run a program on several ranks of this machine, or several programs with a colon between them.

    The first rank that fails ends the launch, which exits with the code of that rank. SIGTERM, SIGINT, SIGUSR1 and
    SIGUSR2 are passed on to the ranks. No process, memory or file is left behind.

    --json writes how and when each rank ended. With `--json -` the output of the ranks goes to stderr.
    """
    inside = current_launch()
    if inside is not None and inside.ranks > 1:
        raise BadInput(
            f"expected `onehop launch` outside of a launch, found that this is rank {inside.rank} of {inside.ranks} "
            f"({inside.launcher}); start the program directly, without `onehop launch`"
        )
    if options.output_dir is not None:
        options.refuse(["prefix"], "is about the terminal, and --output-dir writes files")
    return run_ranks(
        starts_of(options.programs(), options.ranks_file),
        output=_OUTPUTS[options.prefix],
        stdout=2 if options.json == "-" else 1,
        on_result=lambda result: write_json(options.json, result.to_dict()),
        **options.part(LaunchOptions),
    )
