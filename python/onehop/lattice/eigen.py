"""The lowest eigenvectors of M^dagger M of staggered quarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import whole_number
from onehop.error import BadInput, Error
from onehop.group import require_same
from onehop.lattice.geometry import Geometry, require_memory, sites_on_a_rank
from onehop.lattice.staggered import Staggered
from onehop.options import LARGEST_INT, Options, option

if TYPE_CHECKING:
    from onehop._keywords import EigenKeywords, Unpack

Vectors = NDArray[np.complex128]

_BLOCK = 2  # vectors by which the basis grows at first; more of them need more applications
_OF_NUMPY = 24 << 20  # bytes that its products of matrices take besides
_SPARE = 8  # vectors beyond the wanted ones that are kept, and the most by which the basis grows
_CHECKS = 8  # steps of a sequence from random vectors that must not find another eigenvector


@dataclass(kw_only=True)
class EigenOptions(Options):
    """The options of `lowest_eigenvectors`, which documents them."""

    title = "Eigenvectors"

    count: int = option(32, "Number of eigenvectors.", low=1, high=LARGEST_INT)
    residual: float = option(
        1e-9, "Largest residual |A v - lambda v| of an eigenvector v of norm 1.", above=0
    )
    degree: int = option(0, "Degree of the Chebyshev polynomial; 0: by the spectrum.", low=0, high=10000)
    applications: int = option(200000, "Largest number of applications of A = -D D.", low=1, high=LARGEST_INT)


@dataclass
class Eigenvectors:
    """The lowest eigenvectors of -D D on the even sites; M^dagger M has the eigenvalues `4 m^2 + values`.

    Attributes
    ----------
    values, residuals : array
        Eigenvalues in ascending order, and `|A v - lambda v|` of each eigenvector v of norm 1.
    vectors : array
        This rank's even sites in lexicographic order: shape (count, sites, 3).
    applications : int
        How often the operator was applied to find them.
    digest : complex
        A number that depends on all links of the operator.
    """

    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    vectors: Vectors
    applications: int
    digest: complex
    rounding: float = 0.0  # the error of each vector from the precision of its file

    def error(self, mass: float) -> float:
        """Return about the part of the low modes that a solve in the space of the eigenvectors leaves.

        A residual is orthogonal to all of the vectors, so that it counts in second order.
        """
        squares = self.residuals.max() ** 2 / (self.values[-1] * (self.values[0] + 4 * mass**2))
        return max(self.rounding, float(squares))


class EvenSites:
    """Vectors of even sites, as rows of a matrix, and their sums over the ranks."""

    def __init__(self, operator: Staggered) -> None:
        self.operator, self.group = operator, operator.group
        geometry = operator.geometry
        self.shape = (*geometry.block_shape, 3)
        self.even = parity_of(geometry, self.group.rank) == 0
        self.applications = 0

    def field(self, vector: Vectors) -> Vectors:
        """Return a field with this vector on the even sites, and 0 on the odd ones."""
        field = np.zeros(self.shape, np.complex128)
        field[self.even] = vector.reshape(-1, 3)
        return field

    def apply(self, vector: Vectors) -> Vectors:
        """Return A v with A = -D D."""
        return self.filtered(vector, 1, 0.0, 2.0) + vector

    def filtered(self, vector: Vectors, degree: int, low: float, high: float) -> Vectors:
        """Return the Chebyshev polynomial of A times v."""
        self.applications += degree
        return self.operator.filter(self.field(vector), degree, low, high)[self.even].ravel()

    def total(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Sum an array over the ranks, in their order."""
        if self.group.size == 1:
            return mine
        parts = self.group.allgather(np.ascontiguousarray(mine).tobytes())
        return np.sum([np.frombuffer(part, mine.dtype).reshape(mine.shape) for part in parts], axis=0)

    def norm(self, field: Vectors) -> float:
        """Return the norm of a field."""
        return float(np.sqrt(self.total(np.array([np.vdot(field, field).real]))[0]))

    def products(self, rows: Vectors, vectors: Vectors) -> Vectors:
        """Return `<row, vector>` for each of the rows and of the vectors."""
        parts = [rows[i : i + _SPARE].conj() @ vectors.T for i in range(0, len(rows), _SPARE)]
        return self.total(np.concatenate([np.zeros((0, len(vectors)), np.complex128), *parts]))

    def random(self, count: int, seed: int) -> Vectors:
        """Return random vectors."""
        draw = np.random.Generator(np.random.Philox(key=[seed, self.group.rank]))
        size = 3 * int(self.even.sum())
        return draw.normal(size=(count, size)) + 1j * draw.normal(size=(count, size))

    def orthonormal(self, vectors: Vectors, basis: Vectors) -> Vectors:
        """Return an orthonormal basis of what the vectors add to an orthonormal basis."""
        for again in range(3):
            vectors = vectors - self.products(basis, vectors).T @ basis
            squares, turn = np.linalg.eigh(self.products(vectors, vectors))
            # Once of norm 1, a vector that the projection shortens lies in the basis but for rounding.
            kept = squares > (0.25 if again else 1e-24 * max(squares.max(initial=0), 1e-300))
            vectors = (turn[:, kept] / np.sqrt(squares[kept])).T @ vectors
        return vectors

    def spectrum(self, steps: int = 30) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return an upper bound of the spectrum, and points in it with their share of the eigenvalues (Lanczos)."""
        rows = self.orthonormal(self.random(1, 1), self.random(0, 1))
        below = 0.0
        matrix = np.zeros((steps, steps))
        for i in range(steps):
            image = self.apply(rows[i])[None]
            matrix[i, i] = self.products(rows[i : i + 1], image)[0, 0].real
            image = image - self.products(rows, image).T @ rows
            below = float(np.sqrt(self.products(image, image)[0, 0].real))
            if i + 1 == steps or below < 1e-10 * matrix[0, 0]:
                matrix = matrix[: i + 1, : i + 1]
                break
            matrix[i, i + 1] = matrix[i + 1, i] = below
            rows = np.concatenate([rows, self.orthonormal(image, rows)])
        points, turn = np.linalg.eigh(matrix)
        return float(points[-1] + below * abs(turn[-1, -1])), points, np.abs(turn[0]) ** 2


def parity_of(geometry: Geometry, rank: int) -> NDArray[np.int64]:
    """Return the parity of each site of a rank's block."""
    return (sum(np.indices(geometry.block_shape)) + sum(geometry.origin(rank))) % 2


