"""Fields in every precision: conversion from and to lexicographic order, and neighbours on every grid."""

import numpy as np
import pytest

from onehop import BadInput, Group
from onehop.lattice import Field, Geometry
from threads import run_threads

CASES = [
    ((8, 8, 4, 8), (1, 1, 1, 2), 8, 1, 2, (3,)),
    ((6, 6, 4), (2, 2, 1), 1, 1, 2, (4, 3)),  # odd blocks
    ((4, 6, 12, 4), (1, 2, 1, 1), 2, 3, 2, (3,)),
    ((5, 6), (1, 3), 1, 1, 1, (2, 3, 3)),
    ((4, 4, 4, 4), (2, 2, 2, 1), 2, 1, 2, (4, 3, 3)),
]


def some_numbers(geometry: Geometry, numbers: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(1)
    shape = (*geometry.shape, *numbers)
    sizes = 10.0 ** random.integers(-3, 4, geometry.shape)  # values of very different size
    whole = (random.normal(size=shape) + 1j * random.normal(size=shape)) * sizes.reshape(
        *geometry.shape, *[1] * len(numbers)
    )
    whole.reshape(-1, int(np.prod(numbers)))[3] = 0
    return whole


@pytest.mark.parametrize("precision", ["double", "single", "half"])
@pytest.mark.parametrize(("extents", "grid", "lanes", "width", "parities", "numbers"), CASES)
def test_lexicographic_order_both_ways_and_neighbours(
    extents: tuple[int, ...],
    grid: tuple[int, ...],
    lanes: int,
    width: int,
    parities: int,
    numbers: tuple[int, ...],
    precision: str,
) -> None:
    geometry = Geometry(extents, grid, lanes=lanes, width=width, parities=parities)
    whole = some_numbers(geometry, numbers)
    dims, inner = len(extents), tuple(range(len(extents), whole.ndim))
    rounded = whole if precision == "double" else whole.astype(np.complex64)
    if precision == "half":  # 16-bit integers with a scale per site
        largest = np.maximum(abs(whole.real), abs(whole.imag)).max(axis=inner, keepdims=True)
        scale = (largest / 32767).astype(np.float32)
        by = np.where(scale > 0, scale, 1)
        rounded = np.round(whole.real / by).astype(np.float32) * scale + 1j * (
            np.round(whole.imag / by).astype(np.float32) * scale
        )
        assert (abs(rounded - whole) <= 0.71 * scale * 1.0001).all()

    def one_rank(group: Group) -> None:
        field = Field(geometry, group, numbers, precision)
        assert field.memory["numbers"].shape[1:] == (np.prod(numbers), 2, lanes)
        mine = geometry.block_slices(group.rank)
        for times in (1, 2):  # the second exchange uses the other slots
            field.lexicographic = times * whole[mine]
            if times == 1:
                with field.faces():
                    assert (field.lexicographic == rounded[mine]).all()
            else:
                for parity in range(parities) if parities == 2 else (None,):
                    field.faces(parity).run()
            for direction in range(dims):
                for distance in (*range(-width, 0), *range(1, width + 1)):
                    expected = times * np.roll(rounded, -distance, axis=dims - 1 - direction)
                    np.testing.assert_array_equal(field.beside(direction, distance), expected[mine])

    run_threads(geometry.ranks, one_rank)


def test_half_precision_takes_a_quarter() -> None:
    geometry = Geometry((8, 8, 8, 8), lanes=8)
    bytes_of = {p: Field(geometry, Group.alone(), (4, 3), p).memory.nbytes / 8**4 for p in ("double", "half")}
    assert bytes_of == {"double": 192, "half": 52}


def test_bad_input_is_refused() -> None:
    geometry = Geometry((4, 4), (1, 2))
    with pytest.raises(BadInput, match="geometry's 2 ranks, found 1"):
        Field(geometry, Group.alone())
    geometry = Geometry((4, 4))
    with pytest.raises(BadInput, match="half, single or double"):
        Field(geometry, Group.alone(), precision="quarter")
    with pytest.raises(BadInput, match="integers above 0"):
        Field(geometry, Group.alone(), (0, 3))
    field = Field(geometry, Group.alone())
    with pytest.raises(BadInput, match=r"block of shape \(4, 4, 3\)"):
        field.lexicographic = np.zeros((4, 4, 4))
    with pytest.raises(BadInput, match="1 to 1 sites either way"):
        field.beside(0, 2)


def test_numbers_that_do_not_fit_are_refused() -> None:
    geometry = Geometry((4, 4), lanes=2)
    whole = np.full((*geometry.shape, 1), 1 + 1j)
    for precision in ("single", "half"):
        field = Field(geometry, Group.alone(), (1,), precision)
        for wrong in (1e39, np.inf, np.nan):
            whole[1, 2] = wrong
            with pytest.raises(BadInput, match="expected finite numbers"):
                field.lexicographic = whole
        assert not field.lexicographic.any()  # unchanged
        whole[1, 2] = 1e-34
        field.lexicographic = whole
        kept = field.lexicographic[1, 2, 0]
        assert kept == (0 if precision == "half" else pytest.approx(1e-34, rel=1e-6))
    for shape in ((), (-1, -3), (2.7,), (3, 0), 3.5):
        with pytest.raises(BadInput, match="integers above 0"):
            Field(geometry, Group.alone(), shape)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="sites either way"):
        field.beside(0, 1.5)  # type: ignore[arg-type]
