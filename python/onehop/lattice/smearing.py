"""APE, stout and HYP smearing, and the fat and long links of improved staggered quarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput, explain_public
from onehop.group import require_same
from onehop.lattice.gauge import Gauge
from onehop.refusals import make_collective
from onehop.text import alternatives

__all__ = [
    "FAT_LINKS",
    "HYP_ALPHA",
    "PROJECTIONS",
    "FatLinks",
    "PathWeights",
    "ape",
    "fat_links",
    "hisq_links",
    "hyp",
    "path_weights",
    "stout",
]

PROJECTIONS = ("u3", "su3")
HYP_ALPHA = (0.75, 0.6, 0.3)
FAT_LINKS = ("fat3", "fat5", "fat7", "asqtad", "hisq")


class PathWeights(NamedTuple):
    """One weight for each kind of path.

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
    """The links of an improved staggered operator, without staggered phases.

    Attributes
    ----------
    fat, long_links : array of shape (t, z, y, x, direction, 3, 3)
        This rank's block. Long links lead from x to x + 3 mu; they are zero without Naik's term.
    unitary : array, optional
        The reunitarised links of the first level (HISQ only).
    """

    fat: NDArray[np.complex128]
    long_links: NDArray[np.complex128]
    unitary: NDArray[np.complex128] | None = None


def path_weights(name: str, *, u0: float = 1.0, naik_epsilon: float = 0.0) -> PathWeights:
    """Return the conventional weights of a kind of fat links.

    Parameters
    ----------
    name : {"fat3", "fat5", "fat7", "asqtad", "hisq"}
        The kind. For hisq these are the weights of the second level; the first level is fat7.
    u0 : float
        Tadpole factor (asqtad only): every link beyond the first contributes a factor 1 / u0.
    naik_epsilon : float
        Naik epsilon (hisq only): Naik's term is multiplied by 1 + epsilon.

    Raises
    ------
    BadInput
        The name is unknown, or u0 is not above 0.
    """
    if name not in FAT_LINKS:
        raise BadInput(f"expected fat links {alternatives(FAT_LINKS)}, found {name!r}")
    parameter = u0 if name == "asqtad" else naik_epsilon
    return PathWeights(*_core.lattice_path_weights(name, parameter))


def fat_links(
    gauge: Gauge,
    weights: PathWeights | str = "asqtad",
    *,
    u0: float = 1.0,
    precision: str = "double",
) -> FatLinks:
    """Compute fat and long links. Collective.

    Parameters
    ----------
    gauge : Gauge
        The gauge field; its links must be unitary.
    weights : PathWeights or {"fat3", "fat5", "fat7", "asqtad"}
        The weights, or their name; "hisq" has two levels, see `hisq_links`.
    u0 : float
        Tadpole factor (asqtad only).
    precision : {"double", "single"}
        Precision of the arithmetic; the result is always in double precision.

    Raises
    ------
    BadInput
        The precision is unknown.
    """
    if weights == "hisq":
        return hisq_links(gauge, precision=precision)
    chosen = path_weights(weights, u0=u0) if isinstance(weights, str) else PathWeights(*weights)
    return FatLinks(*_core.lattice_fat_links(gauge, chosen, precision))


def hisq_links(
    gauge: Gauge, *, naik_epsilon: float = 0.0, precision: str = "double", projection: str = "u3"
) -> FatLinks:
    """Compute HISQ links. Collective.

    The first level is fat7 smearing, followed by the projection V (V^dagger V)^(-1/2) of each link to U(3). The second
    level is asqtad with twice Lepage's weight.

    Parameters
    ----------
    precision : {"double", "single"}
        Precision of the path sums. The projection and the result are always in double precision.
    projection : {"u3", "su3"}
        The group. For SU(3) each projected link is divided by the cube root of its determinant that is nearest to 1.

    Raises
    ------
    BadInput
        A fat7 link is singular (the message names it), or the precision or projection is unknown.
    """
    require_same(gauge.group, "hisq_links", projection=projection)
    if projection not in PROJECTIONS:
        raise BadInput(f"expected the projection {alternatives(PROJECTIONS)}, found {projection!r}")
    made = FatLinks(*_core.lattice_hisq_links(gauge, naik_epsilon, precision))
    if projection == "u3" or made.unitary is None:
        return made
    angle = np.angle(np.linalg.det(made.unitary))[..., None, None]
    special = made.unitary * np.exp(-1j * angle / 3)
    geometry = gauge.geometry
    first = Gauge(gauge.group, geometry.extents, geometry.grid, map=geometry.rank_at or None)
    first.set_links(special)
    weights = path_weights("hisq", naik_epsilon=naik_epsilon)
    return fat_links(first, weights, precision=precision)._replace(unitary=special)


def ape(gauge: Gauge, alpha: float, steps: int = 1, *, space_only: bool = False) -> None:
    """Apply APE smearing in place. Collective.

    Each step replaces U by the SU(3) matrix nearest to (1 - alpha) U + alpha / n times the sum of the n staples
    around U.

    Parameters
    ----------
    space_only : bool
        Smear only spatial links, with spatial staples; the last direction is time.

    Raises
    ------
    BadInput
        Steps are below 0, or a sum of links is singular.
    """
    _core.lattice_smear_ape(gauge, alpha, steps, space_only)


def stout(gauge: Gauge, rho: float, steps: int = 1, *, space_only: bool = False) -> None:
    """Apply stout smearing in place. Collective.

    Each step replaces U by exp(P(rho C U^dagger)) U, where C is the sum of the staples around U and P projects to the
    Lie algebra of SU(3).

    Raises
    ------
    BadInput
        Steps are below 0.
    """
    _core.lattice_smear_stout(gauge, rho, steps, space_only)


def hyp(
    gauge: Gauge,
    alpha: Sequence[float] = HYP_ALPHA,
    steps: int = 1,
    *,
    space_only: bool = False,
) -> None:
    """Apply HYP smearing in place. Collective.

    Each of three nested levels is APE smearing with staples of the links of the level inside, so that all paths stay
    within the hypercubes around a link. A level projects a sum V to the SU(3) matrix U with the largest
    Re tr(U V^dagger).

    Parameters
    ----------
    alpha : three floats
        The weights of the outermost, the middle and the innermost level. With `space_only` the first has no effect.

    Raises
    ------
    BadInput
        There are not three weights, steps are below 0, or a sum of links is singular.
    """
    if len(alpha) != 3:
        raise BadInput(f"expected three weights alpha of HYP smearing, found {len(alpha)}")
    _core.lattice_smear_hyp(gauge, [float(one) for one in alpha], steps, space_only)


explain_public(globals())
make_collective(globals(), __all__)
