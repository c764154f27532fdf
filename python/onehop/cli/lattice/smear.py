"""`onehop lattice smear`: smooth a gauge field, or compute the fat and long links of improved staggered quarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from onehop.cli.common import LARGEST_INT, JsonOption, RanksOption, console, own_rank, progress, write_json
from onehop.cli.lattice.common import (
    GridOption,
    check_finite,
    check_tolerance,
    numbers,
    refuse_without_effect,
    say_unverified,
)
from onehop.cli.lattice.convert import FormatOption, OverwriteOption, PrecisionOption
from onehop.cli.lattice.measure import FileArgument, ToleranceOption
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, field_strength, gradient_flow, read_gauge, smearing, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.lattice.flow import FLOW_STEP, flow_steps
from onehop.lattice.phases import PHASES, check_phases, with_staggered_phases
from onehop.launch import ensure_ranks
from onehop.text import alternatives

SMOOTH = ("ape", "stout", "flow")
TAKEN_BY: dict[str, tuple[str, ...]] = {
    "--weight": ("stout", "ape"),
    "--steps": ("stout", "ape"),
    "--space-only": ("stout", "ape"),
    "--time": ("flow",),
    "--u0": tuple(kind for kind in smearing.FAT_LINKS if kind != "hisq"),
    "--naik-epsilon": ("hisq",),
    "--phases": tuple(smearing.FAT_LINKS),
    "--periodic": tuple(smearing.FAT_LINKS),
}


# Up to these weights no mode of a smooth field grows: alpha of ape, rho of stout, in three and four directions.
STABLE = {"ape": 0.66, "stout": 0.125}
ROUNDING = 1e-9

NO_PHASES = "links without the phases of staggered quarks"


def _write_fat_links(
    gauge: Gauge,
    kind: str,
    how_made: dict[str, float],
    files: tuple[str | None, str | None],
    phases: str | None,
    periodic: bool,
    **how: Any,
) -> dict[str, float]:
    made = (
        smearing.hisq_links(gauge, **how_made)
        if kind == "hisq"
        else smearing.fat_links(gauge, kind, **how_made)
    )
    holder = Gauge(
        gauge.group, gauge.geometry.extents, gauge.geometry.grid, map=gauge.geometry.rank_at or None
    )
    traces = {}
    for name, links, file, length in (("fat", made.fat, files[0], 1), ("long", made.long_links, files[1], 3)):
        holder.set_links(links)
        traces[f"{name}_link_trace"] = holder.link_trace()
        if file is None:
            continue
        note = NO_PHASES
        if phases is not None:
            holder.set_links(
                with_staggered_phases(
                    links,
                    gauge.geometry,
                    gauge.group.rank,
                    length=length,
                    antiperiodic=not periodic,
                    phases=phases,
                )
            )
            note = f"links with {phases} phases, {'' if periodic else 'anti'}periodic in time"
        is_ildg = check_gauge_target(file, **how) == "ildg"
        write_gauge(file, holder, **how, note=note if is_ildg else "")
    return traces


def _smooth(
    gauge: Gauge, kind: str, weight: float, steps: int, time: float, space_only: bool, tolerance: float
) -> None:
    if kind == "flow":
        with progress("flow", total=flow_steps(time, FLOW_STEP)) as advance:
            gradient_flow(gauge, time, every=1 << 30, progress=lambda _n: advance(1))[0].copy_to(gauge)
        return
    smear_once = smearing.ape if kind == "ape" else smearing.stout
    before = gauge.plaquettes()
    with progress("steps", total=steps) as advance:
        for _ in range(steps):
            smear_once(gauge, weight, space_only=space_only)
            advance(1)
    value, site, direction = gauge.deviation()
    if not value <= max(1e-3, 10 * tolerance):
        raise BadInput(
            f"expected smeared links in SU(3), found one that deviates by {value:.2g} at (x, y, z, t) = {site} in "
            f"direction {'xyzt'[direction]} with a weight of {weight:g}; take a smaller weight"
        )
    after = gauge.plaquettes()
    old, new = (before.space, after.space) if space_only else (before.all, after.all)
    if new < old - ROUNDING:
        raise BadInput(
            f"expected {kind} smearing to smooth the field, so that its {'spatial ' if space_only else ''}plaquette "
            f"grows, found that it fell from {old:.6g} to {new:.6g} with a weight of {weight:g}; take a "
            f"weight between 0 and {STABLE[kind]:g}"
        )


def _check(kind: str, given: dict[str, object], files: dict[str, str | None]) -> None:
    """Refuse options of other kinds, and files for links that this kind does not compute."""
    if kind not in (*SMOOTH, *smearing.FAT_LINKS):
        raise BadInput(f"expected --kind {alternatives((*SMOOTH, *smearing.FAT_LINKS))}, found {kind!r}")
    makes_fat = kind in smearing.FAT_LINKS
    if makes_fat and files["output"] is not None:
        raise BadInput(
            f"{kind} computes fat and long links: expected --fat and --long for its files, found --output"
        )
    if not makes_fat and (files["fat"] is not None or files["long"] is not None):
        raise BadInput(
            f"{kind} computes one smooth field: expected --output for its file, found --fat or --long"
        )
    for option, value in given.items():
        if value is not None and value is not False and kind not in TAKEN_BY[option]:
            raise BadInput(
                f"{option} is for --kind {alternatives(TAKEN_BY[option])}, found {kind!r}; leave it out"
            )
    if files["fat"] is not None and files["long"] is not None:
        fat, long = (Path(str(files[name])).resolve() for name in ("fat", "long"))
        if fat == long:
            raise BadInput(f"expected two files for fat and long links, found {files['fat']} for both")


def _check_all(options: Mapping[str, Any]) -> None:
    """Check the options, also those that do not go together, before anything is read."""
    names = ("weight", "steps", "time", "space_only", "u0", "naik_epsilon", "phases", "periodic")
    given = {f"--{name.replace('_', '-')}": options[name] for name in names}
    targets = {name: options[name] for name in ("output", "fat", "long")}
    _check(options["kind"], given, targets)
    check_tolerance(options["tolerance"], "--tolerance")
    check_finite({name: given[name] for name in ("--weight", "--u0", "--naik-epsilon")})
    if options["phases"] is not None:
        check_phases(options["phases"])
    if all(target is None for target in targets.values()):
        refuse_without_effect(("--format", "--precision", "--overwrite"), "is for a file that is written")
    if options["periodic"] and options["phases"] is None:
        raise BadInput(
            "--periodic goes with --phases, because links without phases contain no boundary signs"
        )
    if options["kind"] == "flow":
        flow_steps(1.0 if options["time"] is None else options["time"], FLOW_STEP)


def _measured(gauge: Gauge) -> dict[str, float]:
    """Return what is reported of a smoothed field."""
    plaquettes = gauge.plaquettes()
    return {
        "plaquette": plaquettes.all,
        "plaquette_space": plaquettes.space,
        "plaquette_time": plaquettes.time,
        "link_trace": gauge.link_trace(),
        "charge": field_strength(gauge).charge,
    }


def _print(report: dict[str, object], files: Sequence[str | None], json_target: str | None) -> None:
    screen = console(json_target)
    for name, value in report.items():
        if isinstance(value, float):
            screen.print(f"{name.replace('_', ' ')}: {value:.9g}", markup=False)
    for written in files:
        if written is not None:
            screen.print(f"written to {written}", markup=False)
    write_json(json_target, report)


def smear(
    context: typer.Context,
    file: FileArgument,
    kind: Annotated[
        str,
        typer.Option(
            metavar="stout|ape|flow|hisq|asqtad|fat7|fat5|fat3", help="Kind of smearing, or of fat links."
        ),
    ] = "stout",
    weight: Annotated[
        float | None,
        typer.Option(
            help="Weight of the staples: rho for stout (default: 0.1), alpha for ape (default: 0.5)."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST_INT, help="Number of smearing steps (stout and ape only). Default: 1."
        ),
    ] = None,
    time: Annotated[float | None, typer.Option(min=0, help="Flow time (flow only). Default: 1.")] = None,
    space_only: Annotated[
        bool,
        typer.Option(
            "--space-only", help="Smear only spatial links, with spatial staples (stout and ape only)."
        ),
    ] = False,
    u0: Annotated[
        float | None, typer.Option(help="Tadpole factor u0 (asqtad, fat7, fat5 and fat3 only). Default: 1.")
    ] = None,
    naik_epsilon: Annotated[float | None, typer.Option(help="Naik epsilon (hisq only). Default: 0.")] = None,
    phases: Annotated[
        str | None,
        typer.Option(
            "--phases",
            metavar=f"[{'|'.join(PHASES)}]",
            help="Multiply fat and long links with the staggered phases and the antiperiodic boundary in time, as "
            "`solve --fat` expects them. Order of directions: x, y, z, t (standard, the default) or t, x, y, z (MILC).",
        ),
    ] = None,
    periodic: Annotated[
        bool, typer.Option("--periodic", help="Use a periodic boundary in time (only with --phases).")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the smoothed field to FILE (stout, ape and flow only).",
        ),
    ] = None,
    fat: Annotated[str | None, typer.Option(metavar="FILE", help="Write the fat links to FILE.")] = None,
    long: Annotated[str | None, typer.Option(metavar="FILE", help="Write the long links to FILE.")] = None,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Smooth a gauge field (stout, ape, flow), or compute its fat and long links (hisq, asqtad, fat7 ...).

    Fat and long links contain no staggered phases unless --phases is given. `onehop lattice solve` computes the links
    of its actions itself.
    """
    _check_all(context.params)
    how: dict[str, Any] = {"file_format": format_name, "precision": precision, "overwrite": overwrite}
    for written in (output, fat, long):
        if written is not None:
            check_gauge_target(written, **how)
    ensure_ranks(ranks)
    gauge, found = read_gauge(file, Group.world(), numbers(grid, "--grid"), tolerance=tolerance)
    say_unverified(file, found.has_checksum, json_target)
    report: dict[str, object] = {"file": file, "kind": kind, "extent": list(found.extents)}
    report["verified"] = list(found.verified)
    if kind in smearing.FAT_LINKS:
        how_made = {"u0": u0, "naik_epsilon": naik_epsilon}
        chosen = {name: value for name, value in how_made.items() if value is not None}
        report |= _write_fat_links(gauge, kind, chosen, (fat, long), phases, periodic, **how)
    else:
        usual = 0.5 if kind == "ape" else 0.1
        _smooth(
            gauge,
            kind,
            usual if weight is None else weight,
            1 if steps is None else steps,
            1.0 if time is None else time,
            space_only,
            tolerance,
        )
        report |= {"plaquette_before": found.plaquettes.all} | _measured(gauge)
        if output is not None:
            write_gauge(output, gauge, **how)
    if own_rank() == 0:
        _print(report, (output, fat, long), json_target)