def _interval(sites: EvenSites, count: int, size: int) -> tuple[float, float]:
    """Return the interval of A on which the polynomial is small: from about the last wanted eigenvalue on."""
    high, points, shares = sites.spectrum()
    below = np.cumsum(shares) - shares / 2  # the share of the eigenvalues below each point
    wanted = (count + _SPARE) / size
    low = float(np.interp(wanted, below, points)) if wanted > below[0] else float(points[0])
    return min(max(1.1 * low, 1e-4 * high), 0.8 * high), 1.02 * high


def lowest_eigenvectors(
    operator: Staggered,
    *,
    progress: Callable[[int, float], None] | None = None,
    **keywords: Unpack[EigenKeywords],
) -> Eigenvectors:
    """Compute the lowest eigenvectors of A = -D D on the even sites. Collective.

    The method is thick-restart Lanczos in blocks (Wu and Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602) with a
    Chebyshev polynomial of A in place of A (Zhou and Saad, SIAM J. Matrix Anal. Appl. 29 (2007) 954), which is small on
    the unwanted part of the spectrum.

    Parameters
    ----------
    operator : Staggered
        The operator.
    progress : callable, optional
        Called with the number of applications so far and the number of eigenvectors that have converged.

    Other Parameters
    ----------------
    count : int
        Number of eigenvectors.
    residual : float
        Largest residual |A v - lambda v| of an eigenvector v of norm 1.
    degree : int
        Degree of the polynomial; 0: chosen by the spectrum.
    applications : int
        Largest number of applications of A.

    Raises
    ------
    BadInput
        There are more eigenvectors than a quarter of the numbers of all even sites.
    Error
        The eigenvectors did not converge within `applications`, or there is too little memory.
    """
    options = EigenOptions.of("lowest_eigenvectors", keywords)
    sites, count = EvenSites(operator), whole_number(options.count, "count")
    require_same(operator.group, "lowest_eigenvectors", **vars(options))
    extents = operator.geometry.extents
    size = int(np.prod(extents)) // 2 * 3
    if not 0 < count <= size // 4:
        raise BadInput(
            f"expected 1 to {size // 4} eigenvectors (a quarter of the {size} numbers of the even sites), "
            f"found {count}"
        )
    whole_number(options.applications, "applications", 1)
    asked = whole_number(options.degree, "degree", 0, LARGEST_INT)
    most = min(size, max(2 * count, count + 5 * _SPARE))
    needed = (2 * most + 5 * count + 10 * _SPARE) * 24.0 * sites_on_a_rank(
        extents, operator.group.size
    ) + _OF_NUMPY
    require_memory(operator.group, extents, needed, "eigenvectors")
    low, high = _interval(sites, count, size)
    block = sites.random(_BLOCK, 2)
    while True:
        degree = asked or 2 * max(1, round(0.8 * np.sqrt(high / low)))
        found = _iterate(sites, options, (degree, low, high), most, block, progress)
        if found.values[-1] <= low:
            return found
        # The polynomial was small on wanted eigenvalues, too; the largest Ritz value is not below the last of them.
        low, block = 1.1 * float(found.values[-1]), found.vectors.reshape(count, -1)
        high = max(high, low / 0.9)


