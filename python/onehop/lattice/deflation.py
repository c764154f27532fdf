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


def _guess(operator: Staggered, sources: Vectors, mass: float, low: Eigenvectors) -> Vectors:
    """Return the part of the solutions of M x = b on the even sites that is in the space of the eigenvectors."""
    sites = EvenSites(operator)
    rows = low.vectors.reshape(len(low.values), -1)
    right = operator.apply(sources, mass, dagger=True)[:, sites.even].reshape(len(sources), -1)
    parts = sites.products(rows, right) / (low.values + 4 * mass**2)[:, None]
    guess = np.zeros_like(sources)
    guess[:, sites.even] = (parts.T @ rows).reshape(len(sources), -1, 3)
    return guess


def deflated_solve(
    operator: Staggered,
    source: NDArray[Any],
    mass: float | Sequence[float],
    low: Eigenvectors,
    **keywords: Unpack[SolverKeywords],
) -> QuarkSolve:
    """Solve M x = b as `Staggered.solve`, from the solution in the space of the lowest eigenvectors. Collective.

    Conjugate gradients then converge as if these eigenvalues were not there. With eigenvectors of low accuracy they
    restart whenever the residual has fallen as far as the eigenvectors are accurate. Several right-hand sides are
    solved together, several masses one after the other.
    """
    options = SolverOptions.of("deflated_solve", keywords)
    source = complex_array(source, "the field")
    shape = (*operator.geometry.block_shape, 3)
    several = source.ndim > len(shape)
    masses = real_numbers(np.ravel(mass), "mass")
    if several and len(masses) > 1:
        raise BadInput(f"expected one right-hand side for several masses, found {len(source)}")
    rows = source if several else source[None]
    solved = [_deflated(operator, rows, each, low, options) for each in masses]
    if several:
        return solved[0]
    if np.ndim(mass) == 0:
        return solved[0]._replace(solution=solved[0].solution[0])
    return _joined(solved, np.concatenate([one.solution for one in solved]))._replace(
        true_residual=max(one.true_residual for one in solved),
        residuals=tuple(one.true_residual for one in solved),
        converged=all(one.converged for one in solved),
    )


def _deflated(
    operator: Staggered, sources: Vectors, mass: float, low: Eigenvectors, options: SolverOptions
) -> QuarkSolve:
    """Solve for several right-hand sides and one mass."""
    sites = EvenSites(operator)
    norms = np.array([sites.norm(one) for one in sources])
    if not ((norms > 0) & np.isfinite(norms)).all() or not mass > 0:
        return operator.solve(sources, mass, **vars(options))
    # The errors of the eigenvectors leave a part of the low modes. It counts once the residual has fallen as far, and
    # the next stage takes it out again.
    stage = min(0.1, 3 * low.error(mass))
    solution, residuals, parts = np.zeros_like(sources), np.ones(len(sources)), []
    left, wanted = options.iterations, options.tolerance
    while not parts or (residuals.max() > wanted and left > 0):
        rest = sources - operator.apply(solution, mass) if parts else sources
        guess = _guess(operator, rest, mass, low)
        rest = rest - operator.apply(guess, mass)
        residuals = np.array([sites.norm(one) for one in rest]) / norms
        goals = np.where(wanted >= residuals * stage**1.5, wanted, residuals * stage)
        how = vars(options) | {"tolerance": min(1.0, 0.9 * (goals / residuals).min()), "iterations": left}
        parts.append(operator.solve(rest, mass, **how))
        solution, left = solution + guess + parts[-1].solution, left - parts[-1].iterations
        residuals = residuals * parts[-1].residuals
        if not parts[-1].converged:
            break
    worst = float(residuals.max())
    return _joined(parts, solution)._replace(
        true_residual=worst, residuals=tuple(map(float, residuals)), converged=worst <= wanted
    )


def _joined(parts: list[QuarkSolve], solution: Vectors) -> QuarkSolve:
    """Return a result with the sums of the counts and times of several solves."""
    names = ("iterations", "seconds", "communication_seconds", "flops", "bytes", "reliable_updates")
    sums = {name: sum(getattr(one, name) for one in parts) for name in names}
    return parts[-1]._replace(solution=solution, **sums)
