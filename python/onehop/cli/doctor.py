"""`onehop doctor`: examine the machine and the software, and say how to mend what is wrong."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from onehop._core import __version__
from onehop.cli.common import JsonOption, RanksOption, console, own_rank, write_json
from onehop.launch import ensure_ranks


def doctor(
    ranks: RanksOption = None,
    json_target: JsonOption = None,
    tests: Annotated[
        bool, typer.Option("--tests/--no-tests", help="Test each transport on two ranks.")
    ] = True,
) -> None:
    """Examine this machine and its software, test the transports, and say how to mend problems.

    The exit code is 1 if something that onehop requires is broken.
    """
    ensure_ranks(ranks)
    from onehop.doctor import State, examine, host

    first = own_rank() == 0
    with Console(stderr=True, quiet=not first).status("examining") as status:
        findings = examine(status.update, tests=tests and first)
    colours = {State.OK: "green", State.ABSENT: "dim", State.WRONG: "yellow", State.BROKEN: "bold red"}
    table = Table(title=f"onehop {__version__}", show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for finding in findings:
        colour = colours[finding.state]
        text = finding.text if not finding.remedy else f"{finding.text}\n-> {finding.remedy}"
        table.add_row(finding.name, f"[{colour}]{finding.state.value}[/]", _plain(text))
    console(json_target).print(table)
    broken = any(finding.state == State.BROKEN for finding in findings)
    mpi = next(
        (finding.text for finding in findings if finding.name == "MPI library" and finding.state == State.OK),
        None,
    )
    result = {
        "version": __version__,
        "ok": not broken,
        "host": host(mpi),
        "findings": [finding.to_dict() for finding in findings],
    }
    write_json(json_target, result)
    if broken:
        raise typer.Exit(1)


def _plain(text: str) -> str:
    """Escape text so that rich does not read it as markup."""
    return text.replace("[", "\\[")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)
