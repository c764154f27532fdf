"""`onehop lattice`: gauge fields and quark propagators. Each subcommand is a function in a module of the same name."""

from __future__ import annotations

import typer

from onehop.cli.lattice.common import NumbersCommand, SmearCommand
from onehop.cli.lattice.convert import convert
from onehop.cli.lattice.info import info
from onehop.cli.lattice.measure import measure
from onehop.cli.lattice.smear import smear
from onehop.cli.lattice.solve import solve
from onehop.cli.lattice.thermalize import thermalize


def register(app: typer.Typer) -> None:
    """Add the commands."""
    lattice = typer.Typer(
        no_args_is_help=True,
        help="Lattice QCD: halo layout, SU(3) gauge fields and quark propagators on a grid of ranks.",
    )
    for command in (info, measure, convert, thermalize, smear, solve):
        lattice.command(cls=SmearCommand if command is smear else NumbersCommand)(command)
    app.add_typer(lattice, name="lattice")
