"""The lowest eigenvectors of M^dagger M of staggered quarks, their file, and solves that are deflated with them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput, Error
from onehop.group import together
from onehop.lattice.files.write import write_from_one
from onehop.lattice.geometry import Geometry, require_memory, sites_on_a_rank
from onehop.lattice.operators import QuarkSolve, SolverOptions
from onehop.lattice.staggered import Staggered
from onehop.options import LARGEST_INT, Options, option
from onehop.output import file_path

if TYPE_CHECKING:
    from onehop._keywords import EigenKeywords, SolverKeywords, Unpack

__all__ = ["Eigenvectors", "deflated_solve", "lowest_eigenvectors", "read_eigenvectors", "write_eigenvectors"]

Vectors = NDArray[np.complex128]

_FORMAT = "onehop eigenvectors 1"
_BLOCK = 2  # vectors by which the basis grows at first; more of them need more applications
_SPARE = 8  # vectors beyond the wanted ones that are kept, and the most by which the basis grows
_CHECKS = 8  # steps of a sequence from random vectors that must not find another eigenvector
_LARGEST = 32767


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


class _EvenSites:
    """Vectors of even sites, as rows of a matrix, and their sums over the ranks."""

    def __init__(self, operator: Staggered) -> None:
        self.operator, self.group = operator, operator.group
        geometry = operator.geometry
        self.shape = (*geometry.block_shape, 3)
        self.even = _parity(geometry, self.group.rank) == 0
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
        return self.total(rows.conj() @ vectors.T)

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


def _parity(geometry: Geometry, rank: int) -> NDArray[np.int64]:
    """Return the parity of each site of a rank's block."""
    return (sum(np.indices(geometry.block_shape)) + sum(geometry.origin(rank))) % 2


def _interval(sites: _EvenSites, count: int, size: int) -> tuple[float, float]:
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
    sites, count = _EvenSites(operator), options.count
    extents = operator.geometry.extents
    size = int(np.prod(extents)) // 2 * 3
    if not 0 < count <= size // 4:
        raise BadInput(
            f"expected 1 to {size // 4} eigenvectors (a quarter of the {size} numbers of the even sites), "
            f"found {count}"
        )
    most = min(size, max(2 * count, count + 5 * _SPARE))
    needed = (3 * most + _SPARE) * 24.0 * sites_on_a_rank(extents, operator.group.size)
    require_memory(operator.group, extents, needed, "eigenvectors")
    low, high = _interval(sites, count, size)
    block = sites.random(_BLOCK, 2)
    while True:
        degree = options.degree or 2 * max(1, round(0.8 * np.sqrt(high / low)))
        found = _iterate(sites, options, (degree, low, high), most, block, progress)
        if found.values[-1] <= low:
            return found
        # The polynomial was small on wanted eigenvalues, too; the largest Ritz value is not below the last of them.
        low, block = min(1.1 * float(found.values[-1]), 0.9 * high), found.vectors.reshape(count, -1)


def _iterate(
    sites: _EvenSites,
    options: EigenOptions,
    polynomial: tuple[int, float, float],
    most: int,
    block: Vectors,
    progress: Callable[[int, float], None] | None,
) -> Eigenvectors:
    """Grow a basis by blocks of residuals, and shrink it to its best vectors when it has `most` of them."""
    count = options.count
    limit = (
        1e-8  # residual of the polynomial relative to its eigenvalue or 1, at which those of A are computed
    )
    basis = images = sites.random(0, 2)
    checks, width = 0, _BLOCK
    while True:
        block = sites.orthonormal(block, basis)
        if not len(block):
            block = sites.orthonormal(sites.random(width, sites.applications + len(basis)), basis)
        new = np.array([sites.filtered(one, *polynomial) for one in block]).reshape(block.shape)
        basis, images = np.concatenate([basis, block]), np.concatenate([images, new])
        matrix = sites.products(basis, images)
        values, turn = np.linalg.eigh((matrix + matrix.conj().T) / 2)
        values, turn = values[::-1], turn[:, ::-1].T
        if len(basis) + width > most:
            keep = min(count + _SPARE, len(basis) - width)
            basis, images = turn[:keep] @ basis, turn[:keep] @ images
            values, turn = values[:keep], np.eye(keep)
        wanted = min(count, len(values))
        rest = turn[:wanted] @ images - values[:wanted, None] * (turn[:wanted] @ basis)
        errors = np.sqrt(sites.total((np.abs(rest) ** 2).sum(axis=1))) / np.maximum(
            np.abs(values[:wanted]), 1
        )
        open_ones = np.flatnonzero(errors > limit)
        if progress is not None:
            progress(sites.applications, wanted - len(open_ones))
        if len(open_ones) or wanted < count:
            if checks:  # eigenvalues of the operator are multiple: blocks find as many of them at once
                checks, width = 0, min(2 * width, _SPARE)
            block = rest[open_ones[:width]] if len(open_ones) else sites.random(width, len(basis))
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


