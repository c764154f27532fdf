"""Reference for Wilson quarks in plain NumPy on a whole lattice, with gamma matrices from Pauli matrices.

And the fields that their tests begin with.
"""

import numpy as np

SIGMA = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
ONE = np.eye(2)
# gamma_k = -sigma_2 (x) sigma_k but for the sign of the second, gamma_4 = sigma_1 (x) 1.
GAMMA = [
    np.kron(-SIGMA[1], SIGMA[0]),
    np.kron(SIGMA[1], SIGMA[1]),
    np.kron(-SIGMA[1], SIGMA[2]),
    np.kron(SIGMA[0], ONE).astype(complex),
]
GAMMA5 = GAMMA[0] @ GAMMA[1] @ GAMMA[2] @ GAMMA[3]
TOLERANCE = {"double": 2e-13, "single": 3e-5, "half": 6e-4}  # of fields, relative to the largest number


def shifted(field: np.ndarray, mu: int, step: int) -> np.ndarray:
    """The field at x + step * mu, on the whole periodic lattice (t, z, y, x, ...)."""
    return np.roll(field, -step, 3 - mu)


def with_boundary(links: np.ndarray, antiperiodic: bool) -> np.ndarray:
    links = links.copy()
    if antiperiodic:
        links[-1, ..., 3, :, :] *= -1
    return links


def dslash(links: np.ndarray, field: np.ndarray, antiperiodic: bool = True) -> np.ndarray:
    """D v by its formula; field of shape (t, z, y, x, spin, colour)."""
    links = with_boundary(links, antiperiodic)
    found = np.zeros_like(field)
    for mu in range(4):
        u = links[..., mu, :, :]
        ahead = np.einsum("...ij,...sj->...si", u, shifted(field, mu, 1))
        behind = shifted(np.einsum("...ji,...sj->...si", u.conj(), field), mu, -1)
        found += np.einsum("st,...tc->...sc", np.eye(4) - GAMMA[mu], ahead)
        found += np.einsum("st,...tc->...sc", np.eye(4) + GAMMA[mu], behind)
    return found


def field_strength(links: np.ndarray, mu: int, nu: int) -> np.ndarray:
    """(Q - Q^dagger) / 8: the plaquettes of the four quadrants around each site."""

    def plaquette(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        return a @ b @ c @ d

    def dagger(m: np.ndarray) -> np.ndarray:
        return m.conj().swapaxes(-1, -2)

    u, v = links[..., mu, :, :], links[..., nu, :, :]
    # The plaquette that begins and ends at its lower left corner, and the same begun at its other corners.
    lower_left = plaquette(u, shifted(v, mu, 1), dagger(shifted(u, nu, 1)), dagger(v))
    lower_right = plaquette(shifted(v, mu, 1), dagger(shifted(u, nu, 1)), dagger(v), u)
    upper_right = plaquette(dagger(shifted(u, nu, 1)), dagger(v), u, shifted(v, mu, 1))
    upper_left = plaquette(dagger(v), u, shifted(v, mu, 1), dagger(shifted(u, nu, 1)))
    q = lower_left + shifted(lower_right, mu, -1) + shifted(shifted(upper_right, mu, -1), nu, -1)
    q = q + shifted(upper_left, nu, -1)
    return (q - dagger(q)) / 8


def clover(links: np.ndarray, weight: float) -> np.ndarray:
    """The clover term as 12x12 matrices: 1 + weight / 2 * i sigma F, summed over all mu, nu."""
    found = np.broadcast_to(np.eye(12).reshape(4, 3, 4, 3), (*links.shape[:4], 4, 3, 4, 3)).astype(complex)
    for mu in range(4):
        for nu in range(4):
            if mu != nu:
                sigma = 0.5j * (GAMMA[mu] @ GAMMA[nu] - GAMMA[nu] @ GAMMA[mu])
                strength = field_strength(links, mu, nu)
                found += 0.5j * weight * np.einsum("st,...cd->...sctd", sigma, strength)
    return found


def apply(
    links: np.ndarray, field: np.ndarray, kappa: float, csw: float = 0.0, antiperiodic: bool = True
) -> np.ndarray:
    """M v."""
    found = field if csw == 0 else np.einsum("...sctd,...td->...sc", clover(links, kappa * csw), field)
    return found - kappa * dslash(links, field, antiperiodic)


def some_field(extents: tuple[int, ...], seed: int, *front: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    shape = (*front, *extents[::-1], 4, 3)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def close(found: np.ndarray, expected: np.ndarray, precision: str = "double") -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[precision] * abs(expected).max())


def gamma5(field: np.ndarray) -> np.ndarray:
    return np.einsum("st,...tc->...sc", GAMMA5, field)
