"""The results of `make bench`, and the figures that `make figures` draws from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop.cli import main
from onehop.cli.parser import parse
from onehop.error import BadInput
from onehop.figure import empty_figure
from onehop_bench import Bench, Row, Samples, make_row
from onehop_bench.bars import Bar, draw_bars, save_rate_plot
from onehop_bench.commands import COMMANDS
from onehop_bench.figures import FIGURES, draw_figure, read_result
from onehop_bench.plot import case_text, save_plot
from onehop_bench.recipes import RECIPES, recipe
from onehop_bench.result import machine_text

HOST = {"cpu": "a processor", "cores": 2, "simd": "none", "mpi": "an MPI", "flag_us": [0.03, 0.19]}


def row(case: str, size: int, ours: float, peer: float | None = None, **more: Any) -> Row:
    samples = [
        Samples("onehop", "ours", np.array([ours])),
        Samples("speed of light: x", "speed_of_light", np.array([ours / 2])),
    ]
    if peer is not None:
        samples.append(Samples("Send", "peer", np.array([peer])))
    return make_row(case, size, 2, samples, **more)


def write(folder: Path, name: str, rows: list[Any]) -> None:
    result = Bench(name, dict(HOST), rows)
    (folder / f"{name}.json").write_text(json.dumps(result.to_dict()))


def circuit_row(precision: str) -> Row:
    seconds = {"ours_s": 1.0, "pass_s": 0.25, "best_peer_s": 3.0}
    return row("qft", 16 << 24, 1e6, 3e6, qubits=24, precision=precision, **seconds)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    sizes = [row("8 B", 8, 1.0, 2.0), row("1 KiB", 1024, 2.0, 3.0)]
    write(tmp_path, "pingpong", [row("flag", 0, 0.1, 0.2), *sizes])
    write(tmp_path, "channel", [row("10 x 8 B", 80, 1.0, 2.0), row("10 x 64 B", 640, 2.0, 3.0)])
    for name in ("dslash", "wilson"):
        rows = [row(f"8x8x8x8 per rank, {one}", 512, 1.0, 2.0, flop=5e3) for one in ("single", "double")]
        write(tmp_path, name, rows)
    write(tmp_path, "circuits", [circuit_row("double"), circuit_row("single")])
    return tmp_path


def test_results_read_back(results: Path) -> None:
    (rates, _) = read_result("dslash", results).rows
    assert rates.gflops(rates.ours_us) == 5
    again = read_result("pingpong", results)
    assert again.to_dict() == json.loads((results / "pingpong.json").read_text())
    assert machine_text(again.host) == "a processor; an MPI; a flag takes 30 ns to 190 ns"


@pytest.mark.parametrize("name", ["messages", "pingpong", "quarks", "circuits", "simulators"])
def test_figures_are_the_same_every_time(results: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    file = draw_figure(name, results, results)
    first = file.read_bytes()
    assert first.startswith(b"<?xml")
    assert b"<dc:date>" not in first
    assert b"sans-serif" in first  # text stays text
    assert draw_figure(name, results, results).read_bytes() == first


def test_missing_result_is_named_with_its_command(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (results / "channel.json").write_text("{}")
    folder = results / "figures"
    words = ["messages", "pingpong", "halo", "--results", str(results), "--to", str(folder)]
    assert main(["bench", "figures", *words]) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["pingpong.svg"]
    said = capsys.readouterr().err
    assert f"onehop bench halo -n 2 --json {results / 'halo.json'}" in said
    assert "channel.json is no result" in said
    assert all(line.startswith("error: ") for line in said.splitlines())
    assert main(["bench", "figures", "nothing"]) == 2
    assert "NAME messages" in capsys.readouterr().err


def test_every_figure_has_its_results_and_every_recipe_is_a_command(tmp_path: Path) -> None:
    assert {source for figure in FIGURES.values() for source in figure.sources} <= set(RECIPES)
    for name in RECIPES:
        for quick in (False, True):
            _, command, *options = recipe(name, tmp_path, quick=quick)
            parse(COMMANDS[command].options, options, f"bench {command}")


def test_failed_benchmark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, "codec", "codec --codecs none")
    assert main(["bench", "all", "codec", "--quick", "--results", str(tmp_path / "new")]) == 1
    assert (tmp_path / "new").is_dir()


def lines(axes: Any) -> list[Any]:
    return [one for one in axes.get_lines() if one.get_linestyle() != "None" and len(one.get_xdata()) > 1]


def test_no_line_joins_precisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines join sizes of one operation; nothing else."""
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr("onehop_bench.plot.save_figure", lambda figure, *_, **__: drawn.append(figure))
    cases = [row(f"{size}, {one}", size, 1.0) for size in (8, 64) for one in ("single", "double")]
    save_plot(Bench("solver", dict(HOST), cases), "x.png")
    sizes = [row("flag", 0, 0.1, 0.2), row("8 B", 8, 1.0, 2.0), row("64 B", 64, 2.0, 3.0)]
    save_plot(Bench("pingpong", dict(HOST), sizes), "x.png")
    separate, joined = drawn
    assert [len(line.get_xdata()) for line in lines(separate.axes[0]) if line.get_label()[0] != "_"] == []
    assert len(lines(joined.axes[0])) == 3  # onehop, the peer and the speed of light
    with pytest.raises(BadInput):
        read_result("pingpong", tmp_path)


