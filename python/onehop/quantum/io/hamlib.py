"""HamLib files: HDF5 files with one data set of text per Hamiltonian. Reading, and writing for spin models."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onehop.error import BadInput
from onehop.hdf5 import ask, require_h5py
from onehop.output import write_file
from onehop.quantum.graphs import lattice_bonds
from onehop.quantum.observables import PauliSum, PauliTerm

__all__ = [
    "hamlib_names",
    "heisenberg",
    "read_hamlib",
    "read_hamlibs",
    "tfim",
    "tfim_name",
    "write_tfim_file",
]

_WHAT = "Hamiltonians"
_AT_ONCE = 256  # Hamiltonians that one process reads


def tfim(
    extents: Sequence[int],
    *,
    lattice: str = "grid",
    periodic: bool = False,
    coupling: float = 1.0,
    field: float = 1.0,
) -> PauliSum:
    """Make the transverse-field Ising model: coupling * sum of Z Z over neighbours + field * sum of X.

    Parameters
    ----------
    extents, lattice, periodic
        As for `lattice_bonds`.
    coupling, field : float
        Strengths of the two terms.

    Raises
    ------
    BadInput
        There is no such lattice.
    """
    bonds = lattice_bonds(extents, lattice=lattice, periodic=periodic)
    return PauliSum(
        tuple(PauliTerm(complex(coupling), ((a, "Z"), (b, "Z"))) for a, b in bonds)
        + tuple(PauliTerm(complex(field), ((site, "X"),)) for site in range(math.prod(extents)))
    )


def heisenberg(
    extents: Sequence[int],
    *,
    lattice: str = "grid",
    periodic: bool = False,
    coupling: float = 1.0,
    field: float = 0.0,
) -> PauliSum:
    """Make the Heisenberg model: coupling * sum of X X + Y Y + Z Z over neighbours + field * sum of Z.

    Parameters and errors are those of `tfim`.
    """
    bonds = lattice_bonds(extents, lattice=lattice, periodic=periodic)
    return PauliSum(
        tuple(PauliTerm(complex(coupling), ((a, letter), (b, letter))) for a, b in bonds for letter in "XYZ")
        + tuple(PauliTerm(complex(field), ((site, "Z"),)) for site in range(math.prod(extents)) if field)
    )


def tfim_name(
    extents: Sequence[int], *, lattice: str = "grid", periodic: bool = True, field: float = 1.0
) -> str:
    """Return HamLib's name of a data set, such as `graph-1D-grid-pbc-qubitnodes_Lx-12_h-2`."""
    kind = "triag" if lattice == "triangular" else lattice
    ends = "pbc" if periodic else "nonpbc"
    lengths = "_".join(f"L{axis}-{extent}" for axis, extent in zip("xyz", extents, strict=False))
    return f"graph-{len(extents)}D-{kind}-{ends}-qubitnodes_{lengths}_h-{field:g}"


def write_tfim_file(
    file: str | Path,
    lattices: Iterable[tuple[Sequence[int], str]],
    *,
    fields: Sequence[float] = (0.1, 0.5, 1, 2),
) -> list[str]:
    """Write a HamLib file of transverse-field Ising models.

    Parameters
    ----------
    file : path
        HDF5 file to write. Its folder is created if necessary.
    lattices : iterable of (extents, lattice)
        Lattices as for `lattice_bonds`, each with open and with periodic boundaries.
    fields : sequence of float
        Strengths of the field, each for every lattice.

    Returns
    -------
    list of str
        Names of the data sets.

    Raises
    ------
    BadInput
        The file cannot be written, or h5py is missing.
    """
    require_h5py()
    import h5py

    names = []
    whole = io.BytesIO()
    with h5py.File(whole, "w") as stored:
        for extents, lattice in lattices:
            for periodic in (False, True):
                for field in fields:
                    name = tfim_name(extents, lattice=lattice, periodic=periodic, field=field)
                    model = tfim(extents, lattice=lattice, periodic=periodic, field=field)
                    data = stored.create_dataset(name, data=to_hamlib_text(model))
                    data.attrs["nqubits"] = math.prod(extents)
                    names.append(name)
    write_file(file, whole.getvalue(), "the Hamiltonians", make_parents=True)
    return names


def to_hamlib_text(hamiltonian: PauliSum) -> str:
    """Write a Hamiltonian as the text of a data set: one term such as `(1+0j) [Z0 Z1] +` per line."""
    return " +\n".join(
        f"({term.coefficient.real:g}{term.coefficient.imag:+g}j) "
        f"[{' '.join(f'{letter}{qubit}' for qubit, letter in term.paulis)}]"
        for term in hamiltonian
    )


def hamlib_names(file: str | Path) -> list[str]:
    """List the names of all Hamiltonians in a HamLib file.

    Raises
    ------
    BadInput
        The file cannot be read, or h5py is missing.
    """
    answer, _ = ask(file, _WHAT, {"kind": "hamlib", "names": None})
    return [str(name) for name in answer["names"]]


def read_hamlib(file: str | Path, name: str) -> tuple[PauliSum, int]:
    """Read a Hamiltonian from a HamLib file.

    Parameters
    ----------
    file : path
        HDF5 file.
    name : str
        Name of the data set, with or without a leading `/`.

    Returns
    -------
    PauliSum, int
        The Hamiltonian and its number of qubits.

    Raises
    ------
    BadInput
        There is no such file or data set (the message lists some data sets), the text is no Hamiltonian, it names more
        qubits than the attribute `nqubits`, the file is damaged, or h5py is missing.
    """
    return next(read_hamlibs(file, [name]))


def read_hamlibs(file: str | Path, names: Sequence[str]) -> Iterator[tuple[PauliSum, int]]:
    """Yield several Hamiltonians of a HamLib file with their numbers of qubits; errors as for `read_hamlib`."""
    for first in range(0, len(names), _AT_ONCE):
        some = list(names[first : first + _AT_ONCE])
        answer, _ = ask(file, _WHAT, {"kind": "hamlib", "names": some})
        for name, found in zip(some, answer["texts"], strict=True):
            if "there" in found:
                there = ", ".join(found["there"]) or "none"
                raise BadInput(f"{file} has no Hamiltonian {name!r}; it has {there}")
            yield _hamiltonian(f"{file}, {name}", found["text"], found["qubits"])


def _hamiltonian(place: str, text: str, qubits: int | None) -> tuple[PauliSum, int]:
    try:
        found = PauliSum.parse(text)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error
    if qubits is not None and found.qubits > qubits:
        raise BadInput(
            f"{place}: expected qubits below {qubits}, its attribute nqubits, found qubit {found.qubits - 1}"
        )
    return found, found.qubits if qubits is None else qubits
