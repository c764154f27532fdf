"""`onehop lattice info`: how a lattice is cut, and what its faces look like in memory, before anything runs."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from onehop.cli.common import JsonOption, console, own_rank, write_json
from onehop.cli.lattice.common import ExtentOption, GridOption, numbers, refuse_without_effect
from onehop.error import BadInput
from onehop.lattice import Geometry
from onehop.schedule import count
from onehop.text import counted

LARGEST_PICTURE = 32  # sites in a row


def _faces(geometry: Geometry, site_bytes: int) -> list[dict[str, Any]]:
    """Of every face that travels: all colours together, on one rank."""
    faces = []
    for direction, cuts in enumerate(geometry.grid):
        for side in ("below", "above"):
            found = [geometry.face(direction, side, colour) for colour in range(geometry.colours)]
            if cuts == 1:
                continue
            faces.append(
                {
                    "direction": direction,
                    "side": side,
                    "bytes": sum(one.elements for one in found) * geometry.lanes * site_bytes,
                    "pieces": sum(one.pieces for one in found),
                    "lexicographic_pieces": sum(
                        geometry.lexicographic_pieces(direction, side, colour)
                        for colour in range(geometry.colours)
                    ),
                }
            )
    return faces


def _report(geometry: Geometry, site_bytes: int) -> dict[str, Any]:
    counted = count(geometry.halo("uint8", site_bytes))
    ranges = [geometry.colour_range(colour) for colour in range(geometry.colours)]
    return {
        "extent": list(geometry.extents),
        "grid": list(geometry.grid),
        "block": list(geometry.block),
        "lanes": geometry.lanes,
        "lane_grid": list(geometry.lane_grid),
        "colours": geometry.colours,
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

    screen.print(
        f"lattice {times(report['extent'])} on {times(report['grid'])} ranks: blocks of {times(report['block'])}, "
        f"{counted(report['lanes'], 'lane')} ({times(report['lane_grid'])}), {counted(report['colours'], 'colour')}\n"
        f"a rank has {report['sites']} sites, {report['interior_sites']} of them need no other rank, "
        f"and keeps {report['ghost_sites']} of others",
        soft_wrap=True,
    )
    if not report["faces"]:
        screen.print("nothing is cut: no faces travel")
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


def _picture(geometry: Geometry) -> str:
    """Two dimensions: where each site of a block lies in memory, x to the right, y upwards; faces are marked."""
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
        int, typer.Option("-n", "--ranks", metavar="RANKS", min=1, help="Without --grid: so many ranks.")
    ] = 1,
    lanes: Annotated[int, typer.Option(min=1, help="Sites in a vector; fewer where so many do not fit.")] = 1,
    width: Annotated[int, typer.Option(min=1, max=3, help="How far a site's neighbours are.")] = 1,
    colours: Annotated[int, typer.Option(min=1, max=2, help="2: even and odd sites lie apart.")] = 2,
    site_bytes: Annotated[
        int, typer.Option(min=1, help="Of a field: 48 is a colour vector in double precision.")
    ] = 48,
    json_target: JsonOption = None,
) -> None:
    """Show how a lattice is cut and ordered: the bytes and contiguous pieces of every face, before anything runs.

    In two dimensions also a picture of where the sites of a rank lie; those in brackets are in a face.
    """
    extents, chosen = numbers(extent, "--extent"), numbers(grid, "--grid")
    assert extents is not None
    if chosen is not None:
        refuse_without_effect(
            ("--ranks",), "is for a lattice without --grid, which says how many ranks there are"
        )
    if chosen is not None and len(chosen) != len(extents):
        raise BadInput(f"expected --grid with a number for each of {len(extents)} directions, found {grid!r}")
    cut = Geometry(extents, chosen, ranks=ranks, width=width, colours=colours).grid
    most = Geometry.most_lanes(extents, cut, lanes, width=width, colours=colours)
    geometry = Geometry(extents, cut, lanes=most, width=width, colours=colours)
    report = _report(geometry, site_bytes)
    if own_rank() != 0:
        return
    screen = console(json_target)
    _show(screen, report)
    if len(extents) == 2 and max(geometry.block) <= LARGEST_PICTURE:
        screen.print(_picture(geometry), markup=False)
    write_json(json_target, report)
