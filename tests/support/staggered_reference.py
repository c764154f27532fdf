"""Staggered quarks in plain NumPy on a whole lattice, and the fields that their tests begin with."""

import numpy as np


def coordinates(extents: tuple[int, ...]) -> list[np.ndarray]:
    """Of every site, direction 0 first, each of the shape of the lattice."""
    return list(np.indices(extents[::-1])[::-1])


def dslash_by_numpy(links: np.ndarray, field: np.ndarray, antiperiodic: bool) -> np.ndarray:
    """The one-link formula, by rolling the whole lattice."""
    return dslash_of_links(with_phases(links, antiperiodic), None, field)


def with_phases(links: np.ndarray, antiperiodic: bool) -> np.ndarray:
    extents = links.shape[-4::-1]
    dims = len(extents)
    at = coordinates(extents)
    found = links.copy()
    for mu in range(dims):
        if antiperiodic and mu == dims - 1:
            found[-1, ..., mu, :, :] *= -1
        found[..., mu, :, :] *= ((-1.0) ** sum(at[:mu], start=np.zeros(links.shape[:-3])))[..., None, None]
    return found


def dslash_of_links(fat: np.ndarray, long: np.ndarray | None, field: np.ndarray) -> np.ndarray:
    """The formula for given links."""
    dims = field.ndim - 1
    found = np.zeros_like(field)
    for links, length in ((fat, 1), (long, 3)):
        for mu in range(dims) if links is not None else ():
            link, axis = links[..., mu, :, :], dims - 1 - mu
            found += np.einsum("...ij,...j", link, np.roll(field, -length, axis))
            found -= np.roll(np.einsum("...ji,...j", link.conj(), field), length, axis)
    return found


def random_links(extents: tuple[int, ...], seed: int) -> np.ndarray:
    """Matrices of no group at all."""
    random = np.random.default_rng(seed)
    shape = (*extents[::-1], len(extents), 3, 3)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)) / 3


def some_field(extents: tuple[int, ...], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    shape = (*extents[::-1], 3)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def dslash_site_by_site(links: np.ndarray, field: np.ndarray, order: str, antiperiodic: bool) -> np.ndarray:
    """The one-link formula with the phases of an order of directions, such as "txyz", one site after the other."""
    extents = field.shape[-2::-1]
    dims = len(extents)
    names = "xyz"[: dims - 1] + "t"
    found = np.zeros_like(field)
    for site in np.ndindex(*extents):
        for mu in range(dims):
            earlier = order[: order.index(names[mu])]
            eta = (-1) ** sum(site[names.index(one)] for one in earlier if one in names)
            ahead, behind = list(site), list(site)
            ahead[mu], behind[mu] = (site[mu] + 1) % extents[mu], (site[mu] - 1) % extents[mu]
            last = antiperiodic and mu == dims - 1
            forward = -eta if last and site[mu] == extents[mu] - 1 else eta
            backward = -eta if last and site[mu] == 0 else eta
            here, up, down = site[::-1], tuple(ahead[::-1]), tuple(behind[::-1])
            found[here] += forward * links[(*here, mu)] @ field[up]
            found[here] -= backward * links[(*down, mu)].conj().T @ field[down]
    return found


def phase_change(extents: tuple[int, ...]) -> np.ndarray:
    """The signs (-1)^(t (x + y + z)) that lead from phases that begin with x to those that begin with t."""
    at = coordinates(extents)
    return (-1.0) ** (at[-1] * sum(at[:-1], start=np.zeros(extents[::-1])))
