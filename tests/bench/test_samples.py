"""What the benchmarks compute from their samples, and the tables and plots of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from onehop.error import BadInput
from onehop.text import bytes_text, number
from onehop_bench import Bench, Samples, make_row, parse_sizes
from onehop_bench.plot import save_plot
from onehop_bench.table import make_peer_table, make_table


def samples(*candidates: tuple[str, str, list[float]]) -> list[Samples]:
    return [Samples(name, role, np.array(us)) for name, role, us in candidates]


def test_a_ratio_is_of_the_same_round() -> None:
    # The machine changes phase in the third round: the medians' ratio would be 2 / 20, each round's own is 1/2 or 2.
    row = make_row(
        "x",
        8,
        2,
        samples(
            ("onehop", "ours", [1.0, 2.0, 40.0]),
            ("slow", "peer", [2.0, 4.0, 20.0]),
            ("slower", "peer", [4.0, 20.0, 400.0]),
            ("speed of light: memcpy", "speed_of_light", [1.0, 1.0, 10.0]),
            ("other", "variant", [3.0, 3.0, 3.0]),
        ),
    )
    assert row.ours_us == 2
    assert row.ratio == 0.5
    assert (row.best_peer, row.best_peer_us) == ("slow", 4)
    assert row.ratios == {"slow": 0.5, "slower": 0.1}
    assert row.peers == {"slow": 4, "slower": 20}
    assert (row.limit, row.limit_us, row.limit_ratio) == ("memcpy", 1, 2)
    assert row.variants == {"other": 3}
    assert row.rounds == 3


def test_without_peers_there_is_no_ratio() -> None:
    row = make_row("x", 1000, 2, samples(("onehop", "ours", [1.0, 2.0, 3.0])))
    assert (row.ratio, row.best_peer, row.best_peer_us, row.limit_us, row.peers) == (
        None,
        None,
        None,
        None,
        {},
    )
    assert row.gigabytes_per_second == pytest.approx(0.5)
    json.dumps(Bench("pingpong", {}, [row]).to_dict(), allow_nan=False)


def test_percentiles_hold_most_rounds() -> None:
    row = make_row("x", 8, 2, samples(("onehop", "ours", [float(value) for value in range(101)])))
    assert (row.p10_us, row.ours_us, row.p90_us) == (10, 50, 90)


@pytest.mark.parametrize(
    ("text", "sizes"), [("8", [8]), ("0,64B,1K,2KiB,4m", [0, 64, 1024, 2048, 4 << 20]), (" 1G ", [1 << 30])]
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "-1", "1.5K", "8,,9", "many"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(BadInput, match="size"):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(8, "8 B"), (1024, "1 KiB"), (1 << 20, "1 MiB"), (1000, "1000 B"), (3 << 30, "3 GiB")]
)
def test_exact_text_of_a_size_reads_back(size: int, text: str) -> None:
    assert bytes_text(size, exact=True) == text
    assert parse_sizes(text) == [size]


def test_numbers_have_no_exponent() -> None:
    assert [number(value) for value in (None, 0.00001, 0.0512, 1.234, 99.96, 4321.0)] == [
        "-",
        "0.0000",
        "0.0512",
        "1.23",
        "100",
        "4321",
    ]


def two_rows() -> Bench:
    about = {"cpu": "a processor", "cores": 2, "simd": "none", "mpi": None}
    with_peer = samples(
        ("onehop", "ours", [1.0]), ("Send", "peer", [2.0]), ("speed of light: x", "speed_of_light", [0.5])
    )
    rows = [make_row("8 B", 8, 2, with_peer), make_row("64 B", 64, 2, samples(("onehop", "ours", [3.0])))]
    return Bench("pingpong", about, rows)


def test_tables_and_plot_take_rows_without_peers(tmp_path: Path) -> None:
    result = two_rows()
    for table in (make_table(result), make_peer_table(result)):
        assert table is not None
        assert all(case in table.render(100) for case in ("8 B", "64 B"))
    pytest.importorskip("matplotlib")
    save_plot(result, str(tmp_path / "plot.png"))
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadInput, match="cannot write the plot"):
        save_plot(result, str(tmp_path / "nowhere" / "plot.png"))
