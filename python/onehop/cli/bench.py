"""`onehop bench`: the commands of the package onehop-bench, where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.util import find_spec

import typer

from onehop.error import Error


def register(app: typer.Typer, words: Sequence[str] = ()) -> None:
    """Add the commands: those among the words of the command line, or all if there is none among them.

    Raises
    ------
    Error
        The package is not installed.
    """
    if find_spec("onehop_bench") is None:
        raise Error(
            "the benchmarks are a package of their own, which is not installed: `pip install ./bench` in a checkout of "
            "onehop installs it"
        )
    importlib.import_module("onehop_bench.commands").register(app, words)
