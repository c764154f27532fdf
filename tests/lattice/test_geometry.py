"""The order of a lattice's sites in memory: neighbours against coordinates, faces in few pieces."""

import itertools
import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onehop
from commands import Command
from onehop.lattice import Geometry
from ranks import Ranks
from threads import run_threads

CASES = [
    ((8, 8), (2, 2), 1, 1, 2),
    ((6, 8), (2, 1), 4, 1, 2),
    ((6, 6, 8), (2, 3, 1), 2, 1, 2),
    ((8, 8, 8, 8), (1, 1, 1, 2), 8, 1, 2),
    ((4, 4, 4, 8), (2, 2, 2, 1), 2, 1, 2),
    ((6, 4, 8, 12), (1, 1, 1, 2), 1, 3, 2),
    (
        (6, 6, 4, 4),
        (2, 1, 2, 2),
        1,
        1,
        2,
    ),  # odd blocks: the meaning of the parities alternates from rank to rank
    ((5, 9, 3), (1, 3, 1), 1, 1, 1),
    ((4, 4, 8, 8), (2, 2, 2, 2), 1, 1, 2),
    ((8,), (4,), 1, 1, 2),
    ((8, 4), (2, 1), 1, 3, 2),  # thinner than two widths: the faces of both sides overlap
    ((6, 4, 8), (2, 1, 2), 1, 3, 2),
]


def make(case: tuple) -> Geometry:
    extents, grid, lanes, width, parities = case
    return Geometry(extents, grid, lanes=lanes, width=width, parities=parities)


def numbered(geometry: Geometry) -> np.ndarray:
    return np.arange(np.prod(geometry.extents)).reshape(geometry.shape)


def filled(geometry: Geometry, rank: int, whole: np.ndarray) -> np.ndarray:
    """Return a rank's vectors and ghosts. The ghosts come from a naive execution of the schedule."""
    parts = [geometry.to_vectors(whole[geometry.block_slices(r)]) for r in range(geometry.ranks)]
    field = np.full((geometry.vectors + geometry.ghosts, geometry.lanes), -1)
    field[: geometry.vectors] = parts[rank]
    for transfer in geometry.halo(np.int64).rounds[0].transfers:
        if transfer.to.rank == rank:
            source = parts[transfer.from_.rank]
            field[transfer.to.slice.element_numbers()] = source[transfer.from_.slice.element_numbers()]
    return field


def check_neighbours(geometry: Geometry) -> None:
    """The tables lead to the neighbours in the whole lattice."""
    whole = numbered(geometry)
    dims = len(geometry.extents)
    for rank in range(geometry.ranks):
        field = filled(geometry, rank, whole)
        assert (field >= 0).all()
        for distance in range(1, geometry.width + 1):
            table = geometry.neighbours(distance)
            for direction, (side, shift) in itertools.product(range(dims), enumerate((1, -1))):
                moved = np.roll(whole, shift * distance, axis=dims - 1 - direction)
                expected = geometry.to_vectors(moved[geometry.block_slices(rank)])
                numbers, rotated = table[:, direction, side].T
                found = field[numbers]
                source = list(geometry.lane_source(direction, ("below", "above")[side]))
                found = np.where(rotated[:, None] == 1, found[:, source], found)
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_those_of_the_lattice(case: tuple) -> None:
    geometry = make(case)
    check_neighbours(geometry)
    onehop.verify_or_throw(geometry.halo())


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4]),
)
def test_neighbours_of_any_lattice(directions: Sequence[tuple[int, int]], lanes: int) -> None:
    extents = [2 * cuts * half for cuts, half in directions]
    grid = [cuts for cuts, _ in directions]
    if np.prod(grid) > 12 or np.prod(extents) > 4000:
        return
    geometry = Geometry(extents, grid, lanes=Geometry.max_lanes(extents, grid, lanes))
    check_neighbours(geometry)
    onehop.verify_or_throw(geometry.halo())


@pytest.mark.parametrize("case", CASES)
def test_parities_interior_and_order(case: tuple) -> None:
    geometry = make(case)
    block = np.prod(geometry.block)
    assert sorted(geometry.sites.ravel()) == list(range(block))
    coordinates = np.array(np.unravel_index(geometry.sites, geometry.block_shape))[::-1]
    neighbours = geometry.neighbours(geometry.width)[..., 0].reshape(geometry.vectors, -1)
    at = 0
    for parity in range(geometry.parities):
        begin, interior, end = geometry.parity_range(parity)
        assert begin == at
        at = end
        assert (coordinates.sum(axis=0)[begin:end] % geometry.parities == parity).all()
        needs = (neighbours[begin:end] >= geometry.vectors).any(axis=1)
        assert not needs[: interior - begin].any()
        assert needs[interior - begin :].all()
        if geometry.parities == 2:  # neighbours at odd distance have the other parity
            own = neighbours[begin:end]
            first, _, last = geometry.parity_range(1 - parity)
            assert (
                (own >= geometry.vectors) | ((own >= first) & (own < last)) | (geometry.width % 2 == 0)
            ).all()
    assert at == geometry.vectors


def test_all_faces_but_the_unavoidable_are_one_piece() -> None:
    def pieces(geometry: Geometry) -> list[int]:
        return [
            geometry.face(direction, side, 0).pieces
            for direction in range(len(geometry.extents))
            for side in ("below", "above")
            if geometry.grid[direction] > 1
        ]

    assert pieces(Geometry((8, 8, 8, 8), (1, 1, 1, 2))) == [1, 1]
    assert pieces(Geometry((8, 8, 8, 8), (2, 1, 1, 1), lanes=8)) == [1, 1]
    assert sorted(pieces(Geometry((12, 12), (2, 2), parities=1))) == [1, 1, 1, 2]
    assert sorted(pieces(Geometry((16, 16, 16, 16), (1, 2, 1, 2)))) == [1, 1, 1, 2]
    three = sorted(pieces(Geometry((16, 16, 16, 16), (1, 2, 2, 2))))
    assert three == [1, 1, 1, 2, 5, 5]
    four = Geometry((16, 16, 16, 16), (2, 2, 2, 2))
    assert sum(pieces(four)) < 0.1 * sum(
        four.lexicographic_pieces(direction, side, 0) for direction in range(4) for side in ("below", "above")
    )


