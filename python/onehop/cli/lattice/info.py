"""`onehop lattice info`: the decomposition of a lattice and the memory layout of its halo, without a run."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from onehop.cli.common import LARGEST_INT, JsonOption, console, own_rank, write_json
from onehop.cli.lattice.common import ExtentOption, GridOption, numbers, refuse_without_effect
from onehop.cli.lattice.solve_wilson import WILSON_ACTIONS
from onehop.error import BadInput
from onehop.lattice import Geometry
from onehop.predict.lattice import (
    ACTIONS,
    PRECISIONS,
    SUMS,
    SolverPrediction,
    balanced_grid,
    halo_width,
    predict_solver,
    vector_bytes,
)
from onehop.schedule import count
from onehop.text import bytes_text, counted

LARGEST_PICTURE = 32  # sites in a row
_ONLY_WITH_MACHINE = ("--action", "--precision", "--recon", "--sums")


def _faces(geometry: Geometry, site_bytes: int) -> list[dict[str, Any]]:
    """Describe every face that one rank sends, both parities together."""
    faces = []
    for direction, cuts in enumerate(geometry.grid):
        for side in ("below", "above"):
            found = [geometry.face(direction, side, parity) for parity in range(geometry.parities)]
            if cuts == 1:
                continue
            faces.append(
                {
                    "direction": direction,
                    "side": side,
                    "bytes": sum(one.elements for one in found) * geometry.lanes * site_bytes,
                    "pieces": sum(one.pieces for one in found),
                    "lexicographic_pieces": sum(
                        geometry.lexicographic_pieces(direction, side, parity)
                        for parity in range(geometry.parities)
                    ),
                }
            )
    return faces


def _report(geometry: Geometry, site_bytes: int) -> dict[str, Any]:
    counted = count(geometry.halo("uint8", site_bytes, only_rank=0))
    ranges = [geometry.parity_range(parity) for parity in range(geometry.parities)]
    return {
        "extent": list(geometry.extents),
        "grid": list(geometry.grid),
        "block": list(geometry.block),
        "lanes": geometry.lanes,
        "lane_grid": list(geometry.lane_grid),
        "parities": geometry.parities,
        "width": geometry.width,
        "sites": geometry.vectors * geometry.lanes,
        "interior_sites": sum(interior - begin for begin, interior, _ in ranges) * geometry.lanes,
        "ghost_sites": geometry.ghosts * geometry.lanes,
        "site_bytes": site_bytes,
        "bytes_sent": counted.ranks[0].bytes_sent,
        "messages_sent": counted.ranks[0].messages_sent,
        "faces": _faces(geometry, site_bytes),
    }


def _show(screen: Console, report: dict[str, Any]) -> None:
    def times(values: list[int]) -> str:
        return "x".join(map(str, values))

    parities = "even and odd sites apart" if report["parities"] == 2 else "all sites together"
    screen.print(
        f"lattice {times(report['extent'])} on {times(report['grid'])} ranks: blocks of {times(report['block'])}, "
        f"{counted(report['lanes'], 'lane')} ({times(report['lane_grid'])}), {parities}\n"
        f"each rank has {counted(report['sites'], 'site')}, {report['interior_sites']} of them in the interior, "
        f"and {report['ghost_sites']} ghost sites",
        soft_wrap=True,
    )
    if not report["faces"]:
        screen.print("one rank: no faces are exchanged")
        return
    table = Table(
        "face",
        "bytes",
        "pieces",
        "pieces, lexicographic",
        title=f"Faces of a rank, {report['site_bytes']} B a site",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for face in report["faces"]:
        name = f"{'xyzt'[face['direction']]} {face['side']}"
        table.add_row(name, str(face["bytes"]), str(face["pieces"]), str(face["lexicographic_pieces"]))
    screen.print(table)
    screen.print(
        f"{report['bytes_sent']} bytes in {counted(report['messages_sent'], 'message')} from each rank",
        soft_wrap=True,
    )


def _show_prediction(screen: Console, found: SolverPrediction) -> None:
    share = 100 / found.predicted_seconds
    table = Table(
        "",
        "µs",
        "share",
        title=f"one iteration of {found.solver}, {found.action}, {found.precision} precision, on {found.machine}",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    rows = {
        f"{counted(found.hopping_terms, 'hopping term')}, half of the sites each": found.hopping_seconds,
        "halos beyond the time of the interior": found.halo_seconds,
        "linear algebra": found.algebra_seconds,
        counted(found.sums, "global sum"): found.sum_seconds,
    }
    for name, seconds in rows.items():
        table.add_row(name, f"{seconds * 1e6:.4g}", f"{seconds * share:.0f} %")
    table.add_section()
    table.add_row("predicted time", f"{found.predicted_seconds * 1e6:.4g}", "")
    screen.print(table)
    levels = ", ".join(
        f"{bytes_text(moved)} over level {level}" for level, moved in found.bytes_by_level.items()
    )
    screen.print(
        f"bound: {found.bound}; {found.gflops:.4g} GFLOP/s a rank; all ranks send {levels}",
        markup=False,
        soft_wrap=True,
    )
    if not found.counts_arithmetic:
        screen.print(
            f"a lower bound: the file of {found.machine} does not give the multiply-adds per second of a processor "
            "in this precision, so only memory and messages count",
            soft_wrap=True,
        )


def _picture(geometry: Geometry) -> str:
    """Draw a two-dimensional block: the place of each site in memory, x to the right, y upwards; faces are marked."""
    columns, rows = geometry.block
    numbers_in_memory = np.arange(geometry.vectors * geometry.lanes).reshape(geometry.vectors, geometry.lanes)
    places = geometry.from_vectors(numbers_in_memory)
    width = len(str(int(places.max())))
    lines = []
    for y in reversed(range(rows)):
        cells = []
        for x in range(columns):
            edge = (geometry.grid[0] > 1 and (x < geometry.width or x >= columns - geometry.width)) or (
                geometry.grid[1] > 1 and (y < geometry.width or y >= rows - geometry.width)
            )
            number = f"{int(places[y, x]):{width}d}"
            cells.append(f"[{number}]" if edge else f" {number} ")
        lines.append("".join(cells))
    return "\n".join(lines)


def info(
    extent: ExtentOption,
    grid: GridOption = None,
    ranks: Annotated[
        int,
        typer.Option(
            "-n",
            "--ranks",
            metavar="RANKS",
            min=1,
            max=LARGEST_INT,
            help="Number of ranks (only without --grid).",
        ),
    ] = 1,
    lanes: Annotated[
        int,
        typer.Option(
            min=1,
            max=LARGEST_INT,
            help="Largest number of sites in a SIMD vector; fewer are used if they do not fit.",
        ),
    ] = 1,
    width: Annotated[int, typer.Option(min=1, max=3, help="Width of the halo in sites.")] = 1,
    parities: Annotated[
        int,
        typer.Option(
            min=1,
            max=2,
            help="Number of parities: 2 stores even and odd sites apart, 1 stores all sites together.",
        ),
    ] = 2,
    site_bytes: Annotated[
        int,
        typer.Option(
            min=1,
            max=LARGEST_INT,
            help="Bytes per site of the field; 48 is a colour vector in double precision.",
        ),
    ] = 48,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="--extent is the block of one rank. Without --grid, the ranks form a grid as even as possible.",
        ),
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Predict the time of a solver iteration on this machine; `onehop machines` lists those installed.",
        ),
    ] = None,
    action: Annotated[
        str, typer.Option(metavar="|".join(ACTIONS), help="Quark action (only with --machine).")
    ] = "hisq",
    precision: Annotated[
        str,
        typer.Option(metavar="|".join(PRECISIONS), help="Precision of the iteration (only with --machine)."),
    ] = "double",
    recon: Annotated[
        int,
        typer.Option(
            metavar="18|12", help="Real numbers kept per link of Wilson quarks (only with --machine)."
        ),
    ] = 18,
    sums: Annotated[
        str,
        typer.Option(
            metavar="|".join(SUMS),
            help="Global sums (only with --machine): every rank sends to all others, as onehop does, or pairs of ranks "
            "exchange in log2(ranks) steps.",
        ),
    ] = "direct",
    json_target: JsonOption = None,
) -> None:
    """Show the decomposition and the ordering of a lattice: the bytes and contiguous pieces of every face.

    Nothing is computed, and no rank is started. With --machine the command also predicts the time of a solver's
    iteration there. In two dimensions the command also draws where each site of a rank lies in memory; sites in
    brackets belong to a face.
    """
    extents, chosen = numbers(extent, "--extent"), numbers(grid, "--grid")
    assert extents is not None
    if chosen is not None:
        refuse_without_effect(
            ("--ranks",), "is for a lattice without --grid, which determines the number of ranks"
        )
    if chosen is not None and len(chosen) != len(extents):
        raise BadInput(
            f"expected --grid with one number for each of {counted(len(extents), 'direction')}, found {grid!r}"
        )
    if machine is None:
        refuse_without_effect(_ONLY_WITH_MACHINE, "needs --machine")
    else:
        refuse_without_effect(("--width", "--site-bytes"), "follows from --action with --machine")
        if parities != 2:
            raise BadInput(f"expected --parities 2 with --machine, found {parities}")
        width, site_bytes = halo_width(action), vector_bytes(action, precision)
        if action not in WILSON_ACTIONS:
            refuse_without_effect(
                ("--recon",), f"is for --action {' and '.join(WILSON_ACTIONS)}, found {action!r}"
            )
    if local:
        chosen = chosen or balanced_grid(ranks, len(extents))
        extents = tuple(sites * cuts for sites, cuts in zip(extents, chosen, strict=True))
    cut = Geometry(extents, chosen, ranks=ranks, width=width, parities=parities).grid
    lanes = Geometry.max_lanes(extents, cut, lanes, width=width, parities=parities)
    geometry = Geometry(extents, cut, lanes=lanes, width=width, parities=parities)
    report = _report(geometry, site_bytes)
    found = None
    if machine is not None:
        found = predict_solver(
            extents, machine, grid=cut, action=action, precision=precision, recon=recon, sums=sums
        )
        report |= found.to_dict()
    if own_rank() != 0:
        return
    screen = console(json_target)
    _show(screen, report)
    if len(extents) == 2 and max(geometry.block) <= LARGEST_PICTURE:
        screen.print(_picture(geometry), markup=False)
    if found is not None:
        _show_prediction(screen, found)
    write_json(json_target, report)
