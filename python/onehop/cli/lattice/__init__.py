"""`onehop lattice`: gauge fields and quark propagators. Each subcommand is a function in a module of the same name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer

# The subcommands, in the order of the help. A module is imported only when its command is needed.
COMMANDS = ("info", "measure", "convert", "thermalize", "smear", "solve")


def register(app: typer.Typer, words: Sequence[str] = ()) -> None:
    """Add the commands: those among the words of the command line, or all if there is none among them."""
    common = importlib.import_module("onehop.cli.lattice.common")
    lattice = typer.Typer(
        no_args_is_help=True,
        help="Lattice QCD: halo layout, SU(3) gauge fields and quark propagators on a grid of ranks.",
    )
    for name in [one for one in COMMANDS if one in words] or COMMANDS:
        command = getattr(importlib.import_module(f"onehop.cli.lattice.{name}"), name)
        lattice.command(cls=common.SmearCommand if name == "smear" else common.NumbersCommand)(command)
    app.add_typer(lattice, name="lattice")
