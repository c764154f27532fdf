"""`onehop lattice smear`: a smoother gauge field, or the fat and long links of improved staggered quarks."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, progress, write_json
from onehop.cli.lattice.common import GridOption, numbers
from onehop.cli.lattice.convert import FormatOption, OverwriteOption, PrecisionOption
from onehop.cli.lattice.measure import FileArgument, ToleranceOption
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, field_strength, gradient_flow, read_gauge, smearing, write_gauge
from onehop.launch import ensure_ranks

SMOOTH = ("ape", "stout", "flow")


def _write_fat_links(
    gauge: Gauge,
    kind: str,
    u0: float,
    naik_epsilon: float,
    files: tuple[str | None, str | None],
    **how: object,
) -> dict[str, float]:
    made = (
        smearing.hisq_links(gauge, naik_epsilon=naik_epsilon)
        if kind == "hisq"
        else smearing.fat_links(gauge, kind, u0=u0)
    )
    holder = Gauge(gauge.group, gauge.geometry.extents, gauge.geometry.grid)
    traces = {}
    for name, links, file in (("fat", made.fat, files[0]), ("long", made.long, files[1])):
        holder.set_links(links)
        traces[f"{name}_link_trace"] = holder.link_trace()
        if file is not None:
            write_gauge(file, holder, **how)  # type: ignore[arg-type]
    return traces


def _smooth(gauge: Gauge, kind: str, weight: float, steps: int, time: float, space_only: bool) -> None:
    if kind == "flow":
        with progress("flow", total=int(np.ceil(time / 0.02 - 1e-9))) as advance:
            gradient_flow(gauge, time, step=0.02, every=1 << 30, progress=lambda _n: advance(1))[0].copy_to(
                gauge
            )
        return
    smear_once = smearing.ape if kind == "ape" else smearing.stout
    with progress("steps", total=steps) as advance:
        for _ in range(steps):
            smear_once(gauge, weight, space_only=space_only)
            advance(1)


def smear(
    file: FileArgument,
    kind: Annotated[
        str,
        typer.Option(metavar="stout|ape|flow|hisq|asqtad|fat7|fat5|fat3", help="What to make of the links."),
    ] = "stout",
    weight: Annotated[
        float | None, typer.Option(help="Of the staples: rho of stout (0.1), alpha of ape (0.5).")
    ] = None,
    steps: Annotated[int, typer.Option(min=0, help="Of stout or ape.")] = 1,
    time: Annotated[float, typer.Option(min=0, help="Of the flow.")] = 1.0,
    space_only: Annotated[
        bool, typer.Option("--space-only", help="Links and staples in space only.")
    ] = False,
    u0: Annotated[float, typer.Option(help="Tadpole factor of asqtad.")] = 1.0,
    naik_epsilon: Annotated[float, typer.Option(help="Naik's epsilon of hisq.")] = 0.0,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write the smooth field.")
    ] = None,
    fat: Annotated[str | None, typer.Option(metavar="FILE", help="Where to write fat links.")] = None,
    long: Annotated[str | None, typer.Option(metavar="FILE", help="Where to write long links.")] = None,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Smear a gauge field: to a smoother one (stout, ape, flow), or to fat and long links (hisq, asqtad, fat7 ...).

    Fat and long links have no phases in them; `onehop lattice solve` makes them by itself for its actions.
    """
    makes_fat = kind in smearing.FAT_LINKS
    if not makes_fat and kind not in SMOOTH:
        raise BadInput(f"expected --kind of {', '.join((*SMOOTH, *smearing.FAT_LINKS))}, found {kind!r}")
    if makes_fat and output is not None:
        raise BadInput(
            f"{kind} makes fat and long links: expected --fat and --long for its files, found --output"
        )
    if not makes_fat and (fat is not None or long is not None):
        raise BadInput(
            f"{kind} makes one smooth field: expected --output for its file, found --fat or --long"
        )
    ensure_ranks(ranks)
    gauge, found = read_gauge(file, Group.world(), numbers(grid, "--grid"), tolerance=tolerance)
    report: dict[str, object] = {"file": file, "kind": kind, "extent": list(found.extents)}
    how = {"file_format": format_name, "precision": precision, "overwrite": overwrite}
    if makes_fat:
        report |= _write_fat_links(gauge, kind, u0, naik_epsilon, (fat, long), **how)
    else:
        _smooth(
            gauge,
            kind,
            (0.5 if kind == "ape" else 0.1) if weight is None else weight,
            steps,
            time,
            space_only,
        )
        plaquettes = gauge.plaquettes()
        report |= {
            "plaquette_before": found.plaquettes.all,
            "plaquette": plaquettes.all,
            "plaquette_space": plaquettes.space,
            "plaquette_time": plaquettes.time,
            "link_trace": gauge.link_trace(),
            "charge": field_strength(gauge).charge,
        }
        if output is not None:
            write_gauge(output, gauge, format_name, precision=precision, overwrite=overwrite)
    if own_rank() != 0:
        return
    screen = console(json_target)
    for name, value in report.items():
        if isinstance(value, float):
            screen.print(f"{name.replace('_', ' ')}: {value:.9g}", markup=False)
    for written in (output, fat, long):
        if written is not None:
            screen.print(f"written to {written}", markup=False)
    write_json(json_target, report)
