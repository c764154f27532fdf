"""Reference for the lattice kernels: whole lattices in plain NumPy, by rolling, independent of the library."""

import itertools

import numpy as np
import scipy.linalg

# Links have the shape (t, z, y, x, direction, 3, 3); one direction's has no `direction`.


def adjoint(m: np.ndarray) -> np.ndarray:
    return m.conj().swapaxes(-1, -2)


def shifted(field: np.ndarray, direction: int, by: int, dims: int) -> np.ndarray:
    """The field at x + by * direction."""
    return np.roll(field, -by, axis=dims - 1 - direction)


def along(links: np.ndarray, path: list[int]) -> np.ndarray:
    """The product of links along a path; direction mu ahead is mu + 1, back is -(mu + 1)."""
    dims = links.ndim - 3
    product = np.broadcast_to(np.eye(3, dtype=complex), (*links.shape[:dims], 3, 3))
    at = [0] * dims
    for step in path:
        mu = abs(step) - 1
        if step < 0:
            at[mu] -= 1
        link = links[..., mu, :, :]
        for direction in range(dims):
            link = shifted(link, direction, at[direction], dims)
        if step > 0:
            at[mu] += 1
        product = product @ (link if step > 0 else adjoint(link))
    return product


def fat_link(links: np.ndarray, mu: int, weights: tuple[float, ...]) -> np.ndarray:
    """The sum over all paths, one by one."""
    dims = links.ndim - 3
    one, three, five, seven, lepage, _ = weights
    m = mu + 1
    total = one * along(links, [m])
    others = [nu + 1 for nu in range(dims) if nu != mu]
    for count, weight in ((1, three), (2, five), (3, seven)):
        for around in itertools.permutations(others, count):
            for signs in itertools.product((1, -1), repeat=count):
                out = [s * a for s, a in zip(signs, around, strict=True)]
                total = total + weight * along(links, [*out, m, *(-step for step in reversed(out))])
    for nu in others:
        for step in (nu, -nu):
            total = total + lepage * along(links, [step, step, m, -step, -step])
    return total


def fat_and_long(links: np.ndarray, weights: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    dims = links.ndim - 3
    fat = [fat_link(links, mu, weights) for mu in range(dims)]
    long_links = [weights[5] * along(links, [mu + 1] * 3) for mu in range(dims)]
    return np.stack(fat, axis=dims), np.stack(long_links, axis=dims)


def nearest_unitary(m: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(m)
    return left @ right


def staples(links: np.ndarray, mu: int, directions: list[int]) -> np.ndarray:
    m = mu + 1
    paths = [[s * (nu + 1), m, -s * (nu + 1)] for nu in directions if nu != mu for s in (1, -1)]
    return sum(along(links, path) for path in paths)


def algebra(m: np.ndarray) -> np.ndarray:
    """The traceless anti-Hermitian part."""
    half = (m - adjoint(m)) / 2
    return half - np.trace(half, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)


def exponential(m: np.ndarray) -> np.ndarray:
    return scipy.linalg.expm(m)


def transformed(links: np.ndarray, turn: np.ndarray, distance: int = 1) -> np.ndarray:
    """Links after a gauge transformation by one matrix a site; distance 3 for long links."""
    dims = links.ndim - 3
    turned = np.empty_like(links)
    for mu in range(dims):
        ahead = shifted(turn, mu, distance, dims)
        turned[..., mu, :, :] = turn @ links[..., mu, :, :] @ adjoint(ahead)
    return turned


def rectangles(links: np.ndarray, mu: int) -> np.ndarray:
    """The sum of the paths that close with the link of direction mu to a rectangle of 2x1 plaquettes."""
    m, paths = mu + 1, []
    for n in (nu + 1 for nu in range(links.ndim - 3) if nu != mu):
        for s in (n, -n):
            paths += [[s, s, m, -s, -s], [s, m, m, -s, -m], [-m, s, m, m, -s]]
    return sum(along(links, path) for path in paths)


def flow_slopes(links: np.ndarray, action: str = "wilson") -> np.ndarray:
    dims = links.ndim - 3
    each = []
    for mu in range(dims):
        link = links[..., mu, :, :]
        around = staples(links, mu, list(range(dims)))
        if action != "wilson":
            around = 5 / 3 * around - rectangles(links, mu) / 12
        force = algebra(around @ adjoint(link))
        if action == "zeuthen":
            ahead = link @ shifted(force, mu, 1, dims) @ adjoint(link)
            behind = shifted(adjoint(link) @ force @ link, mu, -1, dims)
            force = force + (ahead + behind - 2 * force) / 12
        each.append(force)
    return np.stack(each, axis=dims)


def embedded_flow_step(links: np.ndarray, epsilon: float, action: str = "wilson") -> np.ndarray:
    """One step of the second-order method that shares the first two stages of the third-order one."""
    first = epsilon * flow_slopes(links, action)
    second = epsilon * flow_slopes(exponential(first / 4) @ links, action)
    return exponential(2 * second - first) @ links


def of_largest_trace(m: np.ndarray) -> np.ndarray:
    """The SU(3) matrix U that maximises Re tr(U m^dagger): the phases of m's singular vectors, by bisection."""
    left, sizes, right = np.linalg.svd(m)
    total = -np.angle(np.linalg.det(left @ right))
    low, high = -sizes[..., -1], sizes[..., -1].copy()
    for _ in range(100):
        middle = (low + high) / 2
        below = np.arcsin(np.clip(middle[..., None] / sizes, -1, 1)).sum(axis=-1) < total
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    phases = np.arcsin(np.clip(low[..., None] / sizes, -1, 1))
    assert abs(phases.sum(axis=-1) - total).max() < 1e-12  # the maximum has cosines that are not negative
    return left * np.exp(1j * phases)[..., None, :] @ right


def hyp_link(links: np.ndarray, alpha: tuple[float, ...], mu: int, around: frozenset[int]) -> np.ndarray:
    """A link of HYP smearing, smeared in the directions `around`; `alpha` begins with the innermost level."""
    link = links[..., mu, :, :]
    if not around:
        return link
    dims, weight, total = links.ndim - 3, alpha[len(around) - 1], 0
    for nu in around:
        side, middle = (hyp_link(links, alpha, which, around - {nu}) for which in (nu, mu))
        ahead = shifted(side, mu, 1, dims)
        total = total + side @ shifted(middle, nu, 1, dims) @ adjoint(ahead)
        total = total + shifted(adjoint(side) @ middle @ ahead, nu, -1, dims)
    return of_largest_trace((1 - weight) * link + weight / (2 * len(around)) * total)


def one_plaquette(beta: float) -> float:
    """The mean of Re tr U / 3 with weight exp(beta / 3 Re tr U), by Weyl's integral over the eigenvalues of SU(3)."""
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    a, b = np.meshgrid(angles, angles)
    z = np.exp(1j * np.stack([a, b, -a - b]))
    measure = np.abs((z[0] - z[1]) * (z[1] - z[2]) * (z[2] - z[0])) ** 2
    trace = z.sum(axis=0).real
    weight = measure * np.exp(beta / 3 * trace)
    return float((weight * trace).sum() / weight.sum() / 3)
