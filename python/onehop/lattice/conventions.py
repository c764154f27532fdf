"""Conventions of other programs: spin bases, signs and normalisations of sources, propagators and observables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput, explain_public
from onehop.lattice.geometry import Geometry
from onehop.text import alternatives

__all__ = ["CONVENTIONS", "SPIN_BASES", "Convention", "convention"]

Fields = NDArray[np.complex128]
_HALF = math.sqrt(0.5)

# The unitary matrices S of psi_basis = S psi_DeGrand-Rossi. The gamma matrices of a basis are S gamma S^dagger.
SPIN_BASES: dict[str, Fields] = {
    "degrand-rossi": np.eye(4, dtype=np.complex128),
    "ukqcd": _HALF * np.array([[0, 1, 0, 1], [-1, 0, -1, 0], [0, 1, 0, -1], [-1, 0, 1, 0]], np.complex128),
    "fnal": _HALF * np.array([[0, -1, 0, -1], [1, 0, 1, 0], [0, -1j, 0, 1j], [1j, 0, -1j, 0]], np.complex128),
    "chiral": np.array([[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]], np.complex128),
}
_GAMMA5 = np.diag([1.0, 1, -1, -1])  # in the basis of DeGrand and Rossi


@dataclass(frozen=True)
class Convention:
    """The conventions of a program.

    Attributes
    ----------
    name : str
        "onehop", "milc", "chroma", "quda", "grid" or "openqcd".
    spin_basis : str
        A key of `SPIN_BASES`.
    gamma_sign : int
        The sign s in `(1 + s gamma_mu) U_mu(x) psi(x + mu)` of the hopping term of Wilson quarks.
    over_2_kappa : bool
        Whether the operator of Wilson quarks is `m + 4 - D / 2`, which is onehop's divided by 2 kappa.
    phases : str, optional
        The order of the staggered phases, "standard" or "milc"; None without staggered quarks.
    hop_sign, staggered_factor
        The operator of staggered quarks is `staggered_factor * (2 m + hop_sign * D)`.
    plaquette, charge : float
        A plaquette and a topological charge of the program, divided by onehop's.
    """

    name: str
    spin_basis: str = "degrand-rossi"
    gamma_sign: int = -1
    over_2_kappa: bool = False
    phases: str | None = "standard"
    hop_sign: int = 1
    staggered_factor: float = 1.0
    plaquette: float = 1.0
    charge: float = 1.0

    @property
    def spin_matrix(self) -> Fields:
        """The matrix B of `psi = B psi_onehop`, which turns onehop's operator into B M B^dagger."""
        return SPIN_BASES[self.spin_basis] @ (_GAMMA5 if self.gamma_sign > 0 else np.eye(4))

    def spinors(self, fields: Fields) -> Fields:
        """Return spinors of onehop, of shape (..., spin, colour), in this convention."""
        return np.matmul(self.spin_matrix, fields)

    def spinors_of_onehop(self, fields: Fields) -> Fields:
        """Return spinors of this convention, of shape (..., spin, colour), in onehop's."""
        return np.matmul(self.spin_matrix.conj().T, fields)

    def propagator(self, columns: Fields, kappa: float) -> Fields:
        """Return a Wilson propagator of onehop, 12 columns of shape (..., 4, 3), in this convention.

        Column 3 spin + colour is the solution for a source with this spin and colour.
        """
        return self.wilson_factor(kappa) * _turned(self.spin_matrix, columns)

    def propagator_of_onehop(self, columns: Fields, kappa: float) -> Fields:
        """Return a Wilson propagator of this convention, 12 columns of shape (..., 4, 3), in onehop's."""
        return _turned(self.spin_matrix.conj().T, columns) / self.wilson_factor(kappa)

    def wilson_factor(self, kappa: float) -> float:
        """Return the factor of Wilson propagators: a propagator of this convention, divided by onehop's."""
        return 2 * kappa if self.over_2_kappa else 1.0

    def staggered_signs(self, geometry: Geometry, rank: int) -> NDArray[np.float64]:
        """Return the sign of each site of a rank's block by which colour vectors differ from onehop's.

        The signs turn the phases of `Staggered`'s default into those of this convention, and D into -D if `hop_sign` is
        -1. Raises BadInput if the program has no staggered quarks.
        """
        self.require_staggered()
        x, y, z, t = (
            start + np.arange(count).reshape([-1 if axis == 3 - d else 1 for axis in range(4)])
            for d, (start, count) in enumerate(
                zip(geometry.origin(rank), geometry.block_shape[::-1], strict=True)
            )
        )
        odd = t * (x + y + z) if self.phases == "milc" else 0 * (t + x + y + z)
        return 1.0 - 2 * ((odd + (x + y + z + t if self.hop_sign < 0 else 0)) % 2)

    @property
    def staggered_propagator_factor(self) -> float:
        """A staggered propagator or condensate of this convention, divided by onehop's, up to signs of sites."""
        return 1 / self.staggered_factor

    def require_staggered(self) -> None:
        """Raise BadInput if the program has no staggered quarks."""
        if self.phases is None:
            raise BadInput(f"expected a convention with staggered quarks, found {self.name}, which has none")


def _turned(matrix: Fields, columns: Fields) -> Fields:
    """Return B G B^dagger for the 12 columns of G."""
    sources = np.reshape(columns, (4, 3, *np.shape(columns)[1:]))
    return np.matmul(matrix, np.tensordot(matrix.conj(), sources, axes=1)).reshape(np.shape(columns))


CONVENTIONS = {
    one.name: one
    for one in (
        Convention("onehop"),
        Convention("milc", gamma_sign=1, phases="milc", plaquette=3.0),
        Convention("chroma", over_2_kappa=True),
        Convention("quda", phases="milc", hop_sign=-1),
        Convention("grid", over_2_kappa=True, staggered_factor=0.5),
        Convention(
            "openqcd", spin_basis="chiral", over_2_kappa=True, phases=None, plaquette=3.0, charge=-1.0
        ),
    )
}


def convention(name: str, spin_basis: str | None = None) -> Convention:
    """Return the conventions of a program, or the same in another spin basis. Raises BadInput for an unknown name."""
    if name not in CONVENTIONS:
        raise BadInput(f"expected the convention {alternatives(tuple(CONVENTIONS))}, found {name!r}")
    if spin_basis is None:
        return CONVENTIONS[name]
    if spin_basis not in SPIN_BASES:
        raise BadInput(f"expected the spin basis {alternatives(tuple(SPIN_BASES))}, found {spin_basis!r}")
    return replace(CONVENTIONS[name], spin_basis=spin_basis)


explain_public(globals())
