"""The study of 65,536 ranks of `onehop bench papers`: its numbers, and its figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from onehop_bench.papers import Study
from onehop_bench.papers.figures import draw_study
from onehop_bench.papers.limits import exchange_passes, limits

# The study computes for some 30 s, several times as long beside other tests.
pytestmark = pytest.mark.timeout(900)
DOCS = Path(__file__).parents[2] / "docs"
MACHINES = ("Genesis", "H100, 8 per host", "Fugaku", "Mira", "100 GbE, 64 cores per host")


@pytest.fixture(scope="module")
def study() -> Study:
    return limits()


def value(study: Study, case: str) -> float:
    return next(one.value for one in study.predictions if one.case == case)


def values(study: Study, case: str) -> list[float]:
    return [value(study, f"{machine}: {case}") for machine in MACHINES]


def test_the_numbers_of_the_page(study: Study) -> None:
    """Those of docs/performance/machines.md."""
    assert values(study, "qubits") == [49, 48, 45, 42, 43]
    passes = values(study, "passes in the time of an exchange")
    assert passes == pytest.approx([58, 28, 136, 10, 33], abs=0.5)
    reduced = values(study, "all-reduce of 256 MiB")
    assert reduced == pytest.approx([262, 262, 720, 6000, 5600], rel=0.01)
    cases = [
        f"{machine}: iteration, {length}^4 sites per rank"
        for machine, length in zip(MACHINES, (32, 32, 16, 8, 8), strict=True)
    ]
    shares = [value(study, f"{case}, sums by doubling, computing") for case in cases]
    assert shares == pytest.approx([58, 77, 96, 99, 85], abs=0.5)
    doubling = [value(study, f"{case}, sums by doubling, sums alone") for case in cases]
    assert doubling == pytest.approx([0.144, 0.144, 0.0157, 0.0192, 0.096], rel=0.01)
    direct = [value(study, f"{case}, onehop's direct sums, sums alone") for case in cases]
    assert direct == pytest.approx([262, 262, 26.2, 30.1, 131], rel=0.01)


def test_bounds_are_named(study: Study) -> None:
    assert exchange_passes("genesis", 64) == pytest.approx(5.0, abs=0.1)
    assert {one.bound for one in study.predictions} <= {
        "memory",
        "multiply-adds",
        "global sums",
        "links of level racks",
        "links of level cluster",
        "links of level system",
        "latency and overhead of messages",
    }
    assert all(one.value > 0 for one in study.predictions)


def test_direct_sums_leave_less_time_for_computing(study: Study) -> None:
    panels = {panel.title: panel for panel in study.panels}
    doubling, direct = (
        panels[f"lattice, {sums}"].curves for sums in ("sums by doubling", "onehop's direct sums")
    )
    assert [curve.label for curve in direct] == list(MACHINES)
    for one, other in zip(doubling, direct, strict=True):
        assert one.x == other.x
        assert all(more > less for more, less in zip(one.y, other.y, strict=True))
        assert one.y[-1] > 8 * other.y[-1]


def test_the_figure_is_drawn(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = draw_study(study, tmp_path)
    text, committed = file.read_text(), (DOCS / "figures" / file.name).read_text()
    assert texts(committed) == texts(text), "run onehop bench papers limits --to docs/figures"


def texts(svg: str) -> list[str]:
    """Return the texts of a figure: titles, labels and numbers."""
    return [part.split("</text>")[0].split(">")[-1] for part in svg.split("<text")[1:]]
