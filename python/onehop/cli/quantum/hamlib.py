"""`onehop quantum hamlib`: write and list files of Hamiltonians."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.arguments import quoted
from onehop.cli.common import JsonOptions, console, write_json
from onehop.error import BadInput
from onehop.options import argument, option
from onehop.quantum.io.hamlib import hamlib_names, read_hamlibs, write_tfim_file
from onehop.text import counted


@dataclass(kw_only=True)
class Tfim(JsonOptions):
    lattices: list[str] = argument(
        "LATTICE...",
        "Sizes: 12 for a chain, 3x4 for a square lattice, 3x4t for a triangular lattice.",
    )
    output: str = option(
        "tfim.hdf5", "HDF5 file to write.", "-o", "--output", metavar="FILE", writes="the Hamiltonians"
    )
    fields: list[float] = option(
        [0.1, 0.5, 1.0, 2.0], "Strengths of the field.", metavar="A,B,...", separator=","
    )


@dataclass(kw_only=True)
class ListNames(JsonOptions):
    file: str = argument("FILE", "HamLib file (HDF5).")


def _lattice(text: str) -> tuple[tuple[int, ...], str]:
    """Parse a lattice, such as `20`, `4x5` or `3x4t`; return its extents and its kind."""
    parts = text.removesuffix("t").lower().split("x")
    if not all(part.isdecimal() and len(part) < 10 and int(part) > 0 for part in parts):
        raise BadInput(f"expected a lattice as 20 or 4x5, found {quoted(text)}")
    return tuple(map(int, parts)), "triangular" if text.endswith("t") else "grid"


def tfim(options: Tfim) -> None:
    """Write Ising models in a transverse field, each with open and with periodic boundaries."""
    wanted = [_lattice(text) for text in options.lattices]
    names = write_tfim_file(options.output, wanted, fields=options.fields)
    console(options.json).print(f"{options.output}: {len(names)} Hamiltonians")
    write_json(options.json, {"file": options.output, "hamiltonians": names})


def list_names(options: ListNames) -> None:
    """List the Hamiltonians in a file with their numbers of qubits and terms."""
    file = options.file
    names = hamlib_names(file)
    rows = [
        {"name": name, "qubits": qubits, "terms": len(model)}
        for name, (model, qubits) in zip(names, read_hamlibs(file, names), strict=True)
    ]
    screen = console(options.json)
    for row in rows:
        screen.print(f"{row['name']}: {counted(row['qubits'], 'qubit')}, {counted(row['terms'], 'term')}")
    write_json(options.json, {"hamiltonians": rows})
