"""`onehop quantum hamlib`: write and list files of Hamiltonians."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, console, write_json
from onehop.cli.quantum.circuit import parse_extents
from onehop.error import BadInput
from onehop.quantum.io.hamlib import hamlib_names, read_hamlibs, write_tfim_file
from onehop.text import counted

files = typer.Typer(no_args_is_help=True, help="Write and list HamLib files of Hamiltonians (HDF5).")


@files.command()
def tfim(
    lattices: Annotated[
        list[str],
        typer.Argument(
            metavar="LATTICE...",
            help="Sizes: 12 for a chain, 3x4 for a square lattice, 3x4t for a triangular lattice.",
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="HDF5 file to write.")
    ] = "tfim.hdf5",
    fields: Annotated[str, typer.Option(help="Strengths of the field, separated by commas.")] = "0.1,0.5,1,2",
    json_target: JsonOption = None,
) -> None:
    """Write Ising models in a transverse field, each with open and with periodic boundaries."""
    wanted = [
        (parse_extents(one.removesuffix("t")), "triangular" if one.endswith("t") else "grid")
        for one in lattices
    ]
    try:
        strengths = [float(one) for one in fields.split(",")]
    except ValueError:
        raise BadInput(
            f"expected --fields as numbers with commas, for example 0.5,1,2, found {fields!r}"
        ) from None
    names = write_tfim_file(output, wanted, fields=strengths)
    console(json_target).print(f"{output}: {len(names)} Hamiltonians", markup=False)
    write_json(json_target, {"file": output, "hamiltonians": names})


@files.command("list")
def list_names(
    file: Annotated[str, typer.Argument(metavar="FILE", help="HamLib file (HDF5).")],
    json_target: JsonOption = None,
) -> None:
    """List the Hamiltonians in a file with their numbers of qubits and terms."""
    names = hamlib_names(file)
    rows = [
        {"name": name, "qubits": qubits, "terms": len(model)}
        for name, (model, qubits) in zip(names, read_hamlibs(file, names), strict=True)
    ]
    screen = console(json_target)
    for row in rows:
        screen.print(
            f"{row['name']}: {counted(row['qubits'], 'qubit')}, {counted(row['terms'], 'term')}", markup=False
        )
    write_json(json_target, {"hamiltonians": rows})


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(files, name="hamlib")
