"""HamLib files (HDF5, a data set of text per Hamiltonian): reading them, and making them for spin models."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from onehop.error import BadInput
from onehop.output import write_file
from onehop.quantum.graphs import lattice_bonds
from onehop.quantum.io.hdf5 import ask
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
_AT_ONCE = 256  # read by one process


def _h5py() -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise BadInput(
            "HamLib files need h5py: `pip install 'onehop[quantum]'`, or `pip install h5py`"
        ) from error
    return h5py


def tfim(
    extents: Sequence[int],
    *,
    lattice: str = "grid",
    periodic: bool = False,
    coupling: float = 1.0,
    field: float = 1.0,
) -> PauliSum:
    """The Ising model in a transverse field: coupling * sum of Z Z over neighbours + field * sum of X."""
    bonds = lattice_bonds(extents, lattice=lattice, periodic=periodic)
    return PauliSum(
        tuple(PauliTerm(complex(coupling), ((a, "Z"), (b, "Z"))) for a, b in bonds)
        + tuple(PauliTerm(complex(field), ((site, "X"),)) for site in range(_sites(extents)))
    )


def heisenberg(
    extents: Sequence[int],
    *,
    lattice: str = "grid",
    periodic: bool = False,
    coupling: float = 1.0,
    field: float = 0.0,
) -> PauliSum:
    """The Heisenberg model: coupling * sum of X X + Y Y + Z Z over neighbours + field * sum of Z."""
    bonds = lattice_bonds(extents, lattice=lattice, periodic=periodic)
    return PauliSum(
        tuple(PauliTerm(complex(coupling), ((a, letter), (b, letter))) for a, b in bonds for letter in "XYZ")
        + tuple(PauliTerm(complex(field), ((site, "Z"),)) for site in range(_sites(extents)) if field)
    )


def _sites(extents: Sequence[int]) -> int:
    sites = 1
    for extent in extents:
        sites *= extent
    return sites


def tfim_name(
    extents: Sequence[int], *, lattice: str = "grid", periodic: bool = True, field: float = 1.0
) -> str:
    """HamLib's name of a data set, such as `graph-1D-grid-pbc-qubitnodes_Lx-12_h-2`."""
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
    """Make a HamLib file of Ising models in a transverse field.

    Parameters
    ----------
    file : path
        What to write (HDF5).
    lattices : iterable of (extents, lattice)
        Lattices as for `lattice_bonds`; each with open and with periodic ends.
    fields : sequence of float
        Strengths of the field, each with every lattice.

    Returns
    -------
    list of str
        The names of the data sets.

    Raises
    ------
    BadInput
        The file cannot be written, or h5py is missing.
    """
    h5py = _h5py()
    names = []
    whole = io.BytesIO()
    with h5py.File(whole, "w") as stored:
        for extents, lattice in lattices:
            for periodic in (False, True):
                for field in fields:
                    name = tfim_name(extents, lattice=lattice, periodic=periodic, field=field)
                    model = tfim(extents, lattice=lattice, periodic=periodic, field=field)
                    data = stored.create_dataset(name, data=to_hamlib_text(model))
                    data.attrs["nqubits"] = _sites(extents)
                    names.append(name)
    try:
        Path(file).absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write the Hamiltonians to {file}: {error.strerror}") from error
    write_file(file, whole.getvalue(), "the Hamiltonians")
    return names


def to_hamlib_text(hamiltonian: PauliSum) -> str:
    """The text of a data set: `(1+0j) [Z0 Z1] +` and so on, a term a line."""
    return " +\n".join(
        f"({term.coefficient.real:g}{term.coefficient.imag:+g}j) "
        f"[{' '.join(f'{letter}{qubit}' for qubit, letter in term.paulis)}]"
        for term in hamiltonian
    )


def hamlib_names(file: str | Path) -> list[str]:
    """The names of all Hamiltonians in a HamLib file.

    Raises
    ------
    BadInput
        The file cannot be read, or h5py is missing.
    """
    answer, _ = ask(file, _WHAT, {"kind": "hamlib", "names": None})
    return [str(name) for name in answer["names"]]


def read_hamlib(file: str | Path, name: str) -> tuple[PauliSum, int]:
    """A Hamiltonian of a HamLib file.

    Parameters
    ----------
    file : path
        HDF5.
    name : str
        Of the data set, with or without a leading `/`.

    Returns
    -------
    PauliSum, int
        The Hamiltonian and its number of qubits.

    Raises
    ------
    BadInput
        No such file or data set (the message names some that are there), text that is no Hamiltonian, more qubits in
        the text than the attribute says, a damaged file, or h5py is missing.
    """
    return next(read_hamlibs(file, [name]))


def read_hamlibs(file: str | Path, names: Sequence[str]) -> Iterator[tuple[PauliSum, int]]:
    """Several Hamiltonians of a HamLib file, one after the other; errors are those of `read_hamlib`."""
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
        raise BadInput(f"{place}: names qubit {found.qubits - 1}, but its attribute nqubits is {qubits}")
    return found, found.qubits if qubits is None else qubits
