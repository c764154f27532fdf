"""Smeared gauge fields (APE, stout), and the fat and long links of improved staggered quarks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge

__all__ = ["FAT_LINKS", "FatLinks", "PathWeights", "ape", "fat_links", "hisq_links", "path_weights", "stout"]

FAT_LINKS = ("fat3", "fat5", "fat7", "asqtad", "hisq")


class PathWeights(NamedTuple):
    """The weight of every path of a kind.

    The link itself; around it in one, two and three directions (three, five and seven links); around it at a distance
    of two (Lepage); three links straight ahead (Naik), which make the long links.
    """

    one: float = 1.0
    three: float = 0.0
    five: float = 0.0
    seven: float = 0.0
    lepage: float = 0.0
    long_links: float = 0.0


class FatLinks(NamedTuple):
    """What an improved staggered operator needs; gauge links alone, without phases.

    Attributes
    ----------
    fat, long_links : array of shape (t, z, y, x, direction, 3, 3)
        Of this rank's block. Long links lead from x to x + 3 mu; zero without Naik's term.
    unitary : array, optional
        Of HISQ: the reunitarised links of the first level.
    """

    fat: NDArray[np.complex128]
    long_links: NDArray[np.complex128]
    unitary: NDArray[np.complex128] | None = None


def path_weights(name: str, *, u0: float = 1.0, naik_epsilon: float = 0.0) -> PathWeights:
    """The conventional weights.

    Parameters
    ----------
    name : {"fat3", "fat5", "fat7", "asqtad", "hisq"}
        Those of hisq are of its second level; the first is fat7.
    u0 : float
        Of asqtad: every link beyond the first counts 1 / u0.
    naik_epsilon : float
        Of hisq: Naik's term counts 1 + epsilon.

    Raises
    ------
    BadInput
        Another name; a u0 that is not above 0.
    """
    if name not in FAT_LINKS:
        raise BadInput(f"expected fat links of {', '.join(FAT_LINKS)}, found {name!r}")
    parameter = u0 if name == "asqtad" else naik_epsilon
    return PathWeights(*_core.lattice_path_weights(name, parameter))


def fat_links(
    gauge: Gauge,
    weights: PathWeights | str = "asqtad",
    *,
    u0: float = 1.0,
    precision: str = "double",
) -> FatLinks:
    """Sums over paths of links. Collective.

    Parameters
    ----------
    gauge : Gauge
        Its links are unitary, as those of SU(3) are.
    weights : PathWeights or {"fat3", "fat5", "fat7", "asqtad"}
        Or "hisq", which has two levels, see `hisq_links`.
    u0 : float
        Of asqtad.
    precision : {"double", "single"}
        Of the arithmetic; what is returned is double.

    Raises
    ------
    BadInput
        Another precision.
    """
    if weights == "hisq":
        return hisq_links(gauge, precision=precision)
    chosen = path_weights(weights, u0=u0) if isinstance(weights, str) else PathWeights(*weights)
    return FatLinks(*_core.lattice_fat_links(gauge, *chosen, precision))


def hisq_links(gauge: Gauge, *, naik_epsilon: float = 0.0, precision: str = "double") -> FatLinks:
    """HISQ: fat7, each link made unitary by V (V^dagger V)^(-1/2), then asqtad with twice Lepage's weight. Collective.

    Parameters
    ----------
    precision : {"double", "single"}
        Of the arithmetic of paths. Links are made unitary in double precision, and what is returned is double.

    Raises
    ------
    BadInput
        A fat7 link is singular; the message says which. Another precision.
    """
    return FatLinks(*_core.lattice_hisq_links(gauge, naik_epsilon, precision))


def ape(gauge: Gauge, alpha: float, steps: int = 1, *, space_only: bool = False) -> None:
    """APE smearing in place. Collective.

    In a step U becomes what is nearest in SU(3) to (1 - alpha) U + alpha / n times the sum of the n staples around it.

    Parameters
    ----------
    space_only : bool
        Only links in space, with staples in space; the last direction is time.

    Raises
    ------
    BadInput
        Steps below 0; a sum of links that is singular.
    """
    _core.lattice_smear_ape(gauge, alpha, steps, space_only)


def stout(gauge: Gauge, rho: float, steps: int = 1, *, space_only: bool = False) -> None:
    """Stout smearing in place. Collective.

    In a step U becomes exp(P(rho C U^dagger)) U with C the sum of its staples and P the part in SU(3)'s algebra.

    Raises
    ------
    BadInput
        Steps below 0.
    """
    _core.lattice_smear_stout(gauge, rho, steps, space_only)
