"""`onehop lattice info`: the decomposition of a lattice and the memory layout of its halo, without a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import GridOptions, JsonOptions, console, own_rank, write_json
from onehop.cli.lattice.common import GAUGE_FILE, file_rows, report_of, say_about
from onehop.cli.lattice.solve_options import WILSON_ACTIONS
from onehop.cli.screen import Screen, Table
from onehop.error import BadInput
from onehop.lattice import Geometry, read_gauge
from onehop.lattice.files import read_note
from onehop.lattice.files.lime import records
from onehop.options import LARGEST_INT, Options, argument, fields_of, option
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
from onehop.text import bytes_text, count_text, counted, rate_text, seconds_text, shortened

LARGEST_PICTURE = 32  # sites in a row


@dataclass(kw_only=True)
class PredictionOptions(Options):
    """The solver whose iteration is predicted."""

    title = "Predicted iteration (only with --machine)"

    machine: str | None = option(
        None,
        "Predict the time of a solver iteration on this machine; `onehop machines` lists those installed.",
        metavar="NAME|FILE.toml",
    )
    action: str = option("hisq", "Quark action.", choices=tuple(ACTIONS))
    precision: str = option("double", "Precision of the iteration.", choices=tuple(PRECISIONS))
    recon: int = option(18, "Real numbers kept per link of Wilson quarks.", choices=(18, 12))
    sums: str = option(
        "direct",
        "Global sums: every rank sends to all others, as onehop does, or pairs of ranks exchange in log2(ranks) steps.",
        choices=tuple(SUMS),
    )


@dataclass(kw_only=True)
class Info(PredictionOptions, GridOptions, JsonOptions):
    file: str | None = argument("FILE", f"Show this file instead of a lattice. {GAUGE_FILE}", None)
    extent: tuple[int, ...] | None = option(
        None, "Number of sites in each direction (1 to 4 directions).", high=LARGEST_INT
    )
    accept_checksum: bool = option(False, "With FILE: show links whose checksum is wrong.")
    ranks: int = option(
        1,
        "Number of ranks (only without --grid).",
        *("-n", "--ranks"),
        metavar="RANKS",
        low=1,
        high=LARGEST_INT,
    )
    lanes: int = option(
        1,
        "Largest number of sites in a SIMD vector; fewer are used if they do not fit.",
        low=1,
        high=LARGEST_INT,
    )
    width: int = option(1, "Width of the halo in sites.", low=1, high=3)
    parities: int = option(
        2,
        "Number of parities: 2 stores even and odd sites apart, 1 stores all sites together.",
        low=1,
        high=2,
    )
    site_bytes: int = option(
        48,
        "Bytes per site of the field; 48 is a colour vector in double precision.",
        low=1,
        high=LARGEST_INT,
    )
    local: bool = option(
        False,
        "--extent is the block of one rank. Without --grid, the ranks form a grid as even as possible.",
    )

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.file is not None:
            mine = ("file", "extent", "accept_checksum", "json")
            self.refuse([one.name for one in fields_of(Info) if one.name not in mine], "is not for a FILE")
            return
        self.refuse(("accept_checksum",), "needs FILE")
        if self.extent is None:
            raise BadInput("expected FILE or --extent, found neither; see `onehop lattice info --help`")
        if self.grid is not None:
            self.refuse(("ranks",), "is for a lattice without --grid, which determines the number of ranks")
            if len(self.grid) != len(self.extent):
                raise BadInput(
                    f"expected --grid with one number for each of {counted(len(self.extent), 'direction')}, found "
                    f"{'x'.join(map(str, self.grid))!r}"
                )
        if self.machine is None:
            self.refuse(("action", "precision", "recon", "sums"), "needs --machine")
            return
        self.refuse(("width", "site_bytes"), "follows from --action with --machine")
        if self.parities != 2:
            raise BadInput(f"expected --parities 2 with --machine, found {self.parities}")
        if self.action not in WILSON_ACTIONS:
            self.refuse(("recon",), f"is for --action {' and '.join(WILSON_ACTIONS)}, found {self.action!r}")


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


def _show(screen: Screen, report: dict[str, Any]) -> None:
    def times(values: list[int]) -> str:
        return "x".join(map(str, values))

    parities = "even and odd sites apart" if report["parities"] == 2 else "all sites together"
    screen.print(
        f"lattice {times(report['extent'])} on {times(report['grid'])} ranks: blocks of {times(report['block'])}, "
        f"{counted(report['lanes'], 'lane')} ({times(report['lane_grid'])}), {parities}\n"
        f"each rank has {counted(report['sites'], 'site', commas=True)}, "
        f"{count_text(report['interior_sites'])} of them in the interior, "
        f"and {count_text(report['ghost_sites'])} ghost sites",
    )
    if not report["faces"]:
        screen.print("one rank: no faces are exchanged")
        return
    title = f"Faces of a rank, {report['site_bytes']} B per site"
    table = Table("face", ">bytes", ">pieces", ">pieces, lexicographic", title=title)
    for face in report["faces"]:
        name = f"{'xyzt'[face['direction']]} {face['side']}"
        pieces = map(count_text, (face["pieces"], face["lexicographic_pieces"]))
        table.add_row(name, bytes_text(face["bytes"]), *pieces)
    screen.print(table)
    screen.print(
        f"{bytes_text(report['bytes_sent'])} in {counted(report['messages_sent'], 'message')} from each rank",
    )


def _show_prediction(screen: Screen, found: SolverPrediction) -> None:
    share = 100 / found.predicted_seconds
    title = (
        f"one iteration of {found.solver}, {found.action}, {found.precision} precision, on {found.machine}"
    )
    table = Table("", ">time", ">share", title=title)
    rows = {
        f"{counted(found.hopping_terms, 'hopping term')}, half of the sites each": found.hopping_seconds,
        "halos beyond the time of the interior": found.halo_seconds,
        "linear algebra": found.algebra_seconds,
        counted(found.sums, "global sum"): found.sum_seconds,
    }
    for name, seconds in rows.items():
        table.add_row(name, seconds_text(seconds), f"{seconds * share:.0f} %")
    table.add_section()
    table.add_row("predicted time", seconds_text(found.predicted_seconds), "")
    screen.print(table)
    levels = ", ".join(
        f"{bytes_text(moved)} over level {level}" for level, moved in found.bytes_by_level.items()
    )
    screen.print(
        f"bound: {found.bound}; {rate_text(found.gflops * 1e9, 'FLOP/s')} per rank; all ranks send {levels}",
    )
    if not found.counts_arithmetic:
        screen.print(
            f"a lower bound: the file of {found.machine} does not give the multiply-adds per second of a processor "
            "in this precision, so only memory and messages count",
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


def _show_file(options: Info, file: str) -> None:
    """Print the header, the checksums and the plaquette of a file."""
    _, found = read_gauge(
        file, extents=options.extent, accept_checksum=options.accept_checksum, accept_open=True
    )
    report = report_of(found)
    table = Table("", "", title=file, show_header=False)
    table.add_row("format", f"{found.format}, {found.precision} bits")
    table.add_row("extent", "x".join(map(str, found.extents)))
    table.add_row("boundary in time", found.boundary)
    if found.format in ("ildg", "scidac"):
        report["records"] = [record.name for record in records(file)]
        table.add_row("records", ", ".join(report["records"]))
    if note := read_note(file):
        report["note"] = note
        table.add_row("note", shortened(note, 160))
    for name, text in file_rows(found):
        table.add_row(name, text)
    console(options.json).print(table)
    say_about(found, options.json)
    write_json(options.json, report)


def info(options: Info) -> None:
    """Show a gauge file, or the decomposition of a lattice: the bytes and contiguous pieces of every face.

    With FILE: its header, checksums and plaquette; "verified" is what the file has and agrees with its links.

    Nothing is computed, and no rank is started. With --machine the command also predicts the time of a solver's
    iteration there. In two dimensions the command also draws where each site of a rank lies in memory; sites in
    brackets belong to a face.
    """
    options.check()
    if options.file is not None:
        _show_file(options, options.file)
        return
    extents, chosen = options.extent or (), options.grid
    width, site_bytes, parities = options.width, options.site_bytes, options.parities
    if options.machine is not None:
        width, site_bytes = halo_width(options.action), vector_bytes(options.action, options.precision)
    if options.local:
        chosen = chosen or balanced_grid(options.ranks, len(extents))
        extents = tuple(sites * cuts for sites, cuts in zip(extents, chosen, strict=True))
    cut = Geometry(extents, chosen, ranks=options.ranks, width=width, parities=parities).grid
    lanes = Geometry.max_lanes(extents, cut, options.lanes, width=width, parities=parities)
    geometry = Geometry(extents, cut, lanes=lanes, width=width, parities=parities)
    report = _report(geometry, site_bytes)
    found = None
    if options.machine is not None:
        found = predict_solver(
            extents,
            options.machine,
            grid=cut,
            action=options.action,
            precision=options.precision,
            recon=options.recon,
            sums=options.sums,
        )
        report |= found.to_dict()
    if own_rank() != 0:
        return
    screen = console(options.json)
    _show(screen, report)
    if len(extents) == 2 and max(geometry.block) <= LARGEST_PICTURE:
        screen.print(_picture(geometry))
    if found is not None:
        _show_prediction(screen, found)
    write_json(options.json, report)
