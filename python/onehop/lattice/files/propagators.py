"""Sources and propagators of quarks in SciDAC files, as Chroma and MILC write and read them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import complex_array
from onehop.error import BadInput
from onehop.group import Group, require_same, together
from onehop.lattice.conventions import Convention, convention
from onehop.lattice.files import lime
from onehop.lattice.files.blocks import first_bytes
from onehop.lattice.files.layout import VectorLayout
from onehop.lattice.files.lime_headers import tag, text_of
from onehop.lattice.files.openqcd_spinors import read_spinor, write_spinor
from onehop.lattice.files.scidac import SITES, field_layout, field_record, messages, read_fields, write_fields
from onehop.lattice.geometry import Geometry
from onehop.options import Options

if TYPE_CHECKING:
    from onehop._keywords import ColumnsKeywords, PropagatorKeywords, Unpack, WritePropagatorKeywords

Columns = NDArray[np.complex128]
Records = dict[str, lime.Record]


@dataclass(frozen=True)
class Quark:
    """The kind of quark, and what files say about it.

    Attributes
    ----------
    convention : Convention
        The convention of the numbers in the file.
    wilson : bool
        Whether it is a Wilson quark with four spins, rather than a staggered one.
    kappa, antiperiodic
        Hopping parameter (Wilson only) and boundary in time, if they are known.
    """

    convention: Convention
    wilson: bool
    kappa: float | None = None
    antiperiodic: bool | None = None

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of the numbers of a site of one column."""
        return (4, 3) if self.wilson else (3,)

    @property
    def columns(self) -> int:
        """The number of columns of a propagator."""
        return math.prod(self.inner)

    @property
    def is_openqcd(self) -> bool:
        """Whether openQCD's own files have such spinors."""
        return self.wilson and self.convention.name == "openqcd"

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of fields of a column and of a propagator in one record."""
        return ("DiracFermion", "DiracPropagator") if self.wilson else ("ColorVector", "ColorMatrix")

    def tags(self) -> str:
        """Return the XML elements that say what this is."""
        found = {"convention": self.convention.name}
        if self.wilson:
            found["spin_basis"] = self.convention.spin_basis
        if self.kappa is not None:
            found["Kappa"] = f"{self.kappa:.15g}"
        if self.antiperiodic is not None:
            found["boundary"] = f"1 1 1 {-1 if self.antiperiodic else 1}"
        return "".join(f"<{name}>{text}</{name}>" for name, text in found.items())

    def check(self, path: str, text: str) -> None:
        """Raise BadInput if the XML of a file contradicts this."""
        marks = {"<ForwardProp>": "chroma", "<PropSource>": "chroma", "MILC-convention": "milc"}
        of_marks = next((name for mark, name in marks.items() if mark in text), None)
        in_time = re.search(r"boundary_conditions [^\n]{0,99}time: (anti)?periodic", text)  # MILC's line
        sign = [] if in_time is None else ["-1" if in_time[1] else "1"]
        told = {
            "convention": tag(text, "convention") or of_marks,
            "spin basis": tag(text, "spin_basis") if self.wilson else None,
            "boundary": (tag(text, "boundary") or "").split()[-1:] or sign,
            "kappa": tag(text, "Kappa") if self.wilson else None,
        }
        known = {"convention": self.convention.name, "spin basis": self.convention.spin_basis}
        for name, wanted in known.items():
            if told[name] not in (None, wanted):
                raise BadInput(
                    f"{path}: expected numbers in the {name} {wanted}, found {told[name]!r:.40} in its header; take "
                    f"that one (--{name.replace(' ', '-')}, {name.replace(' ', '_')})"
                )
        if self.kappa is not None and told["kappa"] is not None:
            found = float(str(told["kappa"]))
            if not abs(found - self.kappa) <= 1e-6 * self.kappa:
                raise BadInput(f"{path}: expected kappa {self.kappa:.9g}, found {found:.9g} in its header")
        if self.antiperiodic is not None and told["boundary"]:
            wanted = "-1" if self.antiperiodic else "1"
            if told["boundary"] != [wanted]:
                raise BadInput(
                    f"{path}: expected the boundary {wanted} in time, found {told['boundary'][0]!r:.40} in its header; "
                    "take the other boundary (--boundary, antiperiodic)"
                )


@dataclass(kw_only=True)
class ColumnsOptions(Options):
    """The options of `write_columns`, which documents them."""

    of_point: bool = False
    precision: int = 64
    note: str = ""
    overwrite: bool = False


@dataclass(kw_only=True)
class PropagatorOptions(Options):
    """The options of `read_propagator`, which documents them."""

    kappa: float | None = None
    convention: str = "onehop"
    spin_basis: str | None = None
    antiperiodic: bool | None = None

    def quark(self) -> Quark:
        """Return the kind of quark. Raises BadInput for an unknown convention."""
        chosen = convention(self.convention, self.spin_basis)
        return Quark(chosen, self.kappa is not None, self.kappa, self.antiperiodic)


@dataclass(kw_only=True)
class WritePropagatorOptions(PropagatorOptions):
    """The options of `write_propagator`, which documents them."""

    precision: int = 64
    note: str = ""
    overwrite: bool = False


def _numbers_of_a_site(about: str) -> int:
    """Return how many complex numbers one object of a record has, by its header."""
    words = {"F": 8, "D": 16}.get(tag(about, "precision") or "", 8)
    size = tag(about, "typesize") or ""
    return int(size) // words if size.isdecimal() and len(size) < 10 else 0


def _place(path: str, about: str, quark: Quark) -> int | None:
    """Return the number of the column that a record says that it is, or None."""
    if "<usqcdPropInfo" not in about and "<usqcdKSPropInfo" not in about:
        return None
    spin, colour = (tag(about, name) or "0" for name in ("spin", "color"))
    if spin not in list("0123")[: quark.columns // 3] or colour not in list("012"):
        raise BadInput(
            f"{path}: expected the spin and colour of a source, found {spin!r:.40} and {colour!r:.40}"
        )
    return 3 * int(spin) + int(colour)


def _headers(path: str, geometry: Geometry, quark: Quark) -> tuple[list[VectorLayout], list[int]]:
    """Read the headers of all columns, and return their layouts and the numbers of the columns."""
    try:
        fields = messages(path)
        texts = [text_of(path, one.get("scidac-record-xml")) for one in fields]
        chosen = [
            (one, text) for one, text in zip(fields, texts, strict=True) if "<usqcdSourceInfo" not in text
        ]
        if not chosen:
            raise BadInput(
                f"{path}: expected solutions or sources with all numbers, found only scalar sources"
            )
        for text in (text_of(path, fields[0].get("scidac-file-xml")), *(text for _, text in chosen)):
            quark.check(path, text)
        column, whole = quark.kinds
        layouts = []
        for one, _ in chosen:
            is_whole = _numbers_of_a_site(text_of(path, one.get("scidac-private-record-xml"))) == math.prod(
                SITES[whole][0]
            )
            layouts.append(field_layout(path, one, geometry, whole if is_whole else column))
        places = [_place(path, text, quark) for _, text in chosen]
    except BadInput:  # BadInput is a ValueError
        raise
    except ValueError as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    known = [place for place in places if place is not None]
    if known and sorted(known) != list(range(quark.columns)):
        raise BadInput(
            f"{path}: expected each spin and colour of {quark.columns} sources once, found the columns {known}"
        )
    return layouts, known or list(range(len(layouts)))


def read_columns(path: str, geometry: Geometry, group: Group, quark: Quark) -> Columns:
    """Read the columns of a propagator, or sources, as they are in a file. Collective.

    Returns an array of shape (columns, t, z, y, x, spin, colour), for staggered quarks without spin. Raises BadInput if
    the file contradicts `quark`, and for damage as `read_vectors`.
    """
    require_same(group, "read_columns", path=str(path))
    if quark.is_openqcd and not lime.is_lime(first_bytes(str(path))):
        return read_spinor(str(path), geometry, group)
    with together(group, f"cannot read {path}"):
        layouts, places = _headers(str(path), geometry, quark)
    parts = read_fields(layouts, geometry, group)
    for number, (layout, part) in enumerate(zip(layouts, parts, strict=True)):
        if len(layout.inner) == 4:  # spin, spin of the source, colour, colour of the source
            turned = np.moveaxis(part, (-3, -1), (1, 2))
            parts[number] = turned.reshape(-1, *turned.shape[3:])
        elif layout.inner == (3, 3):
            turned = np.moveaxis(part, -1, 1)
            parts[number] = turned.reshape(-1, *turned.shape[2:])
    columns = np.concatenate(parts)
    return columns[np.argsort(places)] if len(columns) == len(places) else columns


def write_columns(
    path: str,
    columns: Columns,
    geometry: Geometry,
    group: Group,
    quark: Quark,
    **keywords: Unpack[ColumnsKeywords],
) -> None:
    """Write columns, of shape (columns, t, z, y, x, *quark.inner), as they are. Collective; rank 0 writes.

    All columns of a propagator become one record in Chroma's convention; those of a point source at the origin
    (`of_point`) become a USQCD propagator in MILC's. Else each column is a record. A name that ends in .sfld makes the
    only column of Wilson quarks in openQCD's convention a file of openQCD.
    """
    options = ColumnsOptions.of("write_columns", keywords)
    precision = options.precision
    mine = complex_array(columns, "columns")
    if mine.shape[1:] != (*geometry.block_shape, *quark.inner):
        raise BadInput(
            f"expected columns of shape (columns, {', '.join(map(str, (*geometry.block_shape, *quark.inner)))}), found "
            f"{mine.shape}"
        )
    if str(path).endswith(".sfld"):
        if not quark.is_openqcd or len(mine) != 1:
            raise BadInput(
                f"{path}: expected one field of Wilson quarks in the convention openqcd for .sfld, found {len(mine)} "
                f"in the convention {quark.convention.name}; take .lime"
            )
        write_spinor(path, mine, geometry, group, options.overwrite)
        return
    column, whole = quark.kinds
    is_complete, name = len(mine) == quark.columns, quark.convention.name
    note, tags = f"<note>{escape(options.note, quote=False)}</note>", quark.tags()

    def in_one(fields: Columns) -> list[list[tuple[str, bytes]]]:
        if quark.wilson:
            parts = fields.reshape(4, 3, *fields.shape[1:])
            field = np.moveaxis(parts, (0, 1), (-3, -1))
        else:
            field = np.moveaxis(fields, 0, -1)
        return [field_record(field, whole, precision, f"<Propagator>{tags}{note}</Propagator>")]

    def usqcd(fields: Columns) -> list[list[tuple[str, bytes]]]:
        source = np.zeros(fields.shape[1:5], np.complex128)
        source[0, 0, 0, 0] = 1
        about = (
            "<usqcdSourceInfo><version>1.0</version><info>point source at the origin</info></usqcdSourceInfo>"
        )
        found = [field_record(source, "Complex", precision, about)]
        root = "usqcdPropInfo" if quark.wilson else "usqcdKSPropInfo"
        for number, one in enumerate(fields):
            spin = f"<spin>{number // 3}</spin>" if quark.wilson else ""
            about = f"<version>1.0</version>{spin}<color>{number % 3}</color><info>{note}</info>"
            found.append(field_record(one, column, precision, f"<{root}>{about}</{root}>"))
        return found

    def each(fields: Columns) -> list[list[tuple[str, bytes]]]:
        return [field_record(one, column, precision, f"<onehop>{tags}{note}</onehop>") for one in fields]

    about, make = "", each
    if is_complete and name == "chroma":
        make = in_one
    elif is_complete and options.of_point and name == "milc":
        root = "usqcdPropFile" if quark.wilson else "usqcdKSPropFile"
        kind = "DiracFermion_ScalarSource_Twelve" if quark.wilson else "ColorVector_ScalarSource_Three"
        about = f"<version>1.0</version><type>USQCD_{kind}Sink</type><info>{tags}</info>"
        about, make = f"<{root}>{about}</{root}>", usqcd
    how: Any = {"precision": precision, "about": about, "overwrite": options.overwrite}
    write_fields(path, mine, geometry, group, make, **how)


def read_propagator(
    path: str,
    geometry: Geometry,
    group: Group,
    **keywords: Unpack[PropagatorKeywords],
) -> Columns:
    """Read a propagator and convert it to onehop's convention. Collective: every rank reads its block.

    Parameters
    ----------
    path : str
        A SciDAC file of Chroma, MILC or onehop, that every rank can read.
    geometry : Geometry
        The expected lattice and its decomposition.
    group : Group
        The ranks.

    Other Parameters
    ----------------
    kappa : float, optional
        Hopping parameter of Wilson quarks; None reads a staggered propagator.
    convention, spin_basis : str
        The convention of the numbers in the file, and its spin basis (default: that of the convention).
    antiperiodic : bool, optional
        The expected boundary in time; None accepts any.

    Returns
    -------
    array
        The columns, of shape (12, t, z, y, x, spin, colour) with column 3 spin + colour of the source, or of shape
        (3, t, z, y, x, colour) for staggered quarks with the default phases.

    Raises
    ------
    BadInput
        The file contradicts the convention, kappa or boundary; it is no propagator on this lattice, cut off or altered.
    Error
        A machine has too little memory left.
    """
    quark = PropagatorOptions.of("read_propagator", keywords).quark()
    columns = read_columns(path, geometry, group, quark)
    if len(columns) != quark.columns:
        raise BadInput(f"{path}: expected the {quark.columns} columns of a propagator, found {len(columns)}")
    if quark.kappa is not None:
        return quark.convention.propagator_of_onehop(columns, quark.kappa)
    signs = quark.convention.staggered_signs(geometry, group.rank)[..., None]
    return columns * signs / quark.convention.staggered_propagator_factor


def write_propagator(
    path: str,
    columns: Columns,
    geometry: Geometry,
    group: Group,
    **keywords: Unpack[WritePropagatorKeywords],
) -> None:
    """Write the propagator of a point source at the origin in a convention, as a SciDAC file. Collective.

    In Chroma's convention the file has one record, in MILC's it is a USQCD propagator with a scalar source; in the
    others each column is a record. The parameters are those of `read_propagator`; `columns` is what it returns. The
    file says which convention, kappa and boundary it has. `precision` is 32 or 64, `note` a text to store.

    Raises
    ------
    BadInput
        The columns have another shape or are not finite, the precision is neither 32 nor 64, or the file exists or
        cannot be written.
    """
    options = WritePropagatorOptions.of("write_propagator", keywords)
    quark = options.quark()
    if np.shape(columns)[:1] != (quark.columns,):
        raise BadInput(f"expected the {quark.columns} columns of a propagator, found {np.shape(columns)}")
    if quark.kappa is not None:
        theirs = quark.convention.propagator(columns, quark.kappa)
    else:
        signs = quark.convention.staggered_signs(geometry, group.rank)[..., None]
        theirs = columns * signs * quark.convention.staggered_propagator_factor
    how: Any = {name: getattr(options, name) for name in ("precision", "note", "overwrite")}
    write_columns(path, theirs, geometry, group, quark, of_point=True, **how)