def _of_operator(sites: _EvenSites, vectors: Vectors) -> Eigenvectors:
    """Return the eigenvectors of A in a space, with their eigenvalues and residuals."""
    images = np.array([sites.apply(one) for one in vectors])
    matrix = sites.products(vectors, images)
    values, turn = np.linalg.eigh((matrix + matrix.conj().T) / 2)
    vectors, images = turn.T @ vectors, turn.T @ images
    rest = np.sqrt(sites.total((np.abs(images - values[:, None] * vectors) ** 2).sum(axis=1)))
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
    return complex(_EvenSites(operator).total(mine)[0])


def write_eigenvectors(
    path: str, found: Eigenvectors, operator: Staggered, *, precision: str = "double", overwrite: bool = False
) -> None:
    """Write eigenvectors to a file (NumPy's npz). Collective; rank 0 writes.

    Parameters
    ----------
    path : str
        The file.
    found : Eigenvectors
        The eigenvectors.
    operator : Staggered
        Their operator.
    precision : {"double", "half"}
        "half" stores 16-bit integers with a scale for each vector, which adds errors of about 1e-5.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    BadInput
        On all ranks: the precision is unknown, or the file exists or cannot be written.
    """
    if precision not in ("double", "half"):
        raise BadInput(f"expected the precision double or half, found {precision!r}")
    group, geometry = operator.group, operator.geometry
    count = len(found.values)
    require_memory(
        group, geometry.extents, 72.0 * count * sites_on_a_rank(geometry.extents, 1), "eigenvectors"
    )
    parts = group.allgather(np.ascontiguousarray(found.vectors).tobytes())

    def make() -> list[bytes]:
        whole = np.zeros((count, *geometry.shape, 3), np.complex128)
        for rank, part in enumerate(parts):
            mine = whole[(slice(None), *geometry.block_slices(rank))]
            mine[:, _parity(geometry, rank) == 0] = np.frombuffer(part, np.complex128).reshape(count, -1, 3)
        even = whole[:, sum(np.indices(geometry.shape)) % 2 == 0]
        arrays: dict[str, NDArray[Any]] = {"values": found.values, "residuals": found.residuals}
        about: dict[str, Any] = {
            "format": _FORMAT,
            "extents": list(geometry.extents),
            "digest": [found.digest.real, found.digest.imag],
            "applications": found.applications,
        }
        if precision == "half":
            reals = even.view(np.float64)
            arrays["scale"] = np.abs(reals).max(axis=(1, 2)) / _LARGEST
            even = np.rint(reals / arrays["scale"][:, None, None]).astype(np.int16)
            about["rounding"] = float(arrays["scale"].max() * np.sqrt(reals[0].size / 12))
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, vectors=even, **arrays)
        return [buffer.getvalue()]

    write_from_one(str(file_path(path, "path")), group, make, overwrite)


