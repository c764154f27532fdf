"""The Poisson solver from Python, compared with a direct solve by Fourier transform."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import Command, refused
from onehop import BadInput, Group, Mismatch, Poisson
from onehop.cli import main
from onehop.poisson import poisson_grid, poisson_layout, solve_directly
from ranks import Ranks
from threads import run_threads


def solve(
    group: Group, *, iterations: int = 1000, **what: object
) -> tuple[np.ndarray, list[tuple[int, float]]]:
    poisson = Poisson(group, **what)
    result = poisson.solve(iterations)
    return poisson.gather(), result.history


@pytest.mark.parametrize("extents", [(60, 60), (31, 47), (5, 1), (1, 1), (2, 9)])
def test_agrees_with_direct_solves(extents: tuple[int, int]) -> None:
    poisson = Poisson(Group.alone(), extents, mass=0.6, seed=9)
    result = poisson.solve()
    expected = solve_directly(poisson.source, 0.6)
    np.testing.assert_allclose(poisson.solution, expected, rtol=0, atol=1e-13)
    assert result.iterations == 1000
    assert [iteration for iteration, _ in result.history] == [*range(0, 1000, 10), 1000]
    assert result.history[0][1] == pytest.approx(np.linalg.norm(poisson.source), rel=1e-11)


@pytest.mark.parametrize("extents", [(6, 7), (5, 1), (1, 1), (2, 9)])
def test_direct_solves_are_those_of_the_matrix(extents: tuple[int, int]) -> None:
    source = np.random.default_rng(3).normal(size=extents)
    unit = np.eye(source.size).reshape(source.size, *extents)
    neighbours = sum(np.roll(unit, shift, axis) for axis in (1, 2) for shift in (1, -1))
    matrix = ((4 + 0.6**2) * unit - neighbours).reshape(source.size, source.size)
    expected = np.linalg.solve(matrix, source.ravel()).reshape(extents)
    np.testing.assert_allclose(solve_directly(source, 0.6), expected, rtol=0, atol=1e-13)


def test_source_depends_on_the_global_site_alone() -> None:
    whole = Poisson(Group.alone(), (12, 20), seed=4).source
    assert whole.min() >= -1
    assert whole.max() < 1
    assert len(np.unique(whole)) == whole.size
    for found in run_threads(6, lambda group: (p := Poisson(group, (12, 20), seed=4)).gather(p.source)):
        assert found.tobytes() == whole.tobytes()
    assert Poisson(Group.alone(), (12, 20), seed=5).source.tobytes() != whole.tobytes()


def test_own_source_and_tolerance() -> None:
    source = np.zeros((24, 24))
    source[3, 5] = 1.0

    def one_rank(group: Group) -> tuple[np.ndarray, bool]:
        poisson = Poisson(group, source.shape, grid=(2, 1), mass=0.8)
        start, rows = poisson.block.start[0], poisson.block.extents[0]
        poisson.set_source(source[start : start + rows])
        return poisson.gather(), poisson.solve(10_000, tolerance=1e-12).reached_tolerance and poisson.gather()

    for before, after in run_threads(2, one_rank):
        assert not before.any()
        np.testing.assert_allclose(after, solve_directly(source, 0.8), rtol=0, atol=1e-12)


def test_progress_is_told_and_may_give_up() -> None:
    heard = []
    poisson = Poisson(Group.alone(), (16, 16))
    poisson.solve(20, progress=lambda iteration, norm: heard.append((iteration, norm)))
    assert heard
    assert heard[0][0] == 0

    def give_up(iteration: int, norm: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        poisson.solve(20, progress=give_up)


def test_layouts() -> None:
    assert poisson_layout(4) == ((120, 120), (2, 2))
    assert poisson_layout(6, local=(10, 20)) == ((30, 40), (3, 2))
    assert poisson_layout(2, (7, 100)) == ((7, 100), (1, 2))
    assert poisson_grid((100, 7), 7) == (7, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mass": 0.0}, "mass"),
        ({"grid": (2, 1)}, "grid of 1 rank"),
        ({"extents": (0, 5)}, "no grid"),
        ({"buffers": 0}, "buffer"),
        ({"enlargement": 0}, "enlargement"),
        ({"transport": "pigeon"}, "pigeon"),
        ({"source": np.zeros((60, 60), np.float32)}, "float64"),
        ({"source": np.zeros((60, 60), np.int64)}, "float64"),
        ({"source": np.zeros((60, 59))}, "as many values"),
        ({"source": np.full((60, 60), np.inf)}, "finite"),
    ],
)
def test_says_what_is_wrong(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Poisson(Group.alone(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"iterations": -1}, "0 iterations or more, found -1"),
        ({"residual_every": 0}, "1 iteration or more, found 0"),
        ({"tolerance": -0.5}, "tolerance of 0 or more, found -0.5"),
    ],
)
def test_solve_says_what_is_wrong(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Poisson(Group.alone()).solve(**arguments)


@pytest.mark.parametrize("name", ["iterations", "tolerance", "residual_every", "mass", "seed", "buffers"])
def test_arguments_that_differ_between_ranks(name: str) -> None:
    def told(group: Group) -> str:
        here: dict[str, Any] = {name: 1 + group.rank}
        call = (
            Poisson(group).solve
            if name in ("iterations", "tolerance", "residual_every")
            else partial(Poisson, group)
        )
        with pytest.raises(Mismatch) as error:
            call(**here)
        return str(error.value)

    assert all(f"expected the same {name} on every rank" in one for one in run_threads(2, told))


def test_command_reports_and_draws(ranks: Ranks, tmp_path: Path) -> None:
    picture, report = tmp_path / "poisson.png", tmp_path / "poisson.json"
    done = ranks.onehop(
        "poisson",
        "-n",
        3,
        "--extent",
        "31x22",
        "--grid",
        "3x1",
        "--plot",
        picture,
        "--json",
        report,
        status=0,
    )
    assert "31x22 on 3x1 ranks" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(report.read_text())
    _, history = solve(Group.alone(), extents=(31, 22))
    assert [tuple(one) for one in found["residuals"]] == history
    assert found["iterations"] == 1000
    assert found["error"] < 1e-13
    assert list(found["us_per_iteration"]) == [
        "start",
        "interior",
        "wait",
        "boundary",
        "residual",
        "iteration",
    ]


def test_command_enlarges_and_stops(ranks: Ranks) -> None:
    words = "-n 2 --local 8x8 --enlarge 512 --buffers 1 --tolerance 1e-3 --json -"
    done = ranks.onehop("poisson", *words.split(), status=0)
    found = json.loads(done.stdout)
    assert found["bytes_sent"] == 2 * 8 * 8 * 512
    assert (found["tolerance"], found["reached_tolerance"]) == (1e-3, True)
    assert "(tolerance 0.001 reached)" in done.stderr
    assert found["residuals"][-1][1] <= 1e-3 * found["residuals"][0][1]


def test_command_says_that_it_did_not_get_there(command: Command) -> None:
    done = command("poisson", "--local", "8x8", "--iterations", 3, "--tolerance", 1e-9, status=0)
    assert "(tolerance 1e-09 NOT reached)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--local", "60"), "2 numbers of 1 or more"),
        (("--extent", "0x4"), "found '0x4'"),
        (("--mass", "0"), "mass"),
        (("--plot", "no/such/folder/p.png"), "no folder"),
    ],
)
def test_command_says_what_is_wrong(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["poisson", *arguments], capsys)


@pytest.mark.parametrize(
    ("arguments", "megabytes"), [("--local 2000x2000", 120), ("--local 1000x1000 --check", 70)]
)
def test_what_does_not_fit_into_memory_is_refused(
    arguments: str, megabytes: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system would kill the process."""
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(megabytes * 10**6))
    assert main(["poisson", "--iterations", "1", *arguments.split()]) == 1
    assert "error: not enough memory for a Poisson equation on a lattice of " in capsys.readouterr().err
