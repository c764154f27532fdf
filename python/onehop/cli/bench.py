"""`onehop bench`: each subcommand is a function `bench_NAME`, in a module that is imported only when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer

# The subcommands and their modules, in the order of the help.
COMMANDS = {
    "pingpong": "bench_exchanges",
    "channel": "bench_exchanges",
    "halo": "bench_exchanges",
    "codec": "bench_exchanges",
    "poisson": "bench_exchanges",
    "allreduce": "bench_exchanges",
    "collectives": "bench_exchanges",
    "ddp": "bench_torch",
    "overlap": "bench_torch",
    "permutation": "bench_permutation",
    "ring": "bench_exchanges",
    "circuits": "bench_circuits",
    "gradients": "bench_gradients",
    "bindings": "bench_bindings",
    "scaling": "bench_scaling",
    "dslash": "bench_dslash",
    "solver": "bench_solver",
    "su3": "bench_su3",
    "smearing": "bench_smearing",
    "wilson": "bench_wilson",
    "qspi": "bench_qspi",
    "papers": "bench_papers",
    "predict": "bench_predict",
    "all": "bench_figures",
    "figures": "bench_figures",
}


def register(app: typer.Typer, words: Sequence[str] = ()) -> None:
    """Add the commands: those among the words of the command line, or all if there is none among them."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Compare onehop with plain MPI, reference simulators and the speed of light.",
    )
    for name in [one for one in COMMANDS if one in words] or COMMANDS:
        module = importlib.import_module(f"onehop.cli.{COMMANDS[name]}")
        group.command(name)(getattr(module, f"bench_{name}"))
    app.add_typer(group, name="bench")
