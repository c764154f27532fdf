"""Fields on a lattice that is split over ranks, stored as SIMD vectors with ghosts, in three precisions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import whole_number
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.geometry import Geometry
from onehop.plan import Plan
from onehop.text import counted

__all__ = ["Field"]

# In half precision, sites whose largest number is below this become 0: single precision cannot represent their scale.
SMALLEST_SITE = float(np.finfo(np.float32).tiny) * 32767

REALS = {"double": np.float64, "single": np.float32, "half": np.int16}
LARGEST = 32767


class Field:
    """Complex numbers at every site of this rank's block, stored in the geometry's order and followed by ghosts.

    Parameters
    ----------
    geometry : Geometry
        The layout of sites; its width is the number of ghost layers.
    group : Group
        The ranks, as many as the geometry has.
    numbers : sequence of int
        The shape of the numbers at a site: (3,) is a colour vector, (4, 3) a spinor, (4, 3, 3) the links of four
        directions.
    precision : str
        "double", "single", or "half": 16-bit integers with a scale for every site.

    Attributes
    ----------
    memory : structured array of shape (vectors + ghosts,)
        `memory["numbers"]` has the shape (vectors + ghosts, numbers of a site, 2, lanes): real and imaginary parts;
        in half precision `memory["scale"]`, of shape (vectors + ghosts, lanes), holds the unit of the integers.

    Raises
    ------
    BadInput
        The group has another number of ranks, a site has no numbers, or the precision is unknown.
    """

    def __init__(
        self, geometry: Geometry, group: Group, numbers: Sequence[int] = (3,), precision: str = "double"
    ) -> None:
        if group.size != geometry.ranks:
            raise BadInput(
                f"expected a group of the geometry's {counted(geometry.ranks, 'rank')}, found {group.size}"
            )
        if precision not in REALS:
            raise BadInput(f"expected the precision half, single or double, found {precision!r}")
        self.geometry, self.group, self.precision = geometry, group, precision
        self.numbers = _shape_of_site(numbers)
        count = int(np.prod(self.numbers))
        parts: list[tuple[str, type, tuple[int, ...]]] = [
            ("numbers", REALS[precision], (count, 2, geometry.lanes))
        ]
        if precision == "half":
            parts.append(("scale", np.float32, (geometry.lanes,)))
        # The ranks of a machine share this memory, so that faces from other ranks take one copy.
        self.memory = group.empty(geometry.vectors + geometry.ghosts, np.dtype(parts))
        self._faces: dict[int | None, Plan] = {}

    @property
    def lexicographic(self) -> NDArray[np.complex128] | NDArray[np.complex64]:
        """A copy of this rank's block in lexicographic order, of shape (t, z, y, x, ...) for four directions.

        The dtype is complex128 in double precision, complex64 otherwise. Assigning an array of this shape stores its
        numbers, rounded to the field's precision; in half precision, sites with numbers below 4e-34 become 0.

        Raises
        ------
        BadInput
            The array has another shape; in single and half precision, numbers are not finite or exceed 3.4e38.
        """
        return self._lexicographic(self._values(self.memory[: self.geometry.vectors]))

    @lexicographic.setter
    def lexicographic(self, block: NDArray[np.complex128]) -> None:
        expected = (*self.geometry.block_shape, *self.numbers)
        if np.shape(block) != expected:
            raise BadInput(f"expected a block of shape {expected}, found {np.shape(block)}")
        flat = np.asarray(block, np.complex128).reshape(*self.geometry.block_shape, -1)
        vectors = self.geometry.to_vectors(np.stack([flat.real, flat.imag], axis=-1))
        own = self.memory[: self.geometry.vectors]
        if self.precision != "double" and not abs(vectors).max(initial=0) <= np.finfo(np.float32).max:
            raise BadInput(f"expected finite numbers that {self.precision} precision can keep, up to 3.4e38")
        if self.precision == "half":
            vectors = np.where(abs(vectors).max(axis=(1, 2), keepdims=True) < SMALLEST_SITE, 0, vectors)
            scale = (abs(vectors).max(axis=(1, 2)) / LARGEST).astype(np.float32)
            own["scale"] = scale
            at_least = np.where(scale > 0, scale, 1)[:, None, None, :]
            vectors = np.clip(np.round(vectors / at_least), -LARGEST, LARGEST)
        own["numbers"] = vectors

    def faces(self, parity: int | None = None) -> Plan:
        """The plan that fills the ghosts. It is built once; computation can overlap with the exchange.

            with field.faces():
                ...  # work on the interior
            above = field.beside(3)

        Collective, and so is the first call for each parity, which builds the plan.

        Parameters
        ----------
        parity : int, optional
            Exchange only the sites whose global coordinates have this parity.
        """
        parity = None if parity is None else whole_number(parity, "parity")
        if parity not in self._faces:
            site_bytes = self.memory.dtype.itemsize // self.geometry.lanes
            schedule = self.geometry.halo(np.uint8, site_bytes, parity=parity)
            self._faces[parity] = Plan(schedule, self.group, [self.memory.view(np.uint8)])
        return self._faces[parity]

    def beside(self, direction: int, distance: int = 1) -> NDArray[np.complex128] | NDArray[np.complex64]:
        """Return, for every site of the block, the numbers of the site `distance` sites ahead (behind if negative).

        The result has the shape of `lexicographic`.

        Raises
        ------
        BadInput
            There is no such direction, or the distance exceeds the width of the halo.
        """
        dims = len(self.geometry.block)
        whole = isinstance(direction, (int, np.integer)) and isinstance(distance, (int, np.integer))
        if not whole or not 0 <= direction < dims or not 1 <= abs(distance) <= self.geometry.width:
            raise BadInput(
                f"expected a direction of 0 to {dims - 1} and 1 to {self.geometry.width} sites either way, "
                f"found {direction} and {distance}"
            )
        side = int(distance > 0)
        numbers, rotated = self.geometry.neighbours(abs(distance))[:, direction, side].T
        found = self._values(self.memory[numbers])
        source = list(self.geometry.lane_source(direction, ("below", "above")[side]))
        return self._lexicographic(np.where(rotated[:, None, None, None] == 1, found[..., source], found))

    def _values(self, memory: NDArray[np.void]) -> NDArray[np.float64] | NDArray[np.float32]:
        """Return the values of vectors, multiplied by their scale in half precision."""
        if self.precision != "half":
            return memory["numbers"]
        return memory["numbers"] * memory["scale"][:, None, None, :]

    def _lexicographic(
        self, vectors: NDArray[np.float64] | NDArray[np.float32]
    ) -> NDArray[np.complex128] | NDArray[np.complex64]:
        parts = self.geometry.from_vectors(vectors)
        return (parts[..., 0] + 1j * parts[..., 1]).reshape(*self.geometry.block_shape, *self.numbers)


def _shape_of_site(numbers: Sequence[int]) -> tuple[int, ...]:
    given = tuple(numbers) if isinstance(numbers, Sequence) else (numbers,)
    if not given or not all(isinstance(one, (int, np.integer)) and one > 0 for one in given):
        raise BadInput(
            f"expected the shape of a site as integers above 0, for example (3,), found {numbers!r}"
        )
    return tuple(int(one) for one in given)
