"""`onehop lattice plan` and `campaign`: the commands of an ensemble from one file, predicted and run."""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from onehop.cli.common import GridOptions, JsonOptions, console, write_json
from onehop.cli.lattice.analyse import Analyse
from onehop.cli.lattice.campaign_progress import CampaignProgress
from onehop.cli.lattice.measured import ACTIONS, Measure
from onehop.cli.lattice.thermalize import Thermalize
from onehop.cli.parser import parse
from onehop.cli.screen import Table
from onehop.error import BadInput, Error
from onehop.exit_code import BAD_INPUT
from onehop.group import Group
from onehop.input_file import read_text
from onehop.lattice import Gauge, Staggered, Wilson
from onehop.lattice import thermalize as thermalize_field
from onehop.lattice.flow import flow_steps, gradient_flow
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.launch.interpreter import python_module
from onehop.machine.reader import tomllib
from onehop.options import LARGEST_INT, Options, argument, fields_of, file_option, option
from onehop.predict.campaign import Campaign as Work
from onehop.predict.campaign import CampaignSeconds, predict_campaign
from onehop.text import bytes_text, counted, seconds_text

AnyOptions = TypeVar("AnyOptions", bound=Options)
FILE = (
    "TOML file with the tables thermalize, measure and analyse, whose keys are the options of these commands."
)


@dataclass(kw_only=True)
class Plan(GridOptions, JsonOptions):
    file: str = argument("FILE", FILE)
    machine: str | None = option(
        None,
        "Machine to plan for; `onehop machines` lists those installed.",
        metavar="NAME|FILE.toml",
        default="this machine, measured now",
    )
    ranks: int = option(
        1,
        "Number of ranks to plan for (only without --grid). No rank is started.",
        *("-n", "--ranks"),
        metavar="RANKS",
        low=1,
        high=LARGEST_INT,
    )
    iterations: int = option(500, "Iterations of the solver for each source.", low=1, high=LARGEST_INT)


@dataclass(kw_only=True)
class Campaign(JsonOptions):
    file: str = argument("FILE", FILE)
    ranks: int = option(1, "Number of ranks.", *("-n", "--ranks"), metavar="RANKS", low=1, high=LARGEST_INT)
    status: str | None = file_option(
        "Write the progress as JSON to FILE, anew from time to time.", "the progress", "--status"
    )


class CampaignFile:
    """The commands of a campaign: words of each, and their options."""

    def __init__(self, file: str) -> None:
        try:
            tables = tomllib.loads(read_text(file, "campaign", 1 << 20))
        except tomllib.TOMLDecodeError as error:
            raise BadInput(f"{file}: expected TOML, {error}") from None
        unknown = [name for name in tables if name not in ("thermalize", "measure", "analyse")]
        if unknown or "thermalize" not in tables or not all(isinstance(one, dict) for one in tables.values()):
            raise BadInput(
                f"{file}: expected the table thermalize, and perhaps measure and analyse, found "
                f"{', '.join(tables) or 'none'}"
            )
        self.file, self.words = file, {}
        self.thermalize = self._options("thermalize", Thermalize, tables["thermalize"])
        if not self.thermalize.keep or self.thermalize.output is None or self.thermalize.extent is None:
            raise BadInput(f"{file}: expected extent, keep and output in thermalize")
        first, every = self.thermalize.last, self.thermalize.every
        numbers = range(first, first + self.thermalize.keep * every, every)
        self.files = [f"{self.thermalize.output}/{number:06d}.lime" for number in numbers]
        self.measure = self.analyse = None
        if "measure" in tables:
            self.measure = self._options("measure", Measure, tables["measure"], self.files)
            if self.measure.output is None:
                raise BadInput(f"{file}: expected output in measure")
        if "analyse" in tables:
            stored = "" if self.measure is None else self.measure.output
            self.analyse = self._options("analyse", Analyse, tables["analyse"], [str(stored)])
        if self.analyse is not None and self.measure is None:
            raise BadInput(f"{file}: expected measure with analyse")

    def _options(
        self, name: str, kind: type[AnyOptions], table: dict[str, Any], arguments: list[str] | None = None
    ) -> AnyOptions:
        """Read the options of a command, whose words are kept."""
        known = {field.long.removeprefix("--"): field for field in fields_of(kind)}
        words = ["--", *(arguments or [])] if arguments else []
        for key, value in reversed(table.items()):
            field = known.get(key.replace("_", "-"))
            if field is None or field.option.positional:
                raise BadInput(f'{self.file}: expected an option of lattice {name}, found "{key}" in {name}')
            single = not field.is_flag and field.many is None
            if field.is_flag != isinstance(value, bool) or (single and isinstance(value, (list, dict))):
                what = "true or false" if field.is_flag else "one value" if single else "values"
                raise BadInput(f"{self.file}: {name}: expected {what} of {key}, found {value!r}")
            if field.is_flag:
                words = [*([field.long] if value else []), *words]
                continue
            values = value if isinstance(value, list) else [value]
            for one in ["x".join(map(str, values))] if field.many is tuple else reversed(values):
                words = [field.long, str(one), *words]
        self.words[name] = words
        try:
            found = parse(kind, words, f"lattice {name}")
            if isinstance(found, (Thermalize, Measure)):
                found.check()
        except BadInput as error:
            raise BadInput(f"{self.file}: {name}: {error}") from None
        return found

    def work(self, iterations: int) -> Work:
        """Return what the campaign does."""
        thermalize, measure = self.thermalize, self.measure
        if thermalize.is_hmc:
            raise BadInput(f"{self.file}: expected the heat bath, whose time is predicted, found hmc")
        updates = thermalize.sweeps + (thermalize.keep - 1) * thermalize.every
        flow = 0 if measure is None or measure.flow is None else flow_steps(measure.flow, measure.flow_step)
        columns = 0 if measure is None or measure.quarks is None else measure.solves()
        action = "clover" if measure is None or measure.quarks not in ACTIONS else measure.quarks
        sweeps = updates * (1 + thermalize.over_relaxations)
        extents = thermalize.extent or ()
        return Work(extents, thermalize.keep, sweeps, flow, columns, iterations, action)


