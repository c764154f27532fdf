"""Solves for staggered quarks that are deflated with the lowest eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import complex_array, real_numbers
from onehop.error import BadInput
from onehop.lattice.eigen import Eigenvectors, EvenSites, Vectors
from onehop.lattice.operators import QuarkSolve, SolverOptions
from onehop.lattice.staggered import Staggered

if TYPE_CHECKING:
    from onehop._keywords import SolverKeywords, Unpack


def _guess(operator: Staggered, source: Vectors, mass: float, low: Eigenvectors) -> Vectors:
    """Return the solution of M x = b in the space of the eigenvectors: x_e by them, x_o by x_e."""
    sites = EvenSites(operator)
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
    source = complex_array(source, "the field")
    shape = (*operator.geometry.block_shape, 3)
    several = source.ndim > len(shape)
    masses = real_numbers(np.ravel(mass), "mass")
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
    sites = EvenSites(operator)
    norm = sites.norm(source)
    if not (norm > 0 and np.isfinite(norm)) or not mass > 0:
        return operator.solve(source, mass, **vars(options))
    # The errors of the eigenvectors leave a part of the low modes. It counts once the residual has fallen as far, and
    # the next stage takes it out again.
    stage = min(0.1, 3 * low.error(mass))
    solution, residual, parts = np.zeros_like(source), 1.0, []
    left, wanted = options.iterations, options.tolerance
    while not parts or (residual > wanted and left > 0):
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