def read_eigenvectors(path: str, operator: Staggered) -> Eigenvectors:
    """Read eigenvectors, and check that they are those of this operator. Collective: every rank reads the file.

    Raises
    ------
    BadInput
        The file does not exist, is no file of eigenvectors or damaged, or has eigenvectors of another lattice or of
        other links.
    """
    geometry, group = operator.geometry, operator.group
    with together(group, f"cannot read {path}"):
        about, arrays = _read_arrays(str(path))
        extents = tuple(about["extents"])
        if extents != tuple(geometry.extents):
            raise BadInput(
                f"{path}: expected eigenvectors on a lattice of {'x'.join(map(str, geometry.extents))}, found "
                f"{'x'.join(map(str, extents))}"
            )
        shape = (len(arrays["values"]), int(np.prod(extents)) // 2, 3)
        if arrays["vectors"].shape != (*shape[:2], 6 if "scale" in arrays else 3):
            raise BadInput(
                f"{path}: expected {shape[0]} vectors on {shape[1]} even sites, found an array of shape "
                f"{arrays['vectors'].shape}; the file was altered"
            )
    vectors = arrays["vectors"]
    if "scale" in arrays:
        vectors = (vectors * arrays["scale"][:, None, None]).view(np.complex128)
    whole = np.zeros((shape[0], *geometry.shape, 3), np.complex128)
    whole[:, sum(np.indices(geometry.shape)) % 2 == 0] = vectors
    mine = whole[(slice(None), *geometry.block_slices(group.rank))]
    digest, found = complex(*about["digest"]), link_digest(operator)
    if not abs(digest - found) <= 1e-9 * abs(found):
        raise BadInput(
            f"{path}: expected eigenvectors of these links, whose digest is {found:.10g}, found those of others "
            f"with the digest {digest:.10g}; make them with the same gauge field, action, boundary and phases"
        )
    own = np.ascontiguousarray(mine[:, _parity(geometry, group.rank) == 0])
    rounding = float(about.get("rounding", 0))
    return Eigenvectors(
        arrays["values"], arrays["residuals"], own, int(about["applications"]), digest, rounding
    )


def _read_arrays(path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the description and the arrays of a file of eigenvectors."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != _FORMAT or not {"values", "residuals", "vectors"} <= arrays.keys():
            raise ValueError(about["format"])
        for name in ("extents", "digest", "applications"):
            about[name]
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{path}: expected a file of eigenvectors, which `onehop lattice eigen -o FILE` writes, found another or a "
            f"damaged one ({error})"
        ) from error
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise BadInput(f"{path}: expected finite numbers, found others; the file was altered")
    return about, arrays


def _guess(operator: Staggered, source: Vectors, mass: float, low: Eigenvectors) -> Vectors:
    """Return the solution of M x = b in the space of the eigenvectors: x_e by them, x_o by x_e."""
    sites = _EvenSites(operator)
    right = operator.apply(source, mass, dagger=True)[sites.even].ravel()
    rows = low.vectors.reshape(len(low.values), -1)
    parts = sites.products(rows, right[None])[:, 0] / (low.values + 4 * mass**2)
    even = sites.field(parts @ rows)
    odd = (source - operator.dslash(even)) / (2 * mass)
    odd[sites.even] = 0
    return even + odd


def deflated_solve(
    operator: Staggered,
    source: NDArray[Any],
    mass: float | Sequence[float],
    low: Eigenvectors,
    **keywords: Unpack[SolverKeywords],
) -> QuarkSolve:
    """Solve M x = b as `Staggered.solve`, from the solution in the space of the lowest eigenvectors. Collective.

    Conjugate gradients then converge as if these eigenvalues were not there. With eigenvectors of low accuracy they
    restart whenever the residual has fallen as far as the eigenvectors are accurate. Several right-hand sides or
    masses are solved one after the other.
    """
    options = SolverOptions.of("deflated_solve", keywords)
    source = np.asarray(source, np.complex128)
    shape = (*operator.geometry.block_shape, 3)
    several = source.ndim > len(shape)
    masses = [float(one) for one in np.atleast_1d(mass)]
    if several and len(masses) > 1:
        raise BadInput(f"expected one right-hand side for several masses, found {len(source)}")
    pairs = [(one, each) for one in (source if several else [source]) for each in masses]
    solved = [_deflated(operator, one, each, low, options) for one, each in pairs]
    if not several and np.ndim(mass) == 0:
        return solved[0]
    return _joined(solved, np.stack([one.solution for one in solved]))._replace(
        true_residual=max(one.true_residual for one in solved),
        residuals=tuple(one.true_residual for one in solved),
        converged=all(one.converged for one in solved),
    )


def _deflated(
    operator: Staggered, source: Vectors, mass: float, low: Eigenvectors, options: SolverOptions
) -> QuarkSolve:
    """Solve for one right-hand side and mass."""
    sites = _EvenSites(operator)
    norm = sites.norm(source)
    if not (norm > 0 and np.isfinite(norm)) or not mass > 0:
        return operator.solve(source, mass, **vars(options))
    # The errors of the eigenvectors leave a part of the low modes. It counts once the residual has fallen as far, and
    # the next stage takes it out again.
    stage = min(0.1, 3 * low.error(mass))
    solution, residual, parts = np.zeros_like(source), 1.0, []
    left, wanted = options.iterations, options.tolerance
    while residual > wanted and (not parts or left > 0):
        rest = source - operator.apply(solution, mass) if parts else source
        guess = _guess(operator, rest, mass, low)
        rest = rest - operator.apply(guess, mass)
        before, residual = residual, sites.norm(rest) / norm
        if residual > before:  # the eigenvectors are of no use for this source
            return operator.solve(source, mass, **vars(options))
        solution = solution + guess
        goal = wanted if wanted >= residual * stage**1.5 else residual * stage
        how = vars(options) | {"tolerance": 0.9 * goal / residual, "iterations": left}
        parts.append(operator.solve(rest, mass, **how))
        solution, left = solution + parts[-1].solution, left - parts[-1].iterations
        residual *= parts[-1].true_residual
        if not parts[-1].converged:
            break
    return _joined(parts, solution)._replace(
        true_residual=residual, residuals=(residual,), converged=residual <= wanted
    )


def _joined(parts: list[QuarkSolve], solution: Vectors) -> QuarkSolve:
    """Return a result with the sums of the counts and times of several solves."""
    names = ("iterations", "seconds", "communication_seconds", "flops", "bytes", "reliable_updates")
    sums = {name: sum(getattr(one, name) for one in parts) for name in names}
    return parts[-1]._replace(solution=solution, **sums)
