"""The study of 65,536 ranks of `onehop bench papers`: its table on the page, and its figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from onehop.bench.papers import Study
from onehop.bench.papers.figures import draw_study
from onehop.bench.papers.limits import exchange_passes, limits

DOCS = Path(__file__).parents[2] / "docs"
MACHINES = ("Genesis", "H100, 8 a host", "Fugaku", "Mira", "100 GbE, 64 cores a host")
# How the page names what bounds a machine.
BOUNDS = {
    "links of level racks": "port of a GPU",
    "links of level cluster": "port of a GPU",
    "links of level system": "links of the torus",
    "latency and overhead of messages": "overhead of messages",
}


@pytest.fixture(scope="module")
def study() -> Study:
    return limits()


def lines() -> list[str]:
    return (DOCS / "performance/scaling.md").read_text().splitlines()


def rows(label: str) -> list[list[str]]:
    """Return the cells of all rows of the page's table with this label, without it."""
    found = [line.strip("| ").split(" | ") for line in lines() if line.startswith(f"| {label} | ")]
    return [cells[1:] for cells in found]


def value(study: Study, case: str) -> float:
    return next(one.value for one in study.predictions if one.case == case)


def bound(study: Study, machine: str, case: str) -> str:
    text = next(one.bound for one in study.predictions if one.case == case)
    if machine.startswith("100 GbE") and text == "links of level cluster":
        return "links above the leaf switches"
    return BOUNDS.get(text, text)


def seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.3g} ms"


def iteration(machine: str, sites: str) -> str:
    return f"{machine}: iteration, {sites.replace('<sup>', '^').replace('</sup>', '')} sites a rank"


def test_the_page_shows_the_table(study: Study) -> None:
    (sites,) = rows("sites of a rank")
    bounds = rows("bound")
    assert len(bounds) == 3
    passes = [f"{machine}: passes in the time of an exchange" for machine in MACHINES]
    assert rows("passes in the time of an exchange of all rank bits") == [
        [f"{value(study, case):.0f}" for case in passes]
    ]
    assert bounds[0] == [bound(study, *pair) for pair in zip(MACHINES, passes, strict=True)]
    cases = [iteration(*pair) for pair in zip(MACHINES, sites, strict=True)]
    (shares,) = rows("computing, share of an iteration of conjugate gradients, sums by doubling")
    assert shares == [f"{value(study, f'{case}, sums by doubling, computing'):.0f} %" for case in cases]
    doubling = [f"{case}, sums by doubling, sums alone" for case in cases]
    direct = [f"{case}, onehop's direct sums, sums alone" for case in cases]
    assert rows("two sums by doubling") == [[seconds(value(study, case)) for case in doubling]]
    assert rows("two sums as onehop makes them") == [[seconds(value(study, case)) for case in direct]]
    assert bounds[1] == [bound(study, *pair) for pair in zip(MACHINES, doubling, strict=True)]
    assert rows("bound with these") == [[bound(study, *pair) for pair in zip(MACHINES, direct, strict=True)]]
    reduced = [f"{machine}: all-reduce of 256 MiB" for machine in MACHINES]
    assert rows("all-reduce of 256 MiB") == [[seconds(value(study, case)) for case in reduced]]
    assert bounds[2] == [bound(study, *pair) for pair in zip(MACHINES, reduced, strict=True)]


def test_the_page_shows_the_qubits(study: Study) -> None:
    (qubits,) = rows("qubits, single precision")
    assert qubits == [f"{value(study, f'{machine}: qubits'):.0f}" for machine in MACHINES]
    page = " ".join(lines())
    whole = value(study, "Genesis: QPE of 49 qubits")
    alone = value(study, "Genesis: QPE of 49 qubits, exchanges alone")
    assert f"49 qubits on Genesis would take {whole:.1f} s, of which {alone:.1f} s are the exchange" in page
    assert value(study, "Genesis: QPE of 49 qubits, passes") == 5
    frontier = [
        value(study, f"Frontier, {ranks} ranks: passes in the time of an exchange")
        for ranks in ("75,776", "65,536")
    ]
    assert (
        "75,776 ranks, Frontier needs {:.0f} passes for an exchange, and {:.0f} on".format(*frontier) in page
    )


def test_bounds_are_named(study: Study) -> None:
    assert exchange_passes("genesis", 64) == pytest.approx(4.4, abs=0.1)
    assert {one.bound for one in study.predictions} <= {"memory", "multiply-adds", "global sums", *BOUNDS}
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
        assert one.y[-1] > 10 * other.y[-1]


def test_the_figure_is_drawn(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = draw_study(study, tmp_path)
    text, committed = file.read_text(), (DOCS / "figures" / file.name).read_text()
    assert texts(committed) == texts(text), "run onehop bench papers limits --to docs/figures"


def texts(svg: str) -> list[str]:
    """Return the texts of a figure: titles, labels and numbers."""
    return [part.split("</text>")[0].split(">")[-1] for part in svg.split("<text")[1:]]
