"""`onehop run --profile` and the groups of `onehop plan`: what they report agrees with what runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.cli.quantum.plan import _folded
from onehop.cli.quantum.profile import forms
from onehop.quantum import Circuit, plan, simulate
from onehop.quantum.generators import random_circuit
from onehop.quantum.profile import KINDS, PARTS
from onehop.text import bytes_text, ranges
from ranks import Ranks

pytest.importorskip("qiskit")


def test_a_profile_of_two_ranks(ranks: Ranks) -> None:
    assert (
        main(
            ["quantum", "circuit", "qv", "--qubits", "13", "--depth", "4", "-o", str(ranks.folder / "c.qasm")]
        )
        == 0
    )
    words = ("run", ranks.folder / "c.qasm", "-n", 2, "--shots", 50, "--profile", "--observable", "X0")
    done = ranks.onehop(*words, "--json", ranks.folder / "p.json", "--plot", ranks.folder / "p.svg", status=0)
    assert "passes and exchanges of rank 0" in done.stdout
    assert "rank 1" in done.stdout
    found = json.loads((ranks.folder / "p.json").read_text())
    profile = found["profile"]
    assert [one["rank"] for one in profile["ranks"]] == [0, 1]
    assert profile["bandwidth_gb_per_s"] == pytest.approx(
        profile["pass_bytes"] / profile["pass_seconds"] * 1e-9
    )
    assert profile["pass_bytes"] == 2 * 16 * 2**12
    exchanged = 0
    for one in profile["ranks"]:
        kinds = [entry["kind"] for entry in one["entries"]]
        assert set(kinds) <= set(KINDS)
        assert kinds.count("exchange") == found["exchanges"]
        assert sum(one["seconds_by_kind"].values()) == pytest.approx(profile["seconds"])
        passes = [entry for entry in one["entries"] if entry["kind"] == "pass"]
        assert sum(entry["seconds"] for entry in passes) == pytest.approx(one["seconds_by_kind"]["pass"])
        assert sum(one["seconds_of_passes"].values()) == pytest.approx(one["seconds_by_kind"]["pass"])
        for entry in passes:
            assert entry["share_of_bandwidth"] == pytest.approx(profile["pass_seconds"] / entry["seconds"])
            assert set(entry["parts"]) == set(PARTS)
            assert entry["flops"] == 2 * entry["multiply_adds"] >= entry["flops_least"] > 0
            rate = entry["flops"] * 2**12 / entry["seconds"]
            assert entry["peak_share"] == pytest.approx(rate / profile["peak_gflops"] * 1e-9)
        exchanged += sum(entry["bytes"] for entry in one["entries"] if entry["kind"] == "exchange")
    assert exchanged == found["bytes_moved"]
    passes = [entry for entry in profile["ranks"][0]["entries"] if entry["kind"] == "pass"]
    assert len(passes) == found["passes"]
    drawn = (ranks.folder / "p.svg").read_text()
    assert "<svg" in drawn


def test_groups_of_a_plan(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "q.qasm"
    assert main(["quantum", "circuit", "qft", "--qubits", "18", "-o", str(file)]) == 0
    capfd.readouterr()
    assert main(["plan", str(file), "--passes", "--json", str(tmp_path / "plan.json")]) == 0
    shown = capfd.readouterr().out
    assert "groups of gates" in shown
    found = json.loads((tmp_path / "plan.json").read_text())
    assert sum(len(stage) for stage in found["groups"]) == found["passes"]
    assert sum(group["gates"] for stage in found["groups"] for group in stage) == found["operations"]
    for stage in found["groups"]:
        for group in stage:
            assert len(group["tile_bits"]) == 15
            assert group["sweeps"] > 0


def test_nothing_is_timed_unless_asked() -> None:
    circuit = random_circuit(11, depth=2)
    assert simulate(circuit).profile is None
    profile = simulate(circuit, profile=True).profile
    assert profile is not None
    assert profile.ranks[0]
    assert profile.seconds > 0
    assert all(profile.share(entry) > 0 for entry in profile.ranks[0] if entry.kind == "pass")


def test_noise_has_no_profile(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "q.qasm"
    assert main(["quantum", "circuit", "qft", "--qubits", "3", "-o", str(file)]) == 0
    assert main(["run", str(file), "--profile", "--noise", "depolarizing=0.01"]) != 0
    assert "--profile does not work with --noise" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 1, 4, 6, 7], "0-1, 4, 6-7")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_one_of_a_kind_is_singular() -> None:
    made = {"rotations": 1, "pairs": 0, "matrices": 1, "phases": 2, "tables": 0}
    assert forms(made) == "1 rotation, 1 matrix, 2 phases"


def test_a_plan_begins_with_three_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "q.qasm"
    assert main(["quantum", "circuit", "qft", "--qubits", "18", "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["plan", str(file), "-n", "4", "--json", str(tmp_path / "plan.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = json.loads((tmp_path / "plan.json").read_text())
    moved = bytes_text(found["bytes_per_rank"])
    assert lines[0].startswith("18 qubits on 4 ranks: ")
    assert f"{found['exchanges']} exchange, {moved} sent by each, about " in lines[0]
    assert lines[1].startswith("it fits on this machine")
    gates = 18 * 17 // 2 + 18 + 18 // 2 + 1  # phases, Hadamards, swaps and the X of the first state
    assert lines[2].startswith(f"{gates} gates in {found['passes']:.4g} passes over memory (bound ")
    assert not any("multiply-adds" in line for line in lines)
    assert main(["quantum", "circuit", "qft", "--qubits", "4", "-o", str(file)]) == 0
    assert main(["plan", str(file)]) == 0
    assert "sent by each, less than 1 ms" in capsys.readouterr().out  # not the nanoseconds of its bytes


def test_equal_passes_are_folded() -> None:
    rows = [("1", "a"), ("1", "a"), ("1", "b"), ("1", "a"), ("1", "a"), ("1", "a")]
    assert [*_folded(rows)] == [("1-2", "1", "a"), ("3", "1", "b"), ("4-6", "1", "a")]


def test_plan_counts_the_passes_of_a_run() -> None:
    long = random_circuit(12, depth=150)
    assert len(long) > 2048  # operations that the engine takes at once
    half = random_circuit(12, depth=4)
    measured = (Circuit(12, 1) + half).measure(0, 0) + half
    for circuit in (long, measured):
        assert plan(circuit).passes == simulate(circuit, shots=1, seed=1).passes > 1
