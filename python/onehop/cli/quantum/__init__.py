"""`onehop quantum`: the simulation of quantum circuits. Each subcommand is a module of the same name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

from onehop.cli.common import say_renamed
from onehop.cli.quantum import circuit, hamlib, plan, qedc, run


def _say_on_call(command: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """Wrap a command so that it prints its new name before it runs."""

    @functools.wraps(command)
    def renamed(*arguments: Any, **options: Any) -> Any:
        say_renamed(old, new)
        return command(*arguments, **options)

    renamed.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    return renamed


def _add_old_names(app: typer.Typer) -> None:
    """Add the names of version 0.1 as hidden commands. Version 0.3 removes them."""
    for name, group in (("circuit", circuit.circuits), ("hamlib", hamlib.files)):

        def say(name: str = name) -> None:
            say_renamed(f"onehop {name}", f"onehop quantum {name}")

        say.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        app.add_typer(group, name=name, hidden=True, callback=say)
    app.command(hidden=True)(_say_on_call(qedc.qedc, "onehop qedc", "onehop quantum qedc"))


def register(app: typer.Typer) -> None:
    """Add the commands; `run` and `plan` also have short names."""
    quantum = typer.Typer(
        no_args_is_help=True, help="Simulate quantum circuits on a state vector that is split over ranks."
    )
    for module in (run, plan, circuit, hamlib, qedc):
        module.register(quantum)
    app.add_typer(quantum, name="quantum")
    app.command(help="Simulate a circuit on several ranks (short for `onehop quantum run`).")(run.run)
    app.command(
        help="Show the memory, exchanges and time that a circuit would take (short for `onehop quantum plan`)."
    )(plan.plan)
    _add_old_names(app)
