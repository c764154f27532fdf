"""`onehop lattice measure` of several files: configurations side by side, into one file of measurements."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.lattice.measured import FlowOptions, Measure, QuarkOptions, measured, read_field
from onehop.cli.screen import Table
from onehop.error import BadInput, Error
from onehop.group import Group, together
from onehop.lattice.files.read import require_memory_side_by_side
from onehop.lattice.measurements import (
    Measurements,
    check_ensemble,
    read_measurements,
    require_h5py,
    write_measurements,
)
from onehop.text import counted

_SECONDS_BETWEEN_WRITES = 10.0


def ranks_of_one(ranks: int, configurations: int, grid: tuple[int, ...] | None) -> int:
    """Return how many ranks measure one configuration, so that all ranks have work. Raises BadInput for a bad grid."""
    if grid is None:
        return next(
            each for each in range(1, ranks + 1) if ranks % each == 0 and ranks // each <= configurations
        )
    each = math.prod(grid)
    if ranks % each:
        raise BadInput(
            f"expected --grid with a number of ranks that divides {ranks}, found {'x'.join(map(str, grid))}, which is "
            f"{counted(each, 'rank')} for each configuration"
        )
    return each


def _part(world: Group, configurations: int, grid: tuple[int, ...] | None) -> Group:
    """Return the ranks that measure a configuration together with this one. Collective."""
    each = ranks_of_one(world.size, max(configurations, 1), grid)
    part = world.split(world.rank // each) if each < world.size else world
    assert part is not None
    return part


def _settings(options: Measure) -> dict[str, Any]:
    """Return the options on which the numbers depend, those of flow and quarks only with --flow and --quarks."""
    found: dict[str, Any] = {"tolerance": options.tolerance, "accept_checksum": options.accept_checksum}
    if options.convention != "onehop":
        found["convention"] = options.convention
    if options.charge != "clover":
        found["charge"] = options.charge
    if options.wilson_loops is not None:
        found["wilson_loops"] = list(options.wilson_loops)
    for part, chosen in ((FlowOptions, options.flow), (QuarkOptions, options.quarks)):
        if chosen is not None:
            found |= {name: value for name, value in options.part(part).items() if value is not None}
    if found.get("flow_action") == "wilson":  # as files have it that are older than the option
        del found["flow_action"]
    return json.loads(json.dumps(found))  # lists, as they are read


def _begin(options: Measure, group: Group) -> tuple[Measurements, list[dict[str, Any]], int]:
    """Return what is measured already, what is missing, and how many files there are."""
    settings = _settings(options)
    with together(group, "cannot measure"):
        kept = None
        if options.output is not None:
            require_h5py()
        if options.output is not None and Path(options.output).exists():
            kept = read_measurements(options.output)
            different = [
                f"{name} {kept.options.get(name)!r} instead of {settings.get(name)!r}"
                for name in dict.fromkeys([*kept.options, *settings])
                if kept.options.get(name) != settings.get(name)
                and not (name == "mass" and "kappa" in kept.options and "kappa" in settings)  # which gives it
            ]
            if different:
                raise BadInput(
                    f"{options.output} was measured with other options, {', '.join(different)}; name another file"
                )
        more = [] if kept is None else [one["number"] for one in kept.configurations]
        extents, wanted = check_ensemble(options.file, options.extent, more)
        kept = kept or Measurements(settings, extents)
        if kept.extents != extents:
            raise BadInput(
                f"{options.output} has measurements of a lattice of {'x'.join(map(str, kept.extents))}, found files of "
                f"{'x'.join(map(str, extents))}; name another file"
            )
    left = kept.missing(
        wanted, lambda path: read_field(options, path, _part(group, len(wanted), options.grid))[1].sha256
    )
    return kept, left, len(wanted)


def _measured(options: Measure, one: dict[str, Any] | None, part: Group) -> dict[str, Any]:
    """Return the report of a configuration, or the error that ended its measurement."""
    if one is None:
        return {}
    try:
        report, found, _ = measured(options, one["file"], part)
    except Error as error:
        return {"error": str(error), "bad_input": isinstance(error, BadInput)}
    return report | {"number": one["number"], "has_checksum": found.has_checksum} if part.rank == 0 else {}


def measure_ensemble(options: Measure) -> None:
    """Measure the configurations that are missing, and report all. Collective."""
    world = Group.world()
    kept, left, files = _begin(options, world)
    part = _part(world, len(left), options.grid)
    each, at_once = part.size, world.size // part.size
    require_memory_side_by_side(world, [one["file"] for one in left[:1]], each, options.extent)
    written = time.monotonic()
    reports: list[dict[str, Any]] = []
    new: list[dict[str, Any]] = []
    with progress("configurations", total=len(left)) as advance:
        for first in range(0, len(left), at_once):
            now = left[first : first + at_once]
            at = world.rank // each
            report = _measured(options, now[at] if at < len(now) else None, part)
            found = [json.loads(text) for text in world.allgather(json.dumps(report).encode())]
            new += [one for one in found if "file" in one]
            wrong = next((one for one in found if "error" in one), None)
            is_last = wrong is not None or first + at_once >= len(left)
            is_due = is_last or time.monotonic() - written > _SECONDS_BETWEEN_WRITES
            if own_rank() == 0 and options.output is not None and new and is_due:
                kept.add(new)
                reports, new, written = reports + new, [], time.monotonic()
                write_measurements(options.output, kept)
            if wrong is not None:
                raise (BadInput if wrong["bad_input"] else Error)(wrong["error"])
            advance(len(now))
    if own_rank() == 0:
        _report(options, kept, reports + new, files, each)


def _report(options: Measure, kept: Measurements, new: list[dict[str, Any]], files: int, each: int) -> None:
    """Print and write the report of all configurations, those measured before included."""
    if options.output is None:
        kept.add(new)
    screen = console(options.json)
    table = Table(
        "observable",
        ">mean",
        ">smallest",
        ">largest",
        title=f"{counted(len(kept.configurations), 'configuration')}",
    )
    for name, values in kept.series.items():
        if values.ndim == 1:
            table.add_row(
                name.replace("_", " "), *(f"{one:.9g}" for one in (values.mean(), values.min(), values.max()))
            )
    screen.print(table)
    without = sum(not one["has_checksum"] for one in new)
    if without:
        screen.print(f"{counted(without, 'file')} without a checksum, so that their numbers are not verified")
    accepted = sum("accepted_checksums" in one for one in new)
    if accepted:
        screen.print(f"{counted(accepted, 'file')} with a wrong checksum that was accepted")
    for said in {one["quarks"]["said"] for one in new if "said" in one.get("quarks", {})}:
        screen.print(said)
    screen.print(
        f"{counted(len(new), 'configuration')} measured now, by {counted(each, 'rank')} each, "
        f"{files - len(new)} before" + (f"; written to {options.output}" if options.output else "")
    )
    report = {
        "file": options.output,
        "options": kept.options,
        "extent": list(kept.extents),
        **kept.parts(),
        "flow_times": kept.flow_times,
        "series": {
            name: values.tolist() for name, values in kept.series.items() if "correlators" not in name
        },
    }
    write_json(options.json, report)
