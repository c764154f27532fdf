"""`onehop quantum`: the simulation of quantum circuits. Each subcommand is a module of the same name."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import typer

from onehop.cli.common import say_renamed

# The subcommands, in the order of the help. A module is imported only when its command is needed.
COMMANDS = ("run", "plan", "circuit", "hamlib", "qedc")
# The commands that also have a short name, and its help.
SHORT = {
    "run": "Simulate a circuit on several ranks (short for `onehop quantum run`).",
    "plan": "Show the memory, exchanges and time that a circuit would take (short for `onehop quantum plan`).",
}


def _say_on_call(command: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """Wrap a command so that it prints its new name before it runs."""

    @functools.wraps(command)
    def renamed(*arguments: Any, **options: Any) -> Any:
        say_renamed(old, new)
        return command(*arguments, **options)

    renamed.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    return renamed


def _say_old_name(name: str) -> Callable[[], None]:
    """Make the callback of a group of version 0.1, which prints the new name."""

    def say() -> None:
        say_renamed(f"onehop {name}", f"onehop quantum {name}")

    return say


def _add_old_name(app: typer.Typer, name: str, module: ModuleType) -> None:
    """Add the name of version 0.1 as a hidden command. Version 0.3 removes it."""
    if name == "qedc":
        app.command(hidden=True)(_say_on_call(module.qedc, "onehop qedc", "onehop quantum qedc"))
    else:
        group = module.circuits if name == "circuit" else module.files
        app.add_typer(group, name=name, hidden=True, callback=_say_old_name(name))


def register(app: typer.Typer, words: Sequence[str] = ()) -> None:
    """Add the commands: those among the words of the command line, or all if there is none among them."""
    quantum = typer.Typer(
        no_args_is_help=True, help="Simulate quantum circuits on a state vector that is split over ranks."
    )
    app.add_typer(quantum, name="quantum")
    for name in [one for one in COMMANDS if one in words] or COMMANDS:
        module = importlib.import_module(f"onehop.cli.quantum.{name}")
        module.register(quantum)
        if name in SHORT:
            app.command(help=SHORT[name])(getattr(module, name))
        else:
            _add_old_name(app, name, module)
