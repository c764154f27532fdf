"""Read gauge fields: each rank reads its block, and all checksums and averages in the file are verified."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, require_same, together
from onehop.input_file import require_memory as require_memory_alone
from onehop.lattice.files import lime
from onehop.lattice.files.blocks import check_regular, open_file
from onehop.lattice.files.headers import read_header
from onehop.lattice.files.layout import HeaderAverage, Layout, read_numbers, site_of
from onehop.lattice.gauge import Gauge, LinkDeviation, Plaquettes
from onehop.lattice.geometry import Geometry, require_memory
from onehop.text import counted

# Links that deviate more were not only rounded.
_MOST_ROUNDING = 0.1
OPEN = (
    "the links in time from the last time are 0: the field has open boundaries in time, which only `measure`, without "
    "--flow and --quarks, `convert`, `check`, and `solve` with --action staggered or wilson accept (accept_open)"
)


@dataclass(frozen=True)
class GaugeFile:
    """The contents of a gauge file that was read and verified.

    Attributes
    ----------
    format : str
        "milc", "milc-v1" (versions 1 to 4), "nersc", "ildg", "scidac", "openqcd" or "raw".
    extents : tuple of int
        Extents of the lattice, x first.
    precision : int
        Bits per number.
    checksums : dict
        The checksums of the format by name, computed from the links. They are those of the file only if their names are
        in `verified`.
    verified : tuple of str
        What the file has in its header and agrees with its links: names of checksums and averages. Other numbers here
        are only computed.
    link_trace : float
        The average of Re tr / 3 over all links.
    sha256 : str
        `Gauge.sha256` of the links.
    boundary : str
        "periodic", or "open" for open boundaries in time: the links in time from the last time are 0, and averages are
        those over the plaquettes and links that there are.
    accepted : tuple of str
        Wrong checksums that were accepted, now or when the links were first read.
    """

    path: str
    format: str
    extents: tuple[int, ...]
    precision: int
    checksums: dict[str, int]
    verified: tuple[str, ...]
    plaquettes: Plaquettes
    link_trace: float
    sha256: str
    boundary: str = "periodic"
    accepted: tuple[str, ...] = ()

    @property
    def has_checksum(self) -> bool:
        """Whether the file has a checksum. Without one, damage to its links can go unnoticed."""
        return any(name in self.checksums for name in self.verified)


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


def _zero_links(links: NDArray[np.complex128], sites: NDArray[np.int64], layout: Layout, group: Group) -> str:
    """Describe the links that are 0, at a boundary or where the file is damaged; empty without any. Collective."""
    zero = ~links.reshape(len(sites), 4, 9).any(axis=2)
    time = layout.extents[3]
    last = sites >= np.prod(layout.extents[:3]) * (time - 1)
    place, which = np.nonzero(zero)
    first = [int(sites[place].min()), int(which[np.argmin(sites[place])])] if len(place) else None
    mine = [int(zero.sum()), int(zero[last, 3].sum()), first]
    parts = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    total, at_end = (sum(part[i] for part in parts) for i in (0, 1))
    if total == 0:
        return ""
    if total == at_end == np.prod(layout.extents[:3]):
        return OPEN
    number, direction = min(part[2] for part in parts if part[2] is not None)
    return (
        f"{counted(total, 'link')} of {4 * int(np.prod(layout.extents))} {'is' if total == 1 else 'are'} 0, the "
        f"first at (x, y, z, t) = {site_of(number, layout.extents)} in direction {'xyzt'[direction]}; the file is "
        "not complete, or the field has boundaries, and onehop's lattices are periodic"
    )


def _refuse_links(path: str, worst: LinkDeviation, zero: str) -> NoReturn:
    value, site, direction = worst
    if zero:
        raise BadInput(f"{path}: expected links in SU(3), but {zero}")
    raise BadInput(
        f"{path}: expected links in SU(3), found one that deviates by {value:.2e}, at (x, y, z, t) = {site} "
        f"in direction {'xyzt'[direction]}; "
        + (
            "to use the file, read it with a larger tolerance and reunitarise"
            if value < _MOST_ROUNDING
            else "that is more than rounding: the file was altered, or holds smeared or fat links"
        )
    )


def _bytes_to_read(layout: Layout, grid: Sequence[int], ranks: int) -> float:
    return Gauge.bytes_on_a_rank(layout.extents, list(grid), ranks) + layout.read_bytes(ranks)


def require_memory_side_by_side(
    group: Group, paths: Sequence[str], each: int, extents: tuple[int, ...] | None = None
) -> None:
    """Raise Error if the ranks, `each` of which read one file together, have too little memory together. Collective.

    `read_gauge` in a part of the group does not count the other parts. Files that cannot be read are left out.
    """
    needed = 0.0
    for path in paths if each < group.size else ():
        with contextlib.suppress(BadInput):
            layout = read_header(path, extents)
            grid = Geometry.best_grid(layout.extents, each)
            needed = max(needed, _bytes_to_read(layout, grid, each))
    what = f"reading {group.size // each} files at the same time"
    _core.require_memory(group, int(min(needed, 2.0**62)), what, "take fewer ranks, or more machines")


def read_gauge(
    path: str,
    group: Group | None = None,
    grid: Sequence[int] | None = None,
    *,
    tolerance: float = 1e-4,
    width: int = 1,
    extents: tuple[int, ...] | None = None,
    accept_checksum: bool = False,
    accept_open: bool = False,
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
    extents : tuple of int, optional
        Extents, x first, of a file that does not give them: raw links, or ILDG without its record `ildg-format`.
    accept_checksum : bool
        Whether to read links whose checksum is wrong; `GaugeFile.accepted` tells of it.
    accept_open : bool
        Whether to read a field with open boundaries in time. Its links in time from the last time are 0.

    Returns
    -------
    Gauge, GaugeFile
        The field, and the contents of the file's header.

    Raises
    ------
    BadInput
        The file does not exist, is cut off, or has an unknown format; its header contradicts itself or the links; or a
        link is not finite or not in SU(3).
    Error
        A machine has too little memory left.
    """
    if not tolerance > 0:
        raise BadInput(f"expected a tolerance above 0, found {tolerance}")
    group = Group.alone() if group is None else group
    how = {"grid": grid, "tolerance": tolerance, "width": width, "extents": extents}
    require_same(group, "read_gauge", path=str(path), **how, accepts=[accept_checksum, accept_open])
    with together(group, f"cannot read {path}"):
        layout = read_header(str(path), extents)
    layout.accepts_checksum = accept_checksum
    try:
        if grid is None:
            grid = Geometry.best_grid(layout.extents, group.size, width)
        needed = _bytes_to_read(layout, grid, group.size)
        require_memory(group, layout.extents, needed, f"reading {path}, a gauge field")
        gauge = Gauge(group, layout.extents, grid)
    except BadInput as error:  # invalid extents, or a grid that does not fit them
        raise BadInput(f"{path}: {error}") from error
    links, sites, sums = read_numbers(layout, gauge.geometry, group)
    gauge.set_links(links)
    worst = gauge.deviation()
    zero = "" if worst.value <= min(tolerance, 0.5) else _zero_links(links, sites, layout, group)
    is_open = zero == OPEN and accept_open
    if is_open:
        worst, zero = worst._replace(value=_largest_deviation(links, group)), ""
    if not worst.value <= tolerance:
        _refuse_links(layout.path, worst, zero)
    del links
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    computed = {
        "plaquette": plaquettes.all,
        "spatial plaquette": plaquettes.space,
        "plaquette in time": plaquettes.time,
        "link trace": trace,
    }
    for average in layout.averages:
        _check_average(layout, average, computed[average.what])
    if is_open:
        plaquettes, trace = _averages_of_open(plaquettes, trace, layout.extents[3])
    right = [name for name, value in layout.checksums.items() if sums.get(name, value) == value]
    verified = dict.fromkeys([*right, *(average.what for average in layout.averages)])
    file = GaugeFile(
        str(path),
        layout.format,
        layout.extents,
        8 * layout.dtype.itemsize,
        sums,
        tuple(verified),
        plaquettes,
        trace,
        gauge.sha256(),
        "open" if is_open else "periodic",
        tuple(layout.accepted),
    )
    return gauge, file


