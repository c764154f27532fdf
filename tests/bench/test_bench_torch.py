"""The benchmarks of collective operations and of torch: rows, peers, figures and refused options."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_runner import measure, needs_mpi
from onehop.cli import main
from ranks import Ranks
from torch_program import WITHOUT_TORCH


@needs_mpi
@pytest.mark.parametrize("size", [2, 3])
def test_collectives_beside_their_peers(ranks: Ranks, size: int) -> None:
    sizes = "--sizes", "200,24K"
    rows = measure(ranks, "collectives", "-n", str(size), *sizes)["rows"]
    names = {
        "reduce_scatter": "MPI_Reduce_scatter_block",
        "allgather": "MPI_Allgather",
        "broadcast": "MPI_Bcast",
        "all_to_all": "MPI_Alltoall",
    }
    assert [row["operation"] for row in rows] == [name for name in names for _ in range(2)]
    for row in rows:
        assert names[row["operation"]] in row["peers"], row
        assert row["bytes"] % (64 * size) == 0, row  # blocks of whole cache lines
    assert [row["bytes"] for row in rows[:2]] == [64 * size, (24 << 10) // 64 // size * size * 64]


@pytest.mark.parametrize(("size", "place"), [(2, ()), (3, ("--in-place",))])
def test_the_algorithm_of_vllm_sums(ranks: Ranks, size: int, place: tuple[str, ...]) -> None:
    # Lengths of one piece, and of several whose last is short. A wrong sum ends the benchmark with an error.
    rows = measure(ranks, "allreduce", "-n", str(size), "--sizes", "8,64K,2100K", *place)["rows"]
    assert all("vLLM's algorithm" in row["peers"] for row in rows), rows


def test_training_steps(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    ranks.environment["TMPDIR"] = str(ranks.folder)  # torch leaves folders there
    rows = measure(ranks, "ddp", "--models", "2x128", "--codecs", "q8")["rows"]
    step, buckets = rows
    assert (step["what"], buckets["what"], step["model"]) == ("step", "buckets", "2x128")
    assert set(step["peers"]) == set(buckets["peers"]) == {"gloo"}
    # Two embeddings of 1024 words, and 12 width^2 weights a layer, besides biases and norms.
    assert 2 * 1024 * 128 + 2 * 12 * 128**2 < step["parameters"] < 1.02 * (2 * 1024 * 128 + 2 * 12 * 128**2)
    assert set(step["variants"]) == {"onehop, q8"}
    assert step["limit_us"] > 0
    assert buckets["ours_us"] < step["ours_us"]


@pytest.mark.alone
def test_operations_progress_while_ranks_compute(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    ranks.environment["TMPDIR"] = str(ranks.folder)
    figure = ranks.folder / "overlap.svg"
    rows = measure(ranks, "overlap", "--size", "256K", "--plot", str(figure))["rows"]
    cases = [(row["backend"], row["niceness"], row["computing"]) for row in rows]
    both = ("Python", "torch")
    assert cases == [("onehop", nice, kind) for nice in (0, 5, 10) for kind in both] + [
        ("gloo", None, kind) for kind in both
    ]
    for row in rows:
        ends, steps = row["timeline"]["ends"], row["timeline"]["steps"]
        assert len(ends) == row["works"] == 12
        assert ends == sorted(ends)
        # The last operation ended while the rank computed: nothing waited for it.
        assert ends[-1] <= steps[-1], row["case"]
        assert row["computing_share"] > 0.1, row["case"]
    assert "main thread" in Path(figure).read_text()


def test_wrong_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    for words, text in (
        (["ddp", "--models", "9x9"], "found '9x9'"),
        (["ddp", "--codecs", "raw"], "found 'raw'"),
        (["overlap", "--size", "1,2"], "found '1,2'"),
        (["collectives", "--operations", "gather"], "found 'gather'"),
    ):
        assert main(["bench", *words]) == 2
        assert text in capsys.readouterr().err
