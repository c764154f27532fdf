"""The benchmarks: computation of figures, and the output of every command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bench_runner import measure, needs_mpi
from onehop.text import rate_text
from onehop_bench.ghex import ghex_version
from ranks import Ranks


@pytest.mark.parametrize(
    ("arguments", "cases"),
    [
        (("pingpong", "--sizes", "0,8,200,4K,3M"), ["flag", "8 B", "200 B", "4 KiB", "3 MiB"]),
        (("pingpong", "--sizes", "64", "--get"), ["64 B"]),
        (("channel", "--sizes", "64,1000", "--messages", "3"), ["3 x 64 B", "3 x 1000 B"]),
        (("ring", "-n", "3"), ["3 ranks", "3 ranks, each computing 10 µs"]),
    ],
)
def test_without_mpi(ranks: Ranks, arguments: tuple[str, ...], cases: list[str]) -> None:
    result = measure(ranks, *arguments, "--mpi", "none")
    assert [row["case"] for row in result["rows"]] == cases
    assert result["host"]["mpi"] is None
    assert "no MPI" in result["notes"][0]
    for row in result["rows"]:
        assert (row["peers"], row["best_peer"], row["ratio"]) == ({}, None, None)
        if arguments[0] in ("pingpong", "channel"):
            assert row["limit_us"] > 0


def test_halo_knows_how_much_crosses(ranks: Ranks) -> None:
    result = measure(ranks, "halo", "--blocks", "4x8x8", "--mpi", "none", "--codecs", "fp16,q8")
    raw = [row for row in result["rows"] if "codec" not in row]
    assert [row["bytes"] for row in raw] == [2 * 8 * 8 * 8, 2 * 8 * 8 * 8, 2 * 4 * 8 * 8]
    for row in raw:
        assert row["limit_us"] > 0
        assert set(row["variants"]) == {
            "onehop, shared arrays",
            "onehop, packing only",
            "the limit of packing",
            "onehop from Python",
        }
    check_rounding(result["rows"], {"fp16": (1 / 4, 4e-4), "q8": (34 / 256, 8e-3)})


def check_rounding(rows: list[dict[str, Any]], wanted: dict[str, tuple[float, float]]) -> None:
    """Rows of each codec, with their part of the bytes of float64 and at most so much error, not all too little."""
    for codec, (part, error) in wanted.items():
        found = [row for row in rows if row.get("codec") == codec]
        assert len(found) == len([row for row in rows if "codec" not in row])
        for row in found:
            assert row["bytes"] / row["raw_bytes"] == pytest.approx(part)
            assert error / 10 < row["error"] < error
            assert min(row["raw_ratio"], row["raw_us"]) > 0


def test_halo_on_any_number_of_ranks(ranks: Ranks) -> None:
    rows = measure(ranks, "halo", "-n", "3", "--mpi", "none", "--blocks", "8x8x8")["rows"]
    assert {row["ranks"] for row in rows} == {3}
    assert [3, 1, 1] in [row["grid"] for row in rows]


def test_permutation_has_a_row_for_each_case(ranks: Ranks) -> None:
    arguments = ("permutation", "-n", "2", "--qubits", "10,11", "--mpi", "none", "--codecs", "bf16,q6")
    all_rows = measure(ranks, *arguments)["rows"]
    check_rounding(all_rows, {"bf16": (1 / 4, 3e-3), "q6": (26 / 256, 4e-2)})
    rows = [row for row in all_rows if "codec" not in row]
    assert [(row["qubits"], row["eta"], row["ranks"]) for row in rows] == [(10, 1, 2)] * 2 + [(11, 1, 2)] * 2
    for row in rows:
        assert row["fraction_moved"] == 0.5
        assert row["bytes"] == 16 * 2 ** (row["qubits"] - 2)
        assert row["one_at_a_time_us"] > 0
        assert row["limit_us"] > 0
        assert row["mpi_us"] is None


@needs_mpi
def test_permutation_with_mpi(ranks: Ranks) -> None:
    result = measure(ranks, "permutation", "-n", "4", "--qubits", "12", "--transports", "auto,mpi")
    assert [row["eta"] for row in result["rows"]] == [1, 2] * 4
    assert all(row["mpi_us"] > 0 for row in result["rows"])


@needs_mpi
def test_with_mpi(ranks: Ranks) -> None:
    result = measure(ranks, "pingpong", "--sizes", "8,2K")
    assert result["host"]["mpi"].startswith("Open MPI")
    for row in result["rows"]:
        assert {"Send/Recv", "Isend/Irecv", "persistent", "Put + flush + flag"} <= set(row["peers"])
        assert row["best_peer"] in row["peers"]
        assert row["ratio"] == max(row["ratios"].values())


@needs_mpi
def test_exchanges_with_mpi(ranks: Ranks) -> None:
    solver = measure(ranks, "poisson", "--enlarge", "1,16")
    assert [row["case"] for row in solver["rows"]] == ["x1", "x16"]
    assert "packed, one message a neighbour, persistent" in solver["rows"][0]["peers"]
    channel = measure(ranks, "channel", "--sizes", "512")
    assert {"Isend/Irecv", "persistent", "Neighbor_alltoallw", "Put + flush + flag"} <= set(
        channel["rows"][0]["peers"]
    )
    halo = measure(ranks, "halo", "--blocks", "6x6x6")
    assert {"derived datatypes, persistent", "packed, Isend/Irecv"} <= set(halo["rows"][0]["peers"])


@needs_mpi
def test_halo_beside_ghex(ranks: Ranks) -> None:
    if ghex_version() is None:
        pytest.skip("needs GHEX")
    result = measure(ranks, "halo", "--blocks", "6x6x6")
    assert "GHEX" in result["notes"][0]
    assert all("GHEX from Python" in row["peers"] for row in result["rows"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("pingpong --sizes eight", "expected"),
        ("pingpong -n 3 --mpi none", "expected"),
        ("channel --sizes 7 --mpi none", "expected"),
        ("channel --seconds 0", "expected"),
        ("halo --blocks axb", "expected"),
        ("permutation --qubits many", "expected"),
        ("permutation -n 3 --mpi none", "expected"),
        ("pingpong --mpi /no/such/mpi", "expected"),
        ("su3 --sites 65", "multiples of 16"),
        ("smearing --kinds stout", "fat7, asqtad or hisq"),
        ("wilson --lattices 4x4", "four directions"),
        ("qspi --mpi none --sizes 12", "multiples of 8"),
        ("dslash --blocks 4x4", "four directions"),
    ],
)
def test_bad_input_is_exit_code_2(ranks: Ranks, arguments: str, expected: str) -> None:
    done = ranks.onehop("bench", *arguments.split(), "--quick", status=2)
    assert expected in done.stderr
    assert done.stdout == ""


def test_an_mpi_of_other_ranks_is_left_out(ranks: Ranks) -> None:
    """Each rank of a launch that initialises MPI by itself is alone in its MPI."""
    pytest.importorskip("mpi4py")
    source = """
        from mpi4py import MPI
        import onehop
        from onehop_bench.messages import PingPong, pingpong

        result = pingpong(PingPong(sizes=[8])).measure(onehop.Group.world(), 1, quick=True)
        assert result.rows[0].peers == {}, result.rows
        assert "MPI runs 1 rank, but this group has 2" in result.notes[0], result.notes
    """
    ranks.launch(2, source, status=0)
    for folder in ranks.temporary.glob("ompi.*"):  # Open MPI's own, when its ranks have no mpiexec
        shutil.rmtree(folder)


def test_codec_compares_with_a_copy(ranks: Ranks) -> None:
    result = measure(ranks, "codec", "--sizes", "4K", "--codecs", "q8,fp16")
    assert [row["case"] for row in result["rows"]] == [
        f"{codec} {step}, 4 KiB" for codec in ("q8", "fp16") for step in ("encode", "decode_add")
    ]
    assert all(row["limit"] == "copy" and row["limit_us"] > 0 for row in result["rows"])
    assert "root mean square" in result["notes"][0]


def test_su3_compares_with_code_for_one_site(ranks: Ranks) -> None:
    rows = measure(ranks, "su3", "--sites", "64", "--operations", "vectors,exponentials")["rows"]
    assert [row["case"] for row in rows] == [
        f"{operation}, {precision}, 64 sites"
        for operation in ("vectors", "exponentials")
        for precision in ("double", "single")
    ]
    assert all(row["best_peer"] == "one site after the other" for row in rows[:3])
    assert rows[0]["limit_us"] > 0 < rows[1]["limit_us"]
    assert rows[3]["best_peer"] is None


def test_smearing_counts_as_milc_does(ranks: Ranks) -> None:
    words = ("--blocks", "4x4x4x4", "--kinds", "asqtad,hisq", "--precisions", "single")
    result = measure(ranks, "smearing", "-n", "2", *words)
    assert [row["case"] for row in result["rows"]] == [
        f"{kind}, 4x4x4x4 per rank, single" for kind in ("asqtad", "hisq")
    ]
    assert [row["bytes"] for row in result["rows"]] == [256 * 576 * 3, 256 * 576 * 4]
    for row, flop in zip(result["rows"], (61632 + 1804, 2 * 61632 + 1804), strict=True):
        assert row["limit_us"] > 0 < row["variants"]["scalar code"]
        assert (
            f"{row['case']}: {rate_text(256 * flop / row['ours_us'] * 1e6, 'FLOP/s', 3)} per rank"
            in "".join(result["notes"])
        )


def test_measurements_count_what_moves(ranks: Ranks) -> None:
    words = ("--blocks", "4x4x4x4", "--operations", "fix,mesons,eigen")
    rows = measure(ranks, "measurements", *words)["rows"]
    assert [row["case"] for row in rows] == [
        f"{name}, 4x4x4x4 per rank" for name in ("Landau gauge, 10 sweeps", "16 mesons", "8 eigenvectors")
    ]
    # Links of 4 x 9 complex numbers for each parity and a transformation; a propagator of 12 x 12; operators alone.
    assert [row["bytes"] for row in rows] == [256 * 16 * each for each in (10 * (2 * 36 + 27), 144, 0)]
    for row in rows:
        assert 0 < row["limit_us"] < row["ours_us"]


def test_wilson_compares_with_reading_as_many_bytes(ranks: Ranks) -> None:
    words = ("--local", "--lattices", "4x4x4x4", "--variants", "double,clover-12,half")
    rows = measure(ranks, "wilson", "-n", "2", *words)["rows"]
    assert [row["case"] for row in rows] == [
        "4x4x4x4 per rank, double",
        "4x4x4x4 per rank, clover-12",
        "4x4x4x4 per rank, half",
    ]
    # Per site of one parity: eight links, three spinors, and the blocks of the clover term.
    sizes = [128 * 8 * (144 + 72), 128 * 4 * (96 + 72 + 72), 128 * (2 * 144 + 4 * 72)]
    assert [row["bytes"] for row in rows] == sizes
    assert all(row["limit_us"] > 0 for row in rows)
    assert all({"onehop, without faces", "scalar code"} <= set(row["variants"]) for row in rows)
    if rows[0]["best_peer"] is not None:  # there is an MPI to compare with
        assert rows[0]["best_peer"] == "plain MPI, the same kernels"


def test_qspi_draws_both_figures(ranks: Ranks, tmp_path: Path) -> None:
    picture = tmp_path / "qspi.png"
    words = ("qspi", "--mpi", "none", "--sizes", "8,64K", "--plot", str(picture))
    rows = measure(ranks, *words)["rows"]
    assert [row["case"] for row in rows] == [
        "ping-pong, 8 B",
        "ping-pong, 64 KiB",
        "5-D halo, 10 x 8 B",
        "5-D halo, 10 x 64 KiB",
    ]
    assert [row["bytes"] for row in rows] == [8, 65536, 80, 655360]
    assert all(row["ours_us"] > 0 < row["limit_us"] and "onehop" in row["variants"] for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_dslash_and_solver(ranks: Ranks) -> None:
    words = ("-n", "2", "--blocks", "4x4x4x4")
    rows = measure(ranks, "dslash", "--mpi", "none", "--precisions", "single", *words)["rows"]
    assert [row["case"] for row in rows] == ["4x4x4x4 per rank, single"]
    assert rows[0]["bytes"] == 128 * 1224  # per site of one parity: 16 links, three vectors
    assert rows[0]["limit_us"] > 0
    assert {"without faces", "scalar code"} <= set(rows[0]["variants"])
    assert "onehop: faces, by clocks" in rows[0]["variants"]
    solver = measure(ranks, "solver", *words)
    notes = "".join(solver["notes"])
    assert "GB/s per rank, of 2 that read 1 GiB" in notes
    assert "peak of one thread" in notes
    assert "times as fast as all in double" in notes
    whole, double, masses, wilson = solver["rows"]
    assert set(wilson["variants"]) == {"bicgstab", "cgnr"}
    assert "iterations of auto" in notes
    assert {"single inside", "double"} <= set(whole["variants"])
    # Eight iterations of both parities: 128 sites, sixteen links and three vectors each, and more for sums of vectors.
    assert double["bytes"] > 8 * 2 * 128 * 2448
    assert masses["bytes"] > 8 * 2 * 128 * 1224
    for row in (double, masses):
        assert row["limit_us"] > 0
        assert any(name.startswith("scalar code") for name in row["variants"])
        if row["best_peer"] is not None:  # there is an MPI to compare with
            assert row["best_peer"] == "plain MPI, the same solver and kernels"
