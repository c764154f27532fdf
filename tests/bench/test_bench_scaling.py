"""`onehop bench scaling`: the comparisons, and the bytes moved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.quantum import plan
from onehop_bench.scaling import SCALING_CASES, ScalingBench, Turn, turns_of
from ranks import Ranks


def test_two_ranks(ranks: Ranks) -> None:
    words = (
        "--case",
        "qpe",
        "--case",
        "tfim-2d",
        "--qubits",
        10,
        "--quick",
        "--plot",
        ranks.folder / "s.png",
    )
    done = ranks.onehop("bench", "scaling", "-n", 2, "--threads", 1, *words, "--json", status=0)
    rows = json.loads(done.stdout)["rows"]
    strong = [row for row in rows if row["kind"] == "strong" and row["threads"] == 1]
    weak = [row for row in rows if row["kind"] == "weak"]
    assert [(row["qubits"], row["ranks"]) for row in strong] == [(10, 1), (10, 2)] * 2
    assert [(row["qubits"], row["ranks"]) for row in weak] == [(9, 1), (10, 2)] * 2
    for row in rows:
        assert row["seconds"] > 0 < row["speedup"]
        planned = plan(SCALING_CASES[row["case"].split(",")[0]](row["qubits"]), row["ranks"])
        assert row["exchanges"] == planned.exchanges
        assert row["bytes_moved"] == row["ranks"] * planned.bytes_per_rank
        if row["ranks"] == 1:
            assert row["speedup"] == 1 or row["threads"] > 1
    assert max(row["bytes_moved"] for row in rows) > 0
    assert (ranks.folder / "s.png").stat().st_size > 1000
    assert "speedup" in done.stderr


def test_threads_and_cores() -> None:
    turns = list(turns_of(ScalingBench(kind=["weak"], qubits=12, threads=3), 4))
    assert turns == [Turn("weak", 10, 1, 3), Turn("weak", 11, 2, 3), Turn("weak", 12, 4, 3)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "3"], "power of two"),
        (["--case", "grover"], "qpe, tfim-1d or tfim-2d"),
        (["--kind", "medium"], "strong or weak"),
        (["--qubits", "3"], "--qubits from 6"),
        (["--precision", "half"], "precision"),
        (["--seconds", "0"], "--seconds"),
        (["--plot", "no/such/folder/s.png"], "no/such/folder"),
    ],
)
def test_what_is_wrong(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "scaling", *words]) == 2
    assert message in capsys.readouterr().err