def test_lexicographic_pieces_are_counted_as_slices_count_them() -> None:
    geometry = Geometry((6, 4, 8), (2, 2, 2), parities=1)
    for direction in range(3):
        shape, start, extents = list(geometry.block_shape), [0, 0, 0], list(geometry.block_shape)
        extents[2 - direction] = 1
        expected = onehop.Slice.subarray(shape, start, extents).pieces
        assert geometry.lexicographic_pieces(direction, "below", 0) == expected


def test_a_plan_fills_the_ghosts() -> None:
    geometry = Geometry((4, 8, 8), (1, 2, 2), lanes=2)
    whole = np.random.default_rng(1).normal(size=(*geometry.shape, 3))

    def one_rank(group: onehop.Group) -> np.ndarray:
        field = np.zeros((geometry.vectors + geometry.ghosts, 3, geometry.lanes))
        field[: geometry.vectors] = geometry.to_vectors(whole[geometry.block_slices(group.rank)])
        plans = [onehop.Plan(geometry.halo(np.float64, 3, parity=c), group, [field]) for c in (0, 1)]
        for plan in plans:
            plan.run()
        return field

    sites = numbered(geometry)
    for rank, field in enumerate(run_threads(4, one_rank)):
        expected = whole.reshape(-1, 3)[filled(geometry, rank, sites)]
        np.testing.assert_array_equal(field, np.moveaxis(expected, 1, -1))
        np.testing.assert_array_equal(geometry.from_vectors(field), whole[geometry.block_slices(rank)])


def test_grids_and_lanes_are_chosen() -> None:
    assert Geometry((8, 8, 8, 8), ranks=2).grid == (1, 1, 1, 2)
    assert Geometry((32, 8, 8, 8), ranks=4).grid == (4, 1, 1, 1)
    assert Geometry((8, 8, 8, 8), ranks=16).grid == (
        1,
        1,
        4,
        4,
    )  # the same surface as 2x2x2x2 with half the messages
    assert Geometry.max_lanes((12, 12, 12, 24), (1, 1, 1, 2), 16) == 8
    assert Geometry.max_lanes((16, 16, 16, 16), (1, 1, 1, 2), 16) == 16
    assert Geometry.max_lanes((4, 4, 4, 4), (2, 2, 2, 2), 16) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extents": (8, 8, 9), "grid": (1, 1, 2)}, "9 sites on 2 ranks"),
        ({"extents": (8, 9), "grid": (1, 1)}, "even extents"),
        ({"extents": (8, 8), "grid": (2,)}, "a grid of 2 directions"),
        ({"extents": (8, 8), "grid": (1, 0)}, "1 rank or more"),
        ({"extents": (8, 8), "grid": (4, 1), "width": 3}, "at least 3 sites"),
        ({"extents": (8, 8), "grid": (2, 2), "lanes": 2}, "fewer lanes"),
        ({"extents": (8, 8), "grid": (1, 1), "lanes": 3}, "power of two"),
        ({"extents": (), "grid": ()}, "1 to 4 extents"),
        ({"extents": (4, 4), "ranks": 7}, "lattice that 7 ranks can cut"),
        ({"extents": (4, 4), "width": 4}, "width of 1 to 3"),
        ({"extents": (4, 4), "parities": 3}, "1 or 2 parities"),
        ({"extents": (4.7, 4)}, "extents to be a sequence of whole numbers, found one with 4.7"),
        ({"extents": (4, 4), "grid": 5, "map": "auto"}, "grid: expected a sequence"),
        ({"extents": (4, 4), "grid": (1,), "map": "auto"}, "a grid of 2 directions"),
        ({"extents": (4, 4), "grid": (1.5, 1)}, "grid to be a sequence of whole numbers, found one with 1.5"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(onehop.BadInput, match=message):
        Geometry(**arguments)


def test_command_reports(ranks: Ranks) -> None:
    done = ranks.onehop(
        "lattice", "info", "--extent", 8, 8, 8, 16, "-n", 2, "--lanes", 8, "--json", "-", status=0
    )
    found = json.loads(done.stdout)
    assert found["extent"] == [8, 8, 8, 16]
    assert found["grid"] == [1, 1, 1, 2]
    assert found["interior_sites"] == 8**3 * 6
    assert found["bytes_sent"] == 2 * 8**3 * 48
    assert [(face["bytes"], face["pieces"]) for face in found["faces"]] == [(8**3 * 48, 2)] * 2


def test_command_draws_two_dimensions(command: Command) -> None:
    done = command("lattice", "info", "--extent", "8x8", "--grid", 2, 2, "--parities", 1, status=0)
    *_, picture = done.stdout.split("rank\n")
    rows = [line.replace("[", " ").replace("]", " ").split() for line in picture.strip().splitlines()]
    geometry = Geometry((8, 8), (2, 2), parities=1)
    assert [[int(cell) for cell in row] for row in rows[::-1]] == geometry.from_vectors(
        np.arange(16).reshape(16, 1)
    ).tolist()
    wrong = command("lattice", "info", "--extent", "8", "8", "--grid", "2", status=2)
    assert "each of 2 directions" in wrong.stderr
