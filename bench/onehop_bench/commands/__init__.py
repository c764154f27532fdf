"""The commands of `onehop bench`: functions `bench_NAME`, in modules that are imported only when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer

# The subcommands and their modules, in the order of the help.
COMMANDS = {
    "pingpong": "exchanges",
    "channel": "exchanges",
    "halo": "exchanges",
    "codec": "exchanges",
    "poisson": "exchanges",
    "allreduce": "exchanges",
    "collectives": "exchanges",
    "ddp": "torch",
    "overlap": "torch",
    "permutation": "permutation",
    "ring": "exchanges",
    "circuits": "circuits",
    "gradients": "gradients",
    "bindings": "bindings",
    "scaling": "scaling",
    "dslash": "dslash",
    "solver": "solver",
    "su3": "su3",
    "smearing": "smearing",
    "wilson": "wilson",
    "qspi": "qspi",
    "papers": "papers",
    "predict": "predict",
    "all": "figures",
    "figures": "figures",
}


def register(app: typer.Typer, words: Sequence[str] = ()) -> None:
    """Add the commands: those among the words of the command line, or all if there is none among them."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Compare onehop with plain MPI, reference simulators and the speed of light.",
    )
    for name in [one for one in COMMANDS if one in words] or COMMANDS:
        module = importlib.import_module(f"onehop_bench.commands.{COMMANDS[name]}")
        group.command(name)(getattr(module, f"bench_{name}"))
    app.add_typer(group, name="bench")