def test_rates_without_arithmetic_are_times(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for rows in ([row("exponentials, double", 64, 1.0)], [row("x", 64, 1.0, flop=10.0)]):
        save_rate_plot(Bench("su3", dict(HOST), rows), str(tmp_path / "su3.png"))
        assert (tmp_path / "su3.png").read_bytes().startswith(b"\x89PNG")


def test_case_text() -> None:
    assert case_text("8x8x8x8 per rank, single") == "8⁴, single"
    assert case_text("32x6x4x3 clover") == "32x6x4x3 clover"


def test_logarithmic_axes_have_points_instead_of_bars() -> None:
    bars = [Bar("onehop", [1.0, 20.0], "tab:red"), Bar("MPI", [2.0, None], "tab:blue")]
    for log in (False, True):
        axes = empty_figure(4, 3).subplots()
        draw_bars(axes, bars, ["a", "b"], log=log)
        points = [y for line in axes.lines for y in line.get_ydata()]
        heights = [patch.get_height() for patch in axes.patches]
        assert (sorted(points), sorted(heights)) == (([1, 2, 20], []) if log else ([], [1, 2, 20]))


def test_halos_have_a_panel_for_each_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars of onehop, the best MPI call and the bare copy; the last is named as what it is."""
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr("onehop_bench.figures.save_figure", lambda figure, *_, **__: drawn.append(figure))
    cases = [(f"{block}{more}", 8.0) for block in ("8x8", "16x16") for more in ("", ", crossing only")]
    write(tmp_path, "halo", [row(case, 8, us, 2 * us) for case, us in cases])
    draw_figure("halo", tmp_path, tmp_path)
    first, second = drawn[0].axes
    assert (first.get_title(), second.get_title()) == ("8x8 per rank, 2 ranks", "16x16 per rank, 2 ranks")
    assert [[bar.get_height() for bar in bars] for bars in first.containers] == [
        [8.0] * 2,
        [16.0] * 2,
        [4.0] * 2,
    ]
    assert first.get_xticklabels()[0].get_text() == "all faces"
    (legend,) = drawn[0].legends
    assert "bare copy into a slot, and a flag" in [text.get_text() for text in legend.get_texts()]


def test_codecs_have_a_panel_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr("onehop_bench.figures.save_figure", lambda figure, *_, **__: drawn.append(figure))
    rows = [
        row(f"{n} B {codec}", n, us, 9.0, codec=codec)
        for codec, us in (("raw", 4.0), ("q8", 2.0))
        for n in (8, 64)
    ]
    write(tmp_path, "allreduce-codecs", rows)
    draw_figure("codecs", tmp_path, tmp_path)
    (axes,) = drawn[0].axes
    assert axes.get_title() == "q8"
    assert {line.get_ydata()[0] for line in lines(axes)} == {9.0, 4.0, 2.0}  # MPI, raw, the codec


def test_limits_have_the_name_of_what_they_do(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("dslash", "wilson"):
        write(tmp_path, name, [row("8x8x8x8 per rank, single", 512, 1.0, 2.0, flop=5e3)])
    assert ">x</text>" in draw_figure("quarks", tmp_path, tmp_path).read_text()