def _measured(work: Work, ranks: int) -> CampaignSeconds:
    """Measure this machine on a lattice of at most 8 sites in each direction."""
    extents = [min(extent, 8) for extent in work.extents]
    gauge, sites, clock = Gauge(Group.alone(), extents), math.prod(extents), time.monotonic
    times = [clock()]
    thermalize_field(gauge, 6.0, 1, over_relaxations=4)
    times.append(clock())
    if work.flow_steps:
        gradient_flow(gauge, 0.02, step=0.02)
    times.append(clock())
    seconds = 0.0
    if work.columns:
        limits: dict[str, Any] = {"tolerance": 1e-300, "iterations": 20}
        spins = (3,) if work.action in STAGGERED_ACTIONS else (4, 3)
        source = np.ones((3, *extents[::-1], *spins), np.complex128)
        if work.action in STAGGERED_ACTIONS:
            solve = Staggered(gauge, work.action).solve(source, 0.01, **limits)
        else:
            solve = Wilson(gauge, 0.12, csw=float(work.action == "clover")).solve(source, **limits)
        seconds = solve.seconds / max(solve.iterations, 1) / 3
    each = sites * min(ranks, len(os.sched_getaffinity(0)))
    sweep, flow_step = ((times[i + 1] - times[i]) / each for i in (0, 1))
    return CampaignSeconds("this machine", sweep / 5, flow_step, seconds * math.prod(work.extents) / sites)


def plan(options: Plan) -> None:
    """Predict what a campaign takes: hours, memory, bytes between processors, and files.

    Solves take the predicted time of `lattice info --machine`, for --iterations each; generation and flow that of their
    arithmetic or of eight passes over the links. Contractions are not counted. No rank is started, and nothing written.
    """
    steps = CampaignFile(options.file)
    work = steps.work(options.iterations)
    machine = _measured(work, options.ranks) if options.machine is None else options.machine
    found = predict_campaign(work, machine, options.ranks, options.grid)
    done = sum(Path(one).exists() for one in steps.files)
    table = Table("", ">time", title=f"{options.file} on {counted(found.ranks, 'rank')} of {found.machine}")
    for name, hours in found.hours.items():
        table.add_row(name, seconds_text(3600 * hours))
    table.add_section()
    table.add_row("predicted time", seconds_text(3600 * found.total_hours))
    if "solves" in found.hours:
        table.caption = f"with {counted(options.iterations, 'iteration')} of the solver for each source"
    screen = console(options.json)
    screen.print(table)
    levels = ", ".join(
        f"{bytes_text(moved)} over level {level}" for level, moved in found.bytes_by_level.items()
    )
    screen.print(
        f"{bytes_text(found.memory_bytes)} of memory per rank; {counted(len(steps.files), 'configuration')} of "
        f"{bytes_text(found.file_bytes)} together, {done} of them made already"
        + (f"; solves send {levels}" if levels else "")
    )
    write_json(options.json, found.to_dict() | {"configurations": len(steps.files), "made": done})


def campaign(options: Campaign) -> None:
    """Run the commands of a campaign: thermalize, measure and analyse.

    The same command continues after an interrupt. The JSON report is that of the last command. After each command and
    every half minute a line on stderr tells what is done, and the time left by the plan of `lattice plan`.
    """
    steps = CampaignFile(options.file)
    *_, last = steps.words
    try:
        work = steps.work(Plan.iterations)
        planned = predict_campaign(work, _measured(work, options.ranks), options.ranks).hours
    except BadInput:  # such as hybrid Monte Carlo
        planned = None
    made = steps.thermalize
    first = made.last - made.first
    warm_up = first / max(first + (made.keep - 1) * made.every, 1)
    measured = None if steps.measure is None else steps.measure.output
    progress = CampaignProgress(planned, warm_up, steps.files, measured, options.status)
    for name, words in steps.words.items():
        more = [] if name == "analyse" or options.ranks == 1 else ["-n", str(options.ranks)]
        if name == last and options.json is not None:
            more += ["--json", options.json]
        shown = sys.stderr if options.json == "-" and name != last else None
        line = python_module("onehop", "lattice", name, *more, *words)
        code = progress.follow(name, line, stdout=shown)
        if code:
            kind = BadInput if code == BAD_INPUT else Error
            raise kind(f"{options.file}: lattice {name} ended with exit status {code}")
