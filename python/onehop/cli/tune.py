"""`onehop tune`: measure the fastest settings of this machine and save them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from onehop import _core
from onehop._core import __version__
from onehop.cli.busy import Load, load_text
from onehop.cli.common import JsonOptions, console, progress, write_json
from onehop.cli.screen import Table
from onehop.cli.waiting import waiting
from onehop.cores import usable_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.launch import current_launch
from onehop.options import option
from onehop.output import write_file
from onehop.quantum import generators, plan, simulate
from onehop.quantum.circuit_plan import keep_rate
from onehop.text import seconds_text
from onehop.tune.allreduce import pays_text
from onehop.tune.device import KINDS, key_of, ranks_on
from onehop.tune.machine_file import kept_file, machine_text
from onehop.tune.settings import Tuned, machine_times, save, tune_device
from onehop.tune.settings import tune as measure

LONGEST = 3600  # seconds


def _table(tuned: Tuned) -> Table:
    table = Table("what", "built in", ">time", "chosen", ">time", ">gain", title="onehop tune")
    for one in tuned.choices:
        same = one.chosen == one.built_in
        table.add_row(
            one.what,
            one.built_in,
            seconds_text(one.built_in_us * 1e-6, 3),
            "the same" if same else one.chosen,
            "" if same else seconds_text(one.chosen_us * 1e-6, 3),
            "" if same else f"{100 * one.gain:.0f} %",
        )
    return table


def _keep_circuit_rate() -> None:
    """Run a circuit on all cores, and keep the rate by which `onehop plan` predicts times."""
    circuit = generators.random_circuit(22)
    circuit_plan, begin = plan(circuit), perf_counter()
    simulate(circuit)
    keep_rate(circuit_plan, perf_counter() - begin, replace=True)


@dataclass(kw_only=True)
class Tune(JsonOptions):
    seconds: float = option(45.0, "Time to measure.", metavar="SECONDS", above=0, high=LONGEST)
    dry_run: bool = option(False, "Measure and show the settings, but do not save them.")
    device: str | None = option(
        None,
        "Measure sums on the cards of this machine instead, two or more: one or two shots, and codecs. processor runs "
        "the kernels without a card, for tests.",
        choices=KINDS,
    )
    machine_file: str | None = option(
        None,
        "Also write this machine's file for onehop simulate --machine FILE.toml; it takes a third of --seconds more.",
        metavar="FILE.toml",
        writes="the machine",
    )


def tune(options: Tune) -> None:
    """Measure the fastest stores, chunks, slots, waiting and all-reduce algorithms of this machine and save them.

    onehop reads the saved settings whenever a program starts. Deleting the file restores the built-in settings.
    """
    if current_launch() is not None:
        raise BadInput(
            "expected no launch, because onehop tune starts its own ranks, found one; run it by itself"
        )
    cores = usable_cores()
    if cores < 2:
        raise Error(
            "expected two cores for two ranks that run at the same time, found one; run this on more cores"
        )
    if options.device is not None:
        options.refuse(["machine_file"], "has no effect with --device")
    about = host()
    load = Load()
    with progress("measuring", 4 if options.machine_file is None else 5) as advance:
        if options.device is not None:
            tuned = tune_device(options.device, options.seconds, lambda part: advance(4 * part))
        else:
            has_demote = "cldemote" in about["features"]
            tuned = measure(options.seconds, demote=has_demote, cores=cores, advance=advance)
        if options.machine_file is not None:
            # Programs will run with the new settings, unless these are not saved.
            times = machine_times(options.seconds / 3, None if options.dry_run else tuned.tuning)
            advance(1)
    busy = load.found()
    file = Path(_core.tuning_file())
    screen = console(options.json)
    screen.print(_table(tuned))
    place = "shared_memory" if options.device is None else "cards"
    measured = [2, None] if options.device is None else [key_of(ranks) for ranks in ranks_on(options.device)]
    for table in tuned.tuning["allreduce"]:
        if table["transport"] == place and table["ranks"] in measured:
            screen.print(pays_text(table))
    sections = (("codecs pay", "codecs"), ("lossless compression pays", "lossless"))
    for what, section in sections if options.device is None else ():
        rates = [f"{name} {one['pays_below_gbit_per_s']:.2g}" for name, one in tuned.tuning[section].items()]
        screen.print(f"{what} on links below, in Gbit/s per rank: {', '.join(rates)}")
    screen.print(load_text(busy))
    if options.dry_run:
        screen.print("not saved (--dry-run)")
    else:
        save(tuned.tuning, file)
        if options.device is None:
            with waiting("measuring circuits"):
                _keep_circuit_rate()
        screen.print(f"saved to {file}")
    if options.machine_file is not None:
        text = machine_text(times, cores)
        write_file(options.machine_file, text, "the machine")
        with contextlib.suppress(Error, OSError, RuntimeError):  # `onehop simulate` can do without it
            write_file(kept_file(), text, "the machine", make_parents=True)
    result = {
        "tune": "onehop",
        "version": __version__,
        "host": about,
        "busy": busy,
        "file": str(file),
        "written": not options.dry_run,
        "rows": [one.to_dict() for one in tuned.choices],
        "tuning": tuned.tuning,
    }
    write_json(options.json, result)
