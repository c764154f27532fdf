"""Reading a gauge field: each rank its block, checked against everything that the file says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import unescape

from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.files import lime
from onehop.lattice.files.headers import check_regular, read_header
from onehop.lattice.files.layout import Layout, Said, check_links_finite, check_sums, site_numbers
from onehop.lattice.gauge import Gauge, Plaquettes
from onehop.lattice.geometry import Geometry

__all__ = ["GaugeFile", "read_gauge", "read_note"]


@dataclass(frozen=True)
class GaugeFile:
    """What a file was found to hold.

    Attributes
    ----------
    format : str
        "milc", "nersc", "ildg", "scidac" or "openqcd".
    precision : int
        Bits of a number.
    checksums : dict
        Those of the format, made of the links that were read; equal to what the file says where it says them.
    plaquettes : Plaquettes
    link_trace : float
        The average of Re tr / 3 over all links.
    """

    path: str
    format: str
    extents: tuple[int, ...]
    precision: int
    checksums: dict[str, int]
    plaquettes: Plaquettes
    link_trace: float


def _check_average(layout: Layout, said: Said, found: float) -> None:
    tolerance = (1e-5 if layout.dtype.itemsize == 4 else 1e-7) * max(1.0, abs(found)) + said.rounding
    if any(abs(scale * found - said.value) <= scale * tolerance for scale in said.scales):
        return
    expected = " or ".join(f"{scale * found:.10g}" for scale in said.scales)
    raise BadInput(
        f"{layout.path}: its {layout.format} header says that the {said.what} is {said.value:.10g}, the links make "
        f"{expected}, which differs by more than {tolerance:.2g}; it was altered, or its links are of another "
        "order than its format's"
    )


def read_gauge(
    path: str,
    group: Group | None = None,
    grid: Sequence[int] | None = None,
    *,
    tolerance: float = 1e-4,
    width: int = 1,
) -> tuple[Gauge, GaugeFile]:
    """Read a gauge field, of whichever of the known formats it is. Collective: every rank reads its block.

    Parameters
    ----------
    path : str
        A file that every rank can read.
    group : Group, optional
        The ranks; by default this one alone.
    grid : sequence of int, optional
        Ranks per direction; by default what cuts shortest, with blocks of at least `width` sites.
    tolerance : float
        How far a link may be from SU(3), above 0; infinity: any links of finite numbers will do.
    width : int
        How far operators on this field reach: 3 for those with Naik's term.

    Raises
    ------
    BadInput
        No such file; an unknown format; a file that is cut off; checksums, plaquette or link trace that are
        not those of the links; a header that contradicts itself; a link that is not finite, or not SU(3).
    """
    if not tolerance > 0:
        raise BadInput(f"expected a tolerance above 0, found {tolerance}")
    group = Group.alone() if group is None else group
    layout = read_header(str(path))
    try:
        if grid is None:
            grid = Geometry(layout.extents, ranks=group.size, width=width, parities=1).grid
        gauge = Gauge(group, layout.extents, grid)
    except BadInput as error:  # a lattice that is none, or cannot be cut so
        raise BadInput(f"{path}: {error}") from error
    slices = gauge.geometry.block_slices(group.rank)
    raw = layout.raw_block(slices)
    sites = site_numbers(layout.extents, slices)
    found = check_sums(str(path), layout.format, layout.checksums, (raw, sites), group)
    links = layout.links(raw)
    check_links_finite(str(path), links, sites, layout.extents, group)
    gauge.set_links(links)
    value, site, direction = gauge.deviation()
    if not value <= tolerance:
        raise BadInput(
            f"{path}: expected links of SU(3), found one that differs by {value:.2e}, at (x, y, z, t) = {site} "
            f"in direction {'xyzt'[direction]}; read it with a larger tolerance and reunitarise, if that is meant"
        )
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    for said in layout.said:
        _check_average(layout, said, plaquettes.all if said.what == "plaquette" else trace)
    file = GaugeFile(
        str(path), layout.format, layout.extents, 8 * layout.dtype.itemsize, found, plaquettes, trace
    )
    return gauge, file


def read_note(path: str) -> str:
    """What `write_gauge` was given to be noted in an ILDG file; empty if nothing, or in files of another format.

    Raises
    ------
    BadInput
        The file cannot be read, or is a LIME file that is cut off.
    """
    check_regular(path)
    try:
        with Path(path).open("rb") as file:
            if not lime.is_lime(file.read(4)):
                return ""
            for record in lime.records(path):
                if record.name == "scidac-record-xml":
                    file.seek(record.offset)
                    text = file.read(record.length).decode("utf-8", "replace")
                    _, begin, rest = text.partition("<info>")
                    note, end, _ = rest.partition("</info>")
                    return unescape(note) if begin and end else ""
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    return ""