def _largest_deviation(links: NDArray[np.complex128], group: Group) -> float:
    """Return the largest deviation from SU(3) of the links that are not 0. Collective."""
    flat = links.reshape(-1, 3, 3)
    flat = flat[flat.any(axis=(1, 2))]
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that no link has
        unit = np.abs(flat @ flat.conj().swapaxes(1, 2) - np.eye(3)).max(initial=0)
        mine = np.max([unit, np.abs(np.linalg.det(flat) - 1).max(initial=0)])
    return float(np.max([json.loads(part) for part in group.allgather(json.dumps(float(mine)).encode())]))


def _averages_of_open(raw: Plaquettes, trace: float, times: int) -> tuple[Plaquettes, float]:
    """Return the averages over the plaquettes and links of a field with open boundaries in time."""
    everything = raw.all * 2 * times / (2 * times - 1)
    return Plaquettes(everything, raw.space, raw.time * times / (times - 1)), trace * 4 * times / (
        4 * times - 1
    )


def read_note(path: str) -> str:
    """Return the note that `write_gauge` stored in an ILDG file; empty without a note, and for other formats."""
    check_regular(path)
    try:
        with open_file(path) as file:
            if not lime.is_lime(file.read(4)):
                return ""
            for record in lime.records(path):
                if record.name == "scidac-record-xml":
                    require_memory_alone(
                        6 * record.length, f"the note in {path}"
                    )  # decoded, cut out, unescaped
                    file.seek(record.offset)
                    text = file.read(record.length).decode("utf-8", "replace")
                    _, begin, rest = text.partition("<info>")
                    note, end, _ = rest.partition("</info>")
                    return unescape(note) if begin and end else ""
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    return ""
