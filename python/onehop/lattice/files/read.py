"""Read gauge fields: each rank reads its block, and all checksums and averages in the file are verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.files import lime
from onehop.lattice.files.headers import check_regular, read_header
from onehop.lattice.files.layout import HeaderAverage, Layout, check_links_finite, check_sums, site_numbers
from onehop.lattice.gauge import Gauge, Plaquettes
from onehop.lattice.geometry import Geometry

__all__ = ["GaugeFile", "read_gauge", "read_note"]


@dataclass(frozen=True)
class GaugeFile:
    """The contents of a gauge file that was read and verified.

    Attributes
    ----------
    path : str
        The file.
    format : str
        "milc", "nersc", "ildg", "scidac" or "openqcd".
    extents : tuple of int
        Extents of the lattice, x first.
    precision : int
        Bits per number.
    checksums : dict
        The checksums of the format by name, computed from the links.
    plaquettes : Plaquettes
        The average plaquettes.
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


def _check_average(layout: Layout, average: HeaderAverage, found: float) -> None:
    tolerance = (1e-5 if layout.dtype.itemsize == 4 else 1e-7) * max(1.0, abs(found)) + average.rounding
    if any(abs(scale * found - average.value) <= scale * tolerance for scale in average.scales):
        return
    computed = " or ".join(f"{scale * found:.10g}" for scale in average.scales)
    raise BadInput(
        f"{layout.path}: expected the {average.what} {average.value:.10g} of its {layout.format} header, found "
        f"{computed} from the links, which differs by more than {tolerance:.2g}; the file was altered, or its links "
        "are not in the order of its format"
    )


def read_gauge(
    path: str,
    group: Group | None = None,
    grid: Sequence[int] | None = None,
    *,
    tolerance: float = 1e-4,
    width: int = 1,
) -> tuple[Gauge, GaugeFile]:
    """Read a gauge field of any known format. Collective: every rank reads its block.

    Parameters
    ----------
    path : str
        A file that every rank can read.
    group : Group, optional
        The ranks. Default: this process alone.
    grid : sequence of int, optional
        Number of ranks in each direction. Default: the grid with the smallest surface whose blocks have at least
        `width` sites in each direction.
    tolerance : float
        Largest deviation of a link from SU(3), above 0. Infinity accepts all finite links.
    width : int
        Width of the halo of operators on this field: 3 for operators with long links.

    Returns
    -------
    Gauge, GaugeFile
        The field, and the contents of the file's header.

    Raises
    ------
    BadInput
        The file does not exist, is cut off, or has an unknown format; its header contradicts itself or the links; or a
        link is not finite or not in SU(3).
    """
    if not tolerance > 0:
        raise BadInput(f"expected a tolerance above 0, found {tolerance}")
    group = Group.alone() if group is None else group
    layout = read_header(str(path))
    try:
        if grid is None:
            grid = Geometry(layout.extents, ranks=group.size, width=width, parities=1).grid
        gauge = Gauge(group, layout.extents, grid)
    except BadInput as error:  # invalid extents, or a grid that does not fit them
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
            f"{path}: expected links in SU(3), found one that deviates by {value:.2e}, at (x, y, z, t) = {site} "
            f"in direction {'xyzt'[direction]}; to use the file, read it with a larger tolerance and reunitarise"
        )
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    for average in layout.averages:
        _check_average(layout, average, plaquettes.all if average.what == "plaquette" else trace)
    file = GaugeFile(
        str(path), layout.format, layout.extents, 8 * layout.dtype.itemsize, found, plaquettes, trace
    )
    return gauge, file


def read_note(path: str) -> str:
    """Return the note that `write_gauge` stored in an ILDG file; empty without a note, and for other formats.

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
