"""`onehop quantum`: circuits on a state vector that is split over ranks. Each subcommand is a module of its name."""

from __future__ import annotations

import typer

from onehop.cli.quantum import circuit, hamlib, plan, qedc, run


def register(app: typer.Typer) -> None:
    """Add the commands, `run` and `plan` also in their short forms."""
    quantum = typer.Typer(
        no_args_is_help=True, help="Quantum circuits on a state vector that is split over ranks."
    )
    for module in (run, plan, circuit, hamlib, qedc):
        module.register(quantum)
    app.add_typer(quantum, name="quantum")
    app.command(help="Short for `onehop quantum run`.")(run.run)
    app.command(help="Short for `onehop quantum plan`.")(plan.plan)
    # The names of version 0.1; they go with 0.3.
    app.add_typer(circuit.circuits, name="circuit", hidden=True)
    app.add_typer(hamlib.files, name="hamlib", hidden=True)
    app.command(hidden=True)(qedc.qedc)
