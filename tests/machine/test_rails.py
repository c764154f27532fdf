"""Rails: `onehop rails` reproduces the talk, and the functions in Python refuse what cannot be."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.cli.rails import interfaces
from onehop.error import BadInput
from onehop.machine.rails import compare_rails, halo_messages, schedule_rails
from onehop.schedule import halo

TALK = ["rails", "--rails", "6", "--faces", "32x6x4x3", "--injected", "40.8"]


def test_command_reproduces_the_talk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "rails.svg"
    assert main([*TALK, "--json", "-", "--plot", str(plot)]) == 0
    assert "faces of 32x6x4x3" in plot.read_text()
    output = capsys.readouterr()
    report = json.loads(output.out)
    rows = {one["name"]: one for one in report["assignments"]}
    assert list(rows) == ["pattern 1", "round robin", "longest first", "optimum", "optimum, cut"]
    assert report["units"] == 16
    # The talk: 40.8 * 16 / 24 and 40.8 * 16 / 18.
    assert rows["pattern 1"]["busiest_rail"] == 24
    assert rows["pattern 1"]["gb_per_s"] == pytest.approx(27.2)
    assert rows["round robin"]["busiest_rail"] == 18
    assert rows["round robin"]["gb_per_s"] == pytest.approx(36.3, abs=0.05)
    # 36.3 is the most for 16 equal messages that stay whole, and not for messages that are cut.
    assert rows["optimum"]["talk"]["optimal"]
    assert rows["optimum"]["talk"]["lower_bound"] == 18
    assert rows["optimum, cut"]["talk"]["busiest_rail"] == 16
    # With the faces of 32x6x4x3, 102 of 100 parts is the least for whole messages (test_rails.cc).
    assert rows["optimum"]["gb_per_s"] == pytest.approx(40.8 * 100 / 102)
    assert rows["optimum"]["faces"]["optimal"]
    assert rows["longest first"]["gb_per_s"] <= rows["optimum"]["gb_per_s"]
    assert rows["round robin"]["faces"]["gb_per_s"] < rows["optimum"]["gb_per_s"]
    assert rows["optimum, cut"]["gb_per_s"] == pytest.approx(40.8)
    assert "36.3 GB/s is the most for 16 whole equal messages" in " ".join(output.err.split())


def test_loads_are_those_of_the_patterns() -> None:
    report = compare_rails(4, 6, [32, 6, 4, 3])
    rows = {one["name"]: one["faces"] for one in report["assignments"]}
    sizes = [size for face in (72, 384, 576, 768) for size in (face, face)] * 4
    assert rows["pattern 1"]["loads"] == [3600, 3600, 3600, 3600, 0, 0]
    assert rows["round robin"]["loads"] == [sum(sizes[rail::6]) for rail in range(6)]


@pytest.mark.parametrize(
    ("faces", "gb_per_s", "cuts"),
    [
        ([60, 60], [27.2, 36.3, 36.3, 36.3, 40.8], 4),
        ([60, 30], [27.2, 32.6, 40.8, 40.8, 40.8], 0),
        ([60, 20], [27.2, 31.1, 36.3, 36.3, 40.7], 4),
        ([32, 6, 4, 3], [27.2, 37.1, 40.0, 40.0, 40.8], 4),
        ([16, 8, 8, 8], [27.2, 38.1, 38.1, 38.1, 40.8], 4),
        ([32, 32, 16, 16], [27.2, 36.3, 40.8, 40.8, 40.8], 0),
    ],
)
def test_figures_of_the_page(faces: list[int], gb_per_s: list[float], cuts: int) -> None:
    """Bandwidths of a node of Fugaku; those of 32x6x4x3 are in docs/performance/machines.md."""
    rows = [one["faces"] for one in compare_rails(4, 6, faces)["assignments"]]
    assert [round(one["gb_per_s"], 1) for one in rows] == gb_per_s
    assert rows[3]["optimal"]
    assert rows[4]["optimal"]
    assert rows[4]["pieces"] - rows[4]["messages"] == cuts


def test_unequal_rails() -> None:
    report = compare_rails(4, 2, [10, 10], speeds=[3, 1], injected=8)
    rows = {one["name"]: one["faces"] for one in report["assignments"]}
    assert report["speeds"] == [6, 2]
    assert rows["optimum"]["loads"] == [120, 40]
    assert rows["optimum"]["gb_per_s"] == pytest.approx(8)
    # Round robin gives the slow rail half of the bytes, twice its share.
    assert rows["round robin"]["gb_per_s"] == pytest.approx(4)


def test_messages_inside_the_host() -> None:
    every = halo_messages([6, 4], [2, 2])
    assert len(every) == 16
    assert [size for sender, _, size in every if sender == 0] == [4, 4, 6, 6]
    assert every[0] == (0, 2, 4)  # +x of rank 0 leads to rank 2, -x leaves the host
    outside = halo_messages([6, 4], [2, 2], inside=False)
    assert [receiver for _, receiver, _ in outside] == [-1] * 8
    report = compare_rails([2, 2], 6, [6, 4], inside=False)
    assert report["assignments"][0]["faces"]["messages"] == 8


def test_rails_of_a_schedule() -> None:
    schedule = halo(extents=[16, 48], grid=[4, 2], width=1)
    (round_,) = schedule_rails(schedule, 4, rails=6)
    (transfers,) = (one.transfers for one in schedule.rounds)
    expected: dict[tuple[int, int], int] = defaultdict(int)
    for transfer in transfers:
        pair = (transfer.from_.rank, transfer.to.rank)
        if pair[0] // 4 != pair[1] // 4:
            expected[pair] += schedule.bytes(transfer)
    assert {(piece.from_, piece.to): piece.bytes for piece in round_} == expected
    # Equal hosts get the same rails, and no rail of a host carries twice before each carries once.
    for host in (0, 1):
        rails = [piece.rail for piece in round_ if piece.from_ // 4 == host]
        assert len(set(rails)) == min(6, len(rails))
    (cut,) = schedule_rails(schedule, 4, rails=6, cut=True, min_piece=16)
    assert sum(piece.bytes for piece in cut) == sum(expected.values())
    assert schedule_rails(schedule, [0, 1] * 4, rails=6) != [round_]
    assert schedule_rails(schedule, 8, rails=6) == [[]]


def test_bad_hosts_of_a_schedule() -> None:
    schedule = halo(extents=[8], grid=[4], width=1)
    with pytest.raises(BadInput, match="divides the 4 ranks of the schedule, found 3"):
        schedule_rails(schedule, 3, rails=2)
    with pytest.raises(BadInput, match="found 0"):
        schedule_rails(schedule, 0, rails=2)
    with pytest.raises(BadInput, match="the host of each of the 4 ranks, found 2 hosts"):
        schedule_rails(schedule, [0, 1], rails=2)
    with pytest.raises(BadInput, match="found neither"):
        schedule_rails(schedule, 2)


def test_the_interfaces_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, state, speed in (
        ("lo", "up", "1"),
        ("a0", "up", "25000"),
        ("a1", "down", "25000"),
        ("b", "up", "-1"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "operstate").write_text(f"{state}\n")
        (tmp_path / name / "speed").write_text(f"{speed}\n")
    assert interfaces(tmp_path) == {"a0": 25000, "b": 0}
    assert main(["rails", "--json", "-"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["rails"] == max(len(interfaces()), 1)
    assert "this machine" in output.err
    assert main(["rails", "--example", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["injected"] == 40.8


def test_simulate_takes_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "halo", "--grid", "1x1", "--extent", "64x64"]) == 0
    assert "of 1 rank on this machine" in capsys.readouterr().out
