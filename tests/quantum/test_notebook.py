"""What notebooks show of plans and results agrees with their numbers."""

import re
import sys
from pathlib import Path

import pytest

from onehop import BadInput, Error, quantum


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)] for row in rows
    ]


def spread(qubits: int) -> quantum.Circuit:
    circuit = quantum.Circuit(qubits)
    for qubit in range(qubits):
        circuit.ry(1.0 + 0.2 * qubit, qubit)
    return circuit


def test_a_result_shows_its_counts_and_values() -> None:
    result = quantum.simulate(spread(5), shots=5000, seed=3, observables=["Z0", "X1"])
    *rows, rest, first, second = cells(result._repr_html_())
    assert len(rows) == 8
    shown = {outcome: int(shots.replace(",", "")) for outcome, shots in rows}
    assert shown.items() <= result.counts.items()
    assert min(shown.values()) >= max(n for outcome, n in result.counts.items() if outcome not in shown)
    assert rest[0] == f"{len(result.counts) - 8} others"
    assert int(rest[1].replace(",", "")) + sum(shown.values()) == 5000
    assert [float(first[1]), float(second[1])] == pytest.approx(result.expectations, rel=1e-5)


def test_a_plot_that_cannot_be_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    result = quantum.simulate(spread(2), shots=10, seed=3)
    with pytest.raises(BadInput, match=r"^cannot write the plot to /proc/counts.svg: [^\n]*$"):
        result.plot("/proc/counts.svg")  # a folder that nobody may write
    for file in ("c.nonsense", "."):
        with pytest.raises(BadInput):
            result.plot(file)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Error, match=r"plots need matplotlib .*`pip install matplotlib`$"):
        result.plot()


def test_a_plot_shows_the_counts_and_says_what_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = quantum.simulate(spread(6), shots=2000, seed=3)
    figure = result.plot(str(tmp_path / "counts.png"), most=10)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == sorted(names)
    assert [bar.get_height() for bar in axes.patches] == [result.counts[name] for name in names]
    assert len(names) == 10
    assert axes.get_title() == f"2000 shots, {len(result.counts) - 10} outcomes not shown"
    width, height = (int.from_bytes((tmp_path / "counts.png").read_bytes()[at : at + 4]) for at in (16, 20))
    assert (width, height) >= (900, 500)
    shown = figure._repr_svg_()
    assert shown.rstrip().endswith("</svg>")
    assert '<svg style="background: #fff" class="onehop-figure"' in shown
    assert "@media" not in shown
    with pytest.raises(BadInput, match="with shots"):
        quantum.simulate(spread(2)).plot()
    with pytest.raises(BadInput, match="most"):
        result.plot(most=0)
    with pytest.raises(BadInput, match="cannot write"):
        result.plot(str(tmp_path / "counts.xyz"))


def test_a_plan_shows_its_numbers() -> None:
    plan = quantum.plan(spread(20).cx(0, 19).h(19).cx(19, 3), 4)
    rows = dict(cells(plan._repr_html_()))
    assert rows["qubits"] == "20, 3 of them in the largest state"
    assert rows["exchanges"] == str(plan.exchanges)
    assert f"on {plan.ranks} rank" in repr(plan)
    assert len(repr(plan)) < 200
    noisy = quantum.plan_density(spread(3))
    assert dict(cells(noisy._repr_html_()))["state"] == "density matrix"
    assert "as a density matrix" in repr(noisy)


def test_short_texts() -> None:
    compiled = quantum.compile(quantum.Circuit(2).ry(quantum.Parameter("a"), 0))
    assert repr(compiled) == "<CompiledCircuit: 2 qubits, 1 parameter, 1 rank>"
