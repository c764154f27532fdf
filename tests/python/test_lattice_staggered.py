"""The staggered operator against plain NumPy on the whole lattice, on every grid and with any lanes."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from conftest import Ranks
from onehop import BadInput, Group
from onehop.lattice import Gauge, Geometry, Staggered, StaggeredSolve, read_vectors, write_gauge
from threads import run_threads


def coordinates(extents: tuple[int, ...]) -> list[np.ndarray]:
    """Of every site, direction 0 first, each of the shape of the lattice."""
    return list(np.indices(extents[::-1])[::-1])


def hop_by_numpy(links: np.ndarray, field: np.ndarray, antiperiodic: bool) -> np.ndarray:
    """The one-link formula, by rolling the whole lattice."""
    return hop_of_links(with_phases(links, antiperiodic), None, field)


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


def hop_of_links(fat: np.ndarray, long: np.ndarray | None, field: np.ndarray) -> np.ndarray:
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


def random_gauge(group: Group, extents: tuple[int, ...], grid: tuple[int, ...] | None = None) -> Gauge:
    gauge = Gauge(group, extents, grid)
    gauge.set_random(4)
    return gauge


@pytest.mark.parametrize(
    ("extents", "lanes"),
    [
        ((4, 4, 4, 4), 8),
        ((4, 4, 4, 4), 4),
        ((8, 2, 6, 4), 2),
        ((6, 2, 2, 6), 8),
        ((16, 16), 8),
        ((2, 4, 6), 1),
    ],
)
@pytest.mark.parametrize("antiperiodic", [True, False])
def test_hops_as_by_numpy(extents: tuple[int, ...], lanes: int, antiperiodic: bool) -> None:
    gauge = random_gauge(Group.alone(), extents)
    field = some_field(extents, 1)
    staggered = Staggered(gauge, antiperiodic=antiperiodic, lanes=lanes)
    assert staggered.lanes <= lanes
    expected = hop_by_numpy(gauge.links, field, antiperiodic)
    np.testing.assert_allclose(staggered.hop(field), expected, rtol=0, atol=1e-13)
    again = Staggered(gauge, antiperiodic=not antiperiodic).hop(field)
    assert abs(again - expected).max() > 0.1


@pytest.mark.parametrize(
    ("extents", "grid", "lanes"),
    [
        ((4, 4, 4, 8), (1, 1, 1, 2), 8),
        ((8, 4, 4, 4), (2, 1, 1, 1), 4),
        ((6, 6, 4, 4), (2, 2, 1, 1), 4),  # odd blocks: colours change places from rank to rank
        ((4, 4, 4, 4), (2, 2, 2, 1), 2),
        ((4, 8, 4, 8), (1, 4, 1, 2), 1),
    ],
)
def test_the_same_on_every_grid(extents: tuple[int, ...], grid: tuple[int, ...], lanes: int) -> None:
    field = some_field(extents, 2)
    alone = random_gauge(Group.alone(), extents)
    expected = hop_by_numpy(alone.links, field, True)
    solved = Staggered(alone).solve(field, 0.4)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], np.ndarray, StaggeredSolve]:
        gauge = random_gauge(group, extents, grid)
        staggered = Staggered(gauge, lanes=lanes)
        mine = gauge.geometry.block_slices(group.rank)
        staggered.hop(field[mine])
        return mine, staggered.hop(field[mine]), staggered.solve(field[mine], 0.4)

    for mine, hopped, result in run_threads(int(np.prod(grid)), one_rank):
        np.testing.assert_allclose(hopped, expected[mine], rtol=0, atol=1e-13)
        assert result.converged
        assert abs(result.iterations - solved.iterations) <= 1
        np.testing.assert_allclose(result.solution, solved.solution[mine], rtol=0, atol=1e-8)


def test_is_antihermitian_and_covariant() -> None:
    extents = (4, 4, 4, 4)
    gauge = random_gauge(Group.alone(), extents)
    a, b = some_field(extents, 3), some_field(extents, 4)
    staggered = Staggered(gauge)
    hopped = staggered.hop(b)
    assert np.vdot(a, hopped) == pytest.approx(-np.vdot(staggered.hop(a), b), abs=1e-11)
    turned = Gauge(Group.alone(), extents)
    turned.set_random(77)
    turn = turned.links[..., 0, :, :]
    links = gauge.links
    for mu in range(4):
        ahead = np.roll(turn, -1, axis=3 - mu).conj().swapaxes(-1, -2)
        links[..., mu, :, :] = turn @ links[..., mu, :, :] @ ahead
    gauge.set_links(links)
    found = Staggered(gauge).hop(np.einsum("...ij,...j", turn, b))
    np.testing.assert_allclose(found, np.einsum("...ij,...j", turn, hopped), rtol=0, atol=1e-12)


def test_free_propagator() -> None:
    """On unit links D squared is diagonal in momentum space: minus the sum of (2 sin p)^2."""
    extents, mass = (4, 6, 4, 8), 0.3
    staggered = Staggered(Gauge(Group.alone(), extents), antiperiodic=True)
    source = np.zeros((*extents[::-1], 3), complex)
    source[0, 0, 0, 0, 1] = 1
    x = staggered.solve(source, mass, tolerance=1e-12)
    assert x.converged
    # x = (2 m - D) (4 m^2 - D^2)^-1 b, the inverse by Fourier transform with half-integer frequencies in time.
    sines = []
    for direction, extent in enumerate(extents):
        half = 0.5 if direction == 3 else 0.0
        momentum = 2 * np.pi * (np.arange(extent) + half) / extent
        sines.append((2 * np.sin(momentum)) ** 2)
    total = sum(s.reshape([-1 if 3 - axis == d else 1 for axis in range(4)]) for d, s in enumerate(sines))
    wave = np.exp(1j * np.pi * np.arange(extents[3]) / extents[3])[:, None, None, None]
    y = np.fft.ifftn(np.fft.fftn(source[..., 1] / wave) / (4 * mass**2 + total)) * wave
    field = np.zeros_like(source)
    field[..., 1] = y
    unit = np.broadcast_to(np.eye(3), (*extents[::-1], 4, 3, 3)).astype(complex)
    expected = 2 * mass * field - hop_by_numpy(unit, field, True)
    np.testing.assert_allclose(x.solution, expected, rtol=0, atol=1e-11)


def test_solutions_and_what_is_said_of_them() -> None:
    extents, mass = (4, 4, 4, 4), 0.2
    gauge = random_gauge(Group.alone(), extents)
    staggered = Staggered(gauge)
    source = some_field(extents, 6)
    result = staggered.solve(source, mass, tolerance=1e-11)
    rest = source - 2 * mass * result.solution - hop_by_numpy(gauge.links, result.solution, True)
    residual = np.linalg.norm(rest) / np.linalg.norm(source)
    assert result.converged
    assert residual <= 1.01e-11
    assert result.true_residual == pytest.approx(residual, rel=1e-2)
    assert 0 <= result.communication_seconds < result.seconds
    short = staggered.solve(source, mass, iterations=3)
    rest = source - 2 * mass * short.solution - hop_by_numpy(gauge.links, short.solution, True)
    assert (short.converged, short.iterations) == (False, 3)
    assert short.true_residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(source), rel=1e-10)
    nothing = staggered.solve(np.zeros_like(source), mass)
    assert (nothing.converged, nothing.iterations) == (True, 0)
    assert not nothing.solution.any()


ERRORS = {"double": 1e-13, "single": 2e-5, "half": 2e-3}  # of fields and links of the size of one


@pytest.mark.parametrize(
    ("extents", "lanes", "long"),
    [
        ((8, 8, 8, 8), 8, True),
        ((8, 8, 4, 6), 4, True),
        ((6, 8, 2), 2, True),
        ((4, 2, 6, 4), 1, True),
        ((8, 4, 8, 4), 8, False),
    ],
)
def test_fat_and_long_links_as_by_numpy(extents: tuple[int, ...], lanes: int, long: bool) -> None:
    fat, far = random_links(extents, 1), random_links(extents, 2) if long else None
    staggered = Staggered.of_links(Group.alone(), extents, fat, far, lanes=lanes)
    assert (staggered.lanes, staggered.has_long_links) == (lanes, long)
    fields = np.stack([some_field(extents, seed) for seed in range(6)])
    expected = np.stack([hop_of_links(fat, far, field) for field in fields])
    odd = sum(coordinates(extents)) % 2 == 1
    for precision, error in ERRORS.items():
        close = {"rtol": 0, "atol": error * abs(expected).max()}
        for several in (1, 4, 6):
            np.testing.assert_allclose(
                staggered.hop(fields[:several], precision=precision), expected[:several], **close
            )
        one = staggered.hop(fields[0], precision=precision, colour=1)
        np.testing.assert_allclose(one, np.where(odd[..., None], expected[0], 0), **close)
        applied = staggered.apply(fields[0], 0.3, precision=precision)
        np.testing.assert_allclose(applied, 0.6 * fields[0] + expected[0], **close)
        adjoint = staggered.apply(fields[0], 0.3, dagger=True, precision=precision)
        np.testing.assert_allclose(adjoint, 0.6 * fields[0] - expected[0], **close)
        normal = staggered.apply_normal(fields[:2], 0.3, precision=precision)
        twice = np.stack([hop_of_links(fat, far, field) for field in expected[:2]])
        wanted = 0.36 * fields[:2] - twice
        np.testing.assert_allclose(normal, wanted, rtol=0, atol=3 * error * abs(wanted).max())


@pytest.mark.parametrize(
    ("extents", "grid", "lanes"),
    [
        ((8, 4, 4, 12), (1, 1, 1, 2), 8),
        ((4, 4, 4, 8), (1, 1, 1, 2), 4),  # blocks thinner than two hops
        ((6, 6, 2, 4), (2, 2, 1, 1), 1),  # odd ones
        ((6, 8, 6, 2), (2, 2, 2, 1), 2),
    ],
)
def test_fat_and_long_links_on_every_grid(
    extents: tuple[int, ...], grid: tuple[int, ...], lanes: int
) -> None:
    fat, long = random_links(extents, 3), random_links(extents, 4)
    fields = np.stack([some_field(extents, seed) for seed in (5, 6)])
    expected = np.stack([hop_of_links(fat, long, field) for field in fields])
    alone = Staggered.of_links(Group.alone(), extents, fat, long)
    how = {"reproducible": True, "inner": "half", "tolerance": 1e-9}
    solved = alone.solve(fields, 0.5, **how)
    assert solved.converged

    def one_rank(group: Group) -> tuple:
        mine = Geometry(extents, grid).block_slices(group.rank)
        here = (slice(None), *mine)
        staggered = Staggered.of_links(group, extents, fat[mine], long[mine], grid, lanes=lanes)
        hops = {precision: staggered.hop(fields[here], precision=precision) for precision in ERRORS}
        return here, hops, staggered.solve(fields[here], 0.5, **how)

    for here, hops, result in run_threads(int(np.prod(grid)), one_rank):
        for precision, error in ERRORS.items():
            atol = error * abs(expected).max()
            np.testing.assert_allclose(hops[precision], expected[here], rtol=0, atol=atol)
        # Bit for bit.
        assert (result.iterations, result.residuals) == (solved.iterations, solved.residuals)
        np.testing.assert_array_equal(result.solution, solved.solution[here])


@pytest.mark.parametrize("masses", [0.2, (0.7, 0.2)])
def test_half_faces(masses: float | tuple[float, float]) -> None:
    """They change the way to the solution on two ranks, and the solution not beyond the tolerance."""
    extents, grid = (8, 4, 4, 4), (2, 1, 1, 1)
    fat, long = random_links(extents, 7), 0.1 * random_links(extents, 8)
    source = some_field(extents, 3)

    def one_rank(group: Group) -> list[StaggeredSolve]:
        mine = Geometry(extents, grid).block_slices(group.rank)
        staggered = Staggered.of_links(group, extents, fat[mine], long[mine], grid, threads=1)
        return [
            staggered.solve(source[mine], masses, inner="half", half_faces=half, tolerance=1e-9)
            for half in (False, True)
        ]

    found = run_threads(2, one_rank)
    parts = [np.concatenate([one[i].solution for one in found], axis=-2) for i in range(2)]
    assert (parts[0] != parts[1]).any()
    for part in parts:
        for m, x in zip(np.atleast_1d(masses), part.reshape(-1, *source.shape), strict=True):
            rest = source - 2 * m * x - hop_of_links(fat, long, x)
            assert np.linalg.norm(rest) <= 1.01e-9 * np.linalg.norm(source)
    assert all(one.converged for both in found for one in both)


def test_solves_in_every_precision_and_for_several_sources_and_masses() -> None:
    extents, mass = (8, 4, 4, 4), 0.2
    fat, long = random_links(extents, 7), 0.1 * random_links(extents, 8)
    staggered = Staggered.of_links(Group.alone(), extents, fat, long)
    sources = np.stack([some_field(extents, seed) for seed in range(5)])

    def residual(x: np.ndarray, b: np.ndarray, m: float) -> float:
        rest = b - 2 * m * x - hop_of_links(fat, long, x)
        return float(np.linalg.norm(rest) / np.linalg.norm(b))

    seen: list[tuple[int, float]] = []
    iterations = {}
    for inner in ("double", "single", "half"):
        found = staggered.solve(
            sources, mass, tolerance=1e-11, inner=inner, progress=lambda *at: seen.append(at)
        )
        assert found.converged
        assert found.corrections >= (1 if inner == "double" else 3)
        for b, x, said in zip(sources, found.solution, found.residuals, strict=True):
            assert residual(x, b, mass) == pytest.approx(said, rel=0.05)
            assert said <= 1e-11
        assert found.flops > 0 < found.bytes
        iterations[inner] = found.iterations
    assert max(iterations.values()) < 1.5 * iterations["double"]
    single = staggered.solve(sources[0], mass, tolerance=1e-5, precision="single", inner="half")
    assert single.converged
    assert residual(single.solution, sources[0], mass) < 1.1e-5
    masses = (0.7, 0.2, 0.4)
    even = np.where((sum(coordinates(extents)) % 2 == 0)[..., None], sources[0], 0)
    for inner, source in (("double", even), ("single", sources[0]), ("half", sources[0])):
        found = staggered.solve(source, masses, tolerance=1e-10, inner=inner)
        assert found.converged
        for m, x in zip(masses, found.solution, strict=True):
            assert residual(x, source, m) <= 1e-10
    few = staggered.solve(sources[0], masses, iterations=2)
    assert not few.converged


def test_naik_propagator_is_that_of_momentum_space() -> None:
    """With F = 9/8 and L = -1/24 times the phases, D is i sum of 2 (9/8 sin p - 1/24 sin 3p) times phases."""
    extents, mass = (4, 6, 4, 8), 0.3
    unit = np.broadcast_to(np.eye(3), (*extents[::-1], 4, 3, 3)).astype(complex)
    phased = with_phases(unit, True)
    far = phased.copy()  # a hop of three across the end counts negative
    far[-3:-1, ..., 3, :, :] *= -1
    fat, long = 9 / 8 * phased, -1 / 24 * far
    staggered = Staggered.of_links(Group.alone(), extents, fat, long)
    source = np.zeros((*extents[::-1], 3), complex)
    source[0, 0, 0, 0, 1] = 1
    found = staggered.solve(source, mass, tolerance=1e-12, inner="single")
    assert found.converged
    total = np.zeros(extents[::-1])
    for direction, extent in enumerate(extents):
        momentum = 2 * np.pi * (np.arange(extent) + (0.5 if direction == 3 else 0.0)) / extent
        term = (2 * (9 / 8 * np.sin(momentum) - np.sin(3 * momentum) / 24)) ** 2
        total += term.reshape([-1 if 3 - axis == direction else 1 for axis in range(4)])
    wave = np.exp(1j * np.pi * np.arange(extents[3]) / extents[3])[:, None, None, None]
    field = np.zeros_like(source)
    field[..., 1] = np.fft.ifftn(np.fft.fftn(source[..., 1] / wave) / (4 * mass**2 + total)) * wave
    expected = 2 * mass * field - hop_of_links(fat, long, field)
    np.testing.assert_allclose(found.solution, expected, rtol=0, atol=1e-11)


def test_says_what_is_wrong() -> None:
    gauge = Gauge(Group.alone(), (4, 4))
    staggered = Staggered(gauge)
    with pytest.raises(BadInput, match="mass above 0"):
        staggered.solve(some_field((4, 4), 1), 0.0)
    with pytest.raises(BadInput, match="tolerance above 0"):
        staggered.solve(some_field((4, 4), 1), 0.1, tolerance=0)
    with pytest.raises(BadInput, match="field of shape"):
        staggered.hop(some_field((4, 6), 1))
    with pytest.raises(BadInput, match="1 lane or more"):
        Staggered(gauge, lanes=0)
    with pytest.raises(BadInput, match="even extents"):
        Staggered(Gauge(Group.alone(), (3, 4)))
    links = random_links((4, 4), 1)
    with pytest.raises(BadInput, match="long links of shape"):
        Staggered.of_links(Group.alone(), (4, 4), links, links[:2])
    with pytest.raises(BadInput, match="half, single or double"):
        staggered.solve(some_field((4, 4), 1), 0.1, inner="quarter")
    with pytest.raises(BadInput, match="half is for the inner"):
        staggered.solve(some_field((4, 4), 1), 0.1, precision="half")
    with pytest.raises(BadInput, match="one right-hand side for several masses"):
        staggered.solve(np.stack([some_field((4, 4), 1)] * 2), [0.1, 0.2])
    with pytest.raises(BadInput, match="colour 0"):
        staggered.hop(some_field((4, 4), 1), colour=2)


def test_command_solves(ranks: Ranks, tmp_path: Path) -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 8))
    field = tmp_path / "cfg.lime"
    write_gauge(str(field), gauge)
    done = ranks.onehop("lattice", "solve", field, "--mass", 0.3, "-n", 2, "--colour", 1, "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    source = np.zeros((8, 4, 4, 4, 3), complex)
    source[0, 0, 0, 0, 1] = 1
    expected = Staggered(gauge).solve(source, 0.3)
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    assert abs(found["iterations"] - expected.iterations) <= 1
    assert found["grid"] == [1, 1, 1, 2]
    assert 0 < found["communication_seconds"] < found["seconds"]
    assert found["gflops"] > 0 < found["gbytes_per_second"]
    short = ranks.onehop("lattice", "solve", field, "--mass", 0.3, "--iterations", 2, "--json", "-")
    assert short.returncode == 1
    assert "allow more of them" in short.stderr
    assert json.loads(short.stdout)["converged"] is False


def scidac(path: Path, extents: tuple[int, ...], count: int, numbers: np.ndarray) -> None:
    """A file of single precision as others write it: records of LIME, big-endian, with checksums."""
    raw = np.stack([numbers.real, numbers.imag], axis=-1).astype(">f4")
    sites = raw.reshape(int(np.prod(extents)), -1)
    sums = [0, 0]
    for number, site in enumerate(sites):
        crc = zlib.crc32(site.tobytes())
        for i, modulus in enumerate((29, 31)):
            by = number % modulus
            sums[i] ^= (crc << by | crc >> (32 - by)) & 0xFFFFFFFF
    dims = " ".join(map(str, extents))
    records = [
        (
            "scidac-private-file-xml",
            f"<scidacFile><spacetime>4</spacetime><dims>{dims} </dims></scidacFile>".encode(),
        ),
        (
            "scidac-private-record-xml",
            b"<scidacRecord><datatype>USQCD_F3_X</datatype><precision>F</precision><colors>3</colors>"
            + f"<typesize>{4 * sites.shape[1] // count}</typesize>".encode()
            + f"<datacount>{count}</datacount></scidacRecord>".encode(),
        ),
        ("scidac-binary-data", sites.tobytes()),
        (
            "scidac-checksum",
            f"<scidacChecksum><suma>{sums[0]:x}</suma><sumb>{sums[1]:x}</sumb></scidacChecksum>".encode(),
        ),
    ]
    with path.open("wb") as file:
        for name, data in records:
            file.write(struct.pack(">IHHQ128s", 0x456789AB, 1, 0xC000, len(data), name.encode()))
            file.write(data + b"\0" * (-len(data) % 8))


def test_command_solves_with_links_and_sources_of_files(ranks: Ranks, tmp_path: Path) -> None:
    extents, mass = (4, 4, 4, 8), 0.3
    fat, long = (scale * random_links(extents, seed) for scale, seed in ((1, 1), (0.2, 2)))
    fat, long = fat.astype(np.complex64), long.astype(np.complex64)
    source = some_field(extents, 3).astype(np.complex64)
    names = {name: tmp_path / f"{name}.lime" for name in ("fat", "long", "src", "x")}
    scidac(names["fat"], extents, 4, fat)
    scidac(names["long"], extents, 4, long)
    scidac(names["src"], extents, 1, source)
    links = ("--fat", names["fat"], "--long", names["long"], "--source-file", names["src"], "--mass", mass)
    command = ("lattice", "solve", *links, "-o", names["x"], "--action", "staggered", "--json", "-")
    done = ranks.onehop(*command, "-n", 2, "--inner", "half", "--output-bits", 64)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    geometry = Geometry(extents)
    (x,) = read_vectors(str(names["x"]), geometry, Group.alone())
    rest = source - 2 * mass * x - hop_of_links(fat.astype(complex), long.astype(complex), x)
    assert np.linalg.norm(rest) / np.linalg.norm(source) < 1.1e-10
    again = ranks.onehop(*command, "-n", 1)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    names["src"].write_bytes(names["src"].read_bytes()[:-200])
    with pytest.raises(BadInput, match="cut off"):
        read_vectors(str(names["src"]), geometry, Group.alone())
    broken = bytearray(names["x"].read_bytes())
    broken[-2000] ^= 1
    names["x"].write_bytes(broken)
    with pytest.raises(BadInput, match="altered"):
        read_vectors(str(names["x"]), geometry, Group.alone())
    with pytest.raises(BadInput, match="expected a lattice of 4x4x4x4"):
        read_vectors(str(names["fat"]), Geometry((4, 4, 4, 4)), Group.alone())
    with pytest.raises(BadInput, match="expected colour vectors"):
        read_vectors(str(names["fat"]), geometry, Group.alone())
