"""`onehop tune`: measure the fastest settings of this machine and save them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from onehop import _core
from onehop._core import __version__
from onehop.cli.common import JsonOption, console, progress, write_json
from onehop.cores import usable_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.launch import current_launch
from onehop.output import check_file_target, write_file
from onehop.text import number
from onehop.tune.allreduce import pays_text
from onehop.tune.machine_file import machine_text
from onehop.tune.settings import Tuned, machine_times, save
from onehop.tune.settings import tune as measure

LONGEST = 3600  # seconds


def _table(tuned: Tuned) -> Table:
    table = Table("what", "built in", title="onehop tune", title_justify="left")
    table.add_column("µs", justify="right")
    table.add_column("chosen")
    table.add_column("µs", justify="right")
    table.add_column("gain", justify="right")
    for one in tuned.choices:
        same = one.chosen == one.built_in
        table.add_row(
            one.what,
            one.built_in,
            number(one.built_in_us),
            "the same" if same else one.chosen,
            "" if same else number(one.chosen_us),
            "" if same else f"{one.gain:.0%}",
        )
    return table


def tune(
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="Time to measure, in seconds.")] = 45,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Measure and show the settings, but do not save them.")
    ] = False,
    machine_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.toml",
            help="Also write this machine's file for onehop simulate --machine FILE.toml, which takes a third of "
            "--seconds more.",
        ),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Measure the fastest stores, chunks, slots, waiting and all-reduce algorithms of this machine and save them.

    onehop reads the saved settings whenever a program starts. Deleting the file restores the built-in settings.
    """
    if current_launch() is not None:
        raise BadInput(
            "expected no launch, because onehop tune starts its own ranks, found one; run it by itself"
        )
    if not 0 < seconds <= LONGEST:
        raise BadInput(f"expected --seconds above 0 and at most {LONGEST}, found {seconds:g}")
    if machine_file is not None:
        check_file_target(machine_file, "--machine-file")
    cores = usable_cores()
    if cores < 2:
        raise Error(
            "expected two cores for two ranks that run at the same time, found one; run this on more cores"
        )
    about = host()
    with progress("measuring", 4 if machine_file is None else 5) as advance:
        tuned = measure(seconds, demote="cldemote" in about["features"], cores=cores, advance=advance)
        if machine_file is not None:
            # Programs will run with the new settings, unless these are not saved.
            times = machine_times(seconds / 3, None if dry_run else tuned.tuning)
            advance(1)
    file = Path(_core.tuning_file())
    screen = console(json_target)
    screen.print(_table(tuned))
    for table in tuned.tuning["allreduce"]:
        if table["transport"] == "shared_memory":
            screen.print(pays_text(table), markup=False)
    for what, section in (("codecs pay", "codecs"), ("lossless compression pays", "lossless")):
        rates = [f"{name} {one['pays_below_gbit_per_s']:.2g}" for name, one in tuned.tuning[section].items()]
        screen.print(f"{what} on links below, in Gbit/s per rank: {', '.join(rates)}", markup=False)
    if dry_run:
        screen.print("not saved (--dry-run)")
    else:
        save(tuned.tuning, file)
        screen.print(f"saved to {file}", markup=False)
    if machine_file is not None:
        write_file(machine_file, machine_text(times, cores), "the machine")
        screen.print(f"the machine is in {machine_file}", markup=False)
    result = {
        "tune": "onehop",
        "version": __version__,
        "host": about,
        "file": str(file),
        "written": not dry_run,
        "rows": [one.to_dict() for one in tuned.choices],
        "tuning": tuned.tuning,
    }
    write_json(json_target, result)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)
