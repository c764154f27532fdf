"""`onehop lattice thermalize`: a gauge field of the Wilson action, by heat bath and over-relaxation."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from onehop.cli.common import LARGEST_SEED, JsonOption, RanksOption, console, own_rank, progress, write_json
from onehop.cli.lattice.common import ExtentOption, GridOption, numbers
from onehop.cli.lattice.convert import FormatOption, OverwriteOption, PrecisionOption
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, read_gauge, write_gauge
from onehop.lattice import thermalize as sweep
from onehop.launch import ensure_ranks


def thermalize(
    extent: ExtentOption | None = None,
    beta: Annotated[float, typer.Option(min=0, help="6 / g².")] = 6.0,
    sweeps: Annotated[int, typer.Option(min=0, help="Of the heat bath.")] = 100,
    over_relaxations: Annotated[int, typer.Option(min=0, help="After each of them.")] = 4,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="The same seed gives the same field on every grid.")
    ] = 1,
    start: Annotated[str, typer.Option(metavar="unit|random|FILE", help="Where to begin.")] = "unit",
    first: Annotated[
        int, typer.Option(min=0, help="The number of the first sweep, to go on after a FILE.")
    ] = 0,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write the field.")
    ] = None,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    json_target: JsonOption = None,
) -> None:
    """Generate a gauge field of the Wilson action by heat bath with over-relaxation, quenched.

    The same seed gives the same field, bit for bit, on every grid of ranks.
    """
    extents, cut = numbers(extent, "--extent"), numbers(grid, "--grid")
    from_file = start not in ("unit", "random")
    if (extents is None) != from_file:
        raise BadInput("expected --extent, or --start with a file, which has its own extents")
    ensure_ranks(ranks)
    group = Group.world()
    if from_file:
        gauge, _ = read_gauge(start, group, cut)
    else:
        assert extents is not None
        gauge = Gauge(group, extents, cut)
        if start == "random":
            gauge.set_random(seed)
    with progress("sweeps", total=sweeps) as advance:
        history = sweep(
            gauge,
            beta,
            sweeps,
            seed=seed,
            over_relaxations=over_relaxations,
            first=first,
            progress=lambda _sweep: advance(1),
        )
    if output is not None:
        write_gauge(output, gauge, format_name, precision=precision, overwrite=overwrite)
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    if own_rank() != 0:
        return
    later = history[len(history) // 2 :]
    report: dict[str, Any] = {
        "extent": list(gauge.geometry.extents),
        "grid": list(gauge.geometry.grid),
        "beta": beta,
        "seed": seed,
        "sweeps": sweeps,
        "history": history,
        "plaquette": plaquettes.all,
        "plaquette_space": plaquettes.space,
        "plaquette_time": plaquettes.time,
        "link_trace": trace,
        "mean_plaquette": float(np.mean(later)) if later else None,
    }
    screen = console(json_target)
    screen.print(f"{sweeps} sweeps at beta = {beta:g}: plaquette {plaquettes.all:.6f}", markup=False)
    if later:
        screen.print(f"mean of the second half: {np.mean(later):.6f}", markup=False)
    if output is not None:
        screen.print(f"written to {output}", markup=False)
    write_json(json_target, report)