def _iterate(
    sites: EvenSites,
    options: EigenOptions,
    polynomial: tuple[int, float, float],
    most: int,
    block: Vectors,
    progress: Callable[[int, float], None] | None,
) -> Eigenvectors:
    """Grow a basis by blocks of residuals, and shrink it to its best vectors when it has `most` of them."""
    count = options.count
    # Residual of the polynomial relative to its eigenvalue or 1, at which those of A are computed.
    limit = max(1e-8, 0.01 * options.residual)
    rows = np.empty((2, most + 2 * _SPARE, block.shape[1]), np.complex128)  # of the basis, and of its images
    basis = images = rows[0, :0]
    matrix = gram = np.zeros((0, 0), np.complex128)  # <b, T b> of the basis, and <T b, T b>
    checks, width = 0, _BLOCK
    while True:
        block = sites.orthonormal(block, basis)
        if not len(block):
            block = sites.orthonormal(sites.random(width, sites.applications + len(basis)), basis)
        new = np.array([sites.filtered(one, *polynomial) for one in block]).reshape(block.shape)
        old, size = len(basis), len(basis) + len(block)
        basis, images = rows[:, :size]
        basis[old:], images[old:] = block, new
        matrix, gram = (
            _bordered(one, sites.products(all_, new)) for one, all_ in ((matrix, basis), (gram, images))
        )
        values, turn = np.linalg.eigh(matrix)
        values, turn = values[::-1], turn[:, ::-1].T
        if len(basis) + width > most:
            keep = min(count + _SPARE, len(basis) - width)
            for whole in (basis, images):
                whole[:keep] = turn[:keep] @ whole
            basis, images = rows[:, :keep]
            values, gram = values[:keep], turn[:keep].conj() @ gram @ turn[:keep].T
            matrix, turn = np.diag(values).astype(np.complex128), np.eye(keep)
        wanted = min(count, len(values))
        largest = np.maximum(np.abs(values[:wanted]), 1)
        squares = np.einsum("ij,jk,ik->i", turn[:wanted].conj(), gram, turn[:wanted], optimize=True).real
        rough = np.sqrt(np.maximum(squares - values[:wanted] ** 2, 0)) / largest  # but for rounding
        noise = 1e-7 * np.abs(values).max() / largest  # what rounding of the squares leaves of `rough`
        chosen = np.flatnonzero(rough > np.maximum(1e-6, noise))
        if len(chosen):  # and these few are the next ones
            open_ones, chosen = chosen, chosen[:_SPARE]
        else:
            chosen = np.arange(wanted)
        rest = turn[chosen] @ basis
        rest *= -values[chosen, None]
        rest += turn[chosen] @ images
        if len(chosen) == wanted:
            errors = np.sqrt(sites.total((np.abs(rest) ** 2).sum(axis=1))) / largest
            open_ones = np.flatnonzero(errors > limit)
            rest = rest[open_ones[:_SPARE]]
        next_ones = rest
        if progress is not None:
            progress(sites.applications, wanted - len(open_ones))
        if len(open_ones) or wanted < count:
            if checks:  # eigenvalues of the operator are multiple: blocks find as many of them at once
                checks, width = 0, min(2 * width, _SPARE)
            block = next_ones[:width] if len(open_ones) else sites.random(width, len(basis))
        elif (
            checks < _CHECKS
        ):  # a sequence from random vectors shows an eigenvector that the basis has missed
            checks, block = checks + 1, new if checks else sites.random(width, sites.applications)
        else:
            found = _of_operator(sites, turn[:count] @ basis)
            if (found.residuals <= options.residual).all():
                return found
            limit *= min(0.1, 0.5 * options.residual / found.residuals.max())
        if sites.applications > options.applications or limit < 1e-15:
            worst = _of_operator(sites, turn[:wanted] @ basis).residuals.max()
            raise Error(
                f"expected {count} eigenvectors with residuals of {options.residual:g}, reached {worst:.1e} in "
                f"{sites.applications} applications; allow more applications, or take a larger residual or fewer "
                "eigenvectors"
            )


