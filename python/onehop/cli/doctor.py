"""`onehop doctor`: examine the machine and the software, and say how to mend what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from onehop._core import __version__
from onehop.cli.common import JsonOptions, RanksOptions, console, own_rank, write_json
from onehop.cli.screen import Table, changing_line, coloured
from onehop.launch import ensure_ranks
from onehop.options import option


@dataclass(kw_only=True)
class Doctor(RanksOptions, JsonOptions):
    tests: bool = option(True, "Test each transport on two ranks.", "--tests", off="--no-tests")


def doctor(options: Doctor) -> int:
    """Examine this machine and its software, test the transports, and say how to mend problems.

    The exit code is 1 if something that onehop requires is broken.
    """
    ensure_ranks(options.ranks)
    from onehop.doctor import State, examine, host

    first = own_rank() == 0
    with changing_line(quiet=not first) as show:
        findings = examine(show or (lambda _text: None), tests=options.tests and first)
    colours = {State.OK: "green", State.ABSENT: "dim", State.WRONG: "yellow", State.BROKEN: "bold red"}
    table = Table("", "", "", title=f"onehop {__version__}", show_header=False)
    for finding in findings:
        text = finding.text if not finding.remedy else f"{finding.text}\n-> {finding.remedy}"
        table.add_row(finding.name, coloured(finding.state.value, colours[finding.state]), text)
    console(options.json).print(table)
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
    write_json(options.json, result)
    return int(broken)