def _bordered(matrix: Vectors, columns: Vectors) -> Vectors:
    """Return a Hermitian matrix with more columns, and as many rows."""
    old, size = len(matrix), len(columns)
    found = np.empty((size, size), np.complex128)
    found[:old, :old], found[:old, old:], found[old:, :old] = matrix, columns[:old], columns[:old].T.conj()
    found[old:, old:] = (columns[old:] + columns[old:].T.conj()) / 2
    return found


def _of_operator(sites: EvenSites, vectors: Vectors) -> Eigenvectors:
    """Return the eigenvectors of A in a space, with their eigenvalues and residuals."""
    images = np.empty_like(vectors)
    for image, one in zip(images, vectors, strict=True):
        image[:] = sites.apply(one)
    matrix = sites.products(vectors, images)
    values, turn = np.linalg.eigh((matrix + matrix.conj().T) / 2)
    vectors = turn.T @ vectors
    images = turn.T @ images
    images -= values[:, None] * vectors
    rest = np.sqrt(sites.total((np.abs(images) ** 2).sum(axis=1)))
    shaped = vectors.reshape(len(values), -1, 3)
    return Eigenvectors(values, rest, shaped, sites.applications, link_digest(sites.operator))


def link_digest(operator: Staggered) -> complex:
    """Return a number that depends on every link of the operator: <a, D b> with fixed fields a and b. Collective."""
    geometry, rank = operator.geometry, operator.group.rank
    at = np.zeros(geometry.block_shape, np.int64)
    stride = 1
    origin, axes = geometry.origin(rank), np.indices(geometry.block_shape)[::-1]
    for mu, extent in enumerate(geometry.extents):
        at, stride = at + stride * (axes[mu] + origin[mu]), stride * extent
    numbers = 3 * at[..., None] + np.arange(3)
    field, other = (
        np.exp(2j * np.pi * (numbers * turns % 1)) for turns in (0.6180339887498949, 0.41421356237309515)
    )
    mine = np.array([np.vdot(other, operator.dslash(field))])
    return complex(EvenSites(operator).total(mine)[0])
