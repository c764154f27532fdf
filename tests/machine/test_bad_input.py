"""`onehop simulate` and `onehop map` refuse numbers that no machine has and options that do not belong together."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onehop import halo
from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import (
    RailAssignment,
    goal,
    load_machine,
    loggops,
    machine_rails,
    message_traffic,
    permutation_traffic,
    simulate,
)
from onehop.machine.rails import assign_rails, schedule_rails
from onehop.predict import predict_solver
from onehop.topology import Grid, HostLayout, machine_hosts, map_schedule, renumber

HALO = ("simulate", "halo", "--grid", "4x4", "--extent", "64x64", "--machine", "fugaku")
PERMUTATION = ("simulate", "permutation", "--machine", "mira", "--bits", "20", "--local", "16")
ALLREDUCE = ("simulate", "allreduce", "--machine", "mira", "-n", "8", "--elements", "8")
MAP = ("map", "--grid", "4x4", "--hosts", "4", "--per-host", "4")
HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((*HALO, "--width", "1000000000000"), "at most 65536 layers"),
        ((*HALO, "--map", "/dev/zero"), "at most 268435456 bytes"),
        ((*HALO, "--fields", HUGE), "--fields"),
        ((*HALO, "--chunk", HUGE), "--chunk"),
        ((*HALO, "--slots", HUGE), "--slots"),
        ((*HALO, "--compute", "1e300"), "--compute"),
        ((*HALO, "--rows", "-1"), "--rows"),
        ((*HALO, "--dtype", "O"), "a NumPy type of numbers"),
        ((*HALO, "--plot", "x.xyz"), "a name that ends in one of"),
        ((*HALO, "--elements", "7"), "with the pattern allreduce only"),
        ((*HALO, "--dtype", "V0"), "a NumPy type of numbers"),
        ((*HALO, "--accuracy", "0.6"), "--accuracy"),
        ((*HALO, "--chunk", "-1"), "--chunk"),
        ((*HALO, "--slot", "-1"), "--slot"),
        ((*HALO[:3], f"{HUGE}x4", *HALO[4:]), "--grid"),
        ((*HALO[:5], f"{HUGE}x4", *HALO[6:]), "--extent"),
        (("simulate", "allreduce", "--machine", "mira", "-n", HUGE, "--elements", "8"), "--ranks"),
        (("simulate", "allreduce", "--machine", "mira", "-n", "8", "--elements", HUGE), "--elements"),
        ((*PERMUTATION[:5], HUGE, *PERMUTATION[6:], "--swap", "0:1"), "--bits"),
        ((*PERMUTATION, "--swap", "\u00b2:1"), "pairs of bits below 20"),
        ((*PERMUTATION, "--swap", "0:17", "--dtype", "foo"), "a NumPy type of numbers"),
        ((*PERMUTATION, "--permutation", f"0,{HUGE}"), "--permutation"),
        (("map", "--grid", "4x4", "--hosts", "4", "--per-host", "4", "--seed", HUGE), "--seed"),
        (("map", "--grid", "4x4", "--hosts", "4", "--per-host", HUGE), "--per-host"),
        (("map", "--grid", "4x4", "--hosts", "4", "--per-host", "4", "--torus", HUGE), "--torus"),
        (("map", "--grid", "4x4", "--hosts", HUGE, "--per-host", "4"), "--hosts"),
        (
            ("map", "--grid", "600x600", "--hosts", "600", "--per-host", "600", "--plot", "map.svg"),
            "at most 512 positions in the dimensions of a plot, found 600 x 600",
        ),
        ((*MAP, "--format", "mpich"), "expected --format with --rankfile only"),
        ((*MAP, "--host-names", "a,b,c,d"), "expected --host-names with --rankfile only"),
        (
            ("simulate", "schedule.json", "--machine", "mira", "--grid", "2x2"),
            "--grid with the pattern halo only",
        ),
        (
            ("simulate", "schedule.json", "--machine", "mira", "--dtype", "float32"),
            "--dtype with the pattern",
        ),
        ((*ALLREDUCE, "--algorithm", "foo"), "expected --algorithm two_shot or one_shot, found 'foo'"),
        ((*ALLREDUCE, "--algorithm", "auto"), "expected --algorithm two_shot or one_shot, found 'auto'"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else None,
)
def test_it_is_an_error(
    arguments: tuple[str, ...], found: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "out.json"
    assert main([*arguments, "--json", str(target)]) == 2
    assert found in " ".join(capsys.readouterr().err.split())
    assert not target.exists()


def test_a_schedule_that_goal_cannot_list_is_refused_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    large = ("simulate", "allreduce", "--machine", "fugaku", "-n", "65536", "--elements", "65536")
    files = [tmp_path / name for name in ("large.goal", "out.json", "large.svg")]
    options = zip(("--goal", "--json", "--plot"), map(str, files), strict=True)
    assert main([*large, *(one for option in options for one in option)]) == 2
    shown = capsys.readouterr()
    assert "at most 4194304 messages" in " ".join(shown.err.split())
    assert not shown.out
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize("places", [[0.7, 1.2], ["0", "1"], [[0], [1]], [0, float("nan")], [0, 10**30]])
def test_places_are_whole_numbers(places: list[Any]) -> None:
    schedule = halo(extents=(8,), grid=(2,))
    with pytest.raises(BadInput, match="the map of ranks: expected one place per rank"):
        simulate(schedule, "mira", ranks=places)


def test_bits_are_whole_numbers() -> None:
    with pytest.raises(BadInput, match="a permutation of bits: expected a bit of the index for each bit"):
        permutation_traffic(8, local=6, permutation=[1.5] * 8)  # type: ignore[list-item]


@pytest.mark.parametrize("which", [("5", "--swap", "0:1"), ("3", "--swap", "0:0")])
def test_a_permutation_may_move_nothing_between_ranks(
    which: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    local, *swap = which
    arguments = ["simulate", "permutation", "--bits", "5", "--local", local, *swap, "--machine", "fugaku"]
    assert main([*arguments, "--json", "-"]) == 0
    assert all(one["messages"] == 0 for one in json.loads(capsys.readouterr().out)["rounds"])


@pytest.mark.parametrize("option", ["-o", "--rankfile", "--plot"])
def test_standard_output_is_no_file_of_a_map(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is printed there. Options that print nothing else take `-`."""
    arguments = ["map", "--grid", "4x4", "--hosts", "4", "--per-host", "4", option, "-"]
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert "expected the name of a file, found '-'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_halo_of_more_ranks_than_processors_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Listing its messages takes minutes."""
    begin = time.process_time()
    assert (
        main(["simulate", "halo", "--grid", "1024x1024x4", "--extent", "2048x2048x8", "--machine", "mira"])
        == 2
    )
    assert time.process_time() - begin < 20
    assert "expected 1 to 786432 ranks" in capsys.readouterr().err


SCHEDULE = halo(extents=(8, 8), grid=(2, 2))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: simulate(None, "fugaku"), "expected a Schedule or a Traffic, found None"),  # type: ignore[arg-type]
        (lambda: goal("halo.json"), "expected a Schedule or a Traffic, found 'halo.json'"),  # type: ignore[arg-type]
        (lambda: machine_rails(3, "fugaku"), "expected a Schedule or a Traffic, found 3"),  # type: ignore[arg-type]
        (lambda: simulate(SCHEDULE, 5), "expected a machine"),  # type: ignore[arg-type]
        (lambda: load_machine(None), "expected a machine"),  # type: ignore[arg-type]
        (lambda: simulate(SCHEDULE, "fugaku", compute="x"), "compute: expected a number"),  # type: ignore[arg-type]
        (lambda: machine_hosts("mira", 0), "expected 1 to 786432 ranks"),
        (lambda: machine_hosts("mira", "4"), "ranks: expected a whole number, found '4'"),  # type: ignore[arg-type]
        (lambda: machine_hosts(None, 4), "expected a machine"),  # type: ignore[arg-type]
        (lambda: predict_solver((8, 8, 8), "mira", 4), "four whole numbers of sites"),
        (lambda: predict_solver("8888", "mira", 4), "four whole numbers of sites"),  # type: ignore[arg-type]
        (lambda: map_schedule(None, HostLayout.of_equal(2, 2)), "expected a Schedule"),  # type: ignore[arg-type]
        (lambda: renumber(None, [0]), "expected a Schedule"),  # type: ignore[arg-type]
        (lambda: renumber(SCHEDULE, None), "a permutation of the ranks: expected a sequence"),  # type: ignore[arg-type]
        (
            lambda: renumber(SCHEDULE, [0, 1, 2, 2.5]),
            "a permutation of the ranks: expected a whole number, found 2.5",
        ),  # type: ignore[list-item]
        (lambda: renumber(SCHEDULE, [0, 1, 2, 2**40]), "a permutation of the ranks from 0"),
        (
            lambda: Grid((4, 4)).map(HostLayout.of_equal(4, 4), steps=-5),
            "steps: expected a whole number from 0",
        ),
        (
            lambda: Grid((4, 4)).map(HostLayout.of_equal(4, 4), seed=-1),
            "seed: expected a whole number from 0",
        ),
        (
            lambda: map_schedule(SCHEDULE, HostLayout.of_equal(2, 2), steps=2.5),
            "steps: expected a whole number",
        ),  # type: ignore[arg-type]
        (lambda: Grid((4, 4), "no").map(HostLayout.of_equal(4, 4)), "map: periodic: expected True or False"),  # type: ignore[arg-type]
        (lambda: HostLayout.of_equal(2.5, 2), "hosts: expected a whole number below 2^63, found 2.5"),  # type: ignore[arg-type]
        (lambda: HostLayout(None), "the host of every rank as a sequence"),  # type: ignore[arg-type]
        (lambda: load_machine("mira").job("4"), "processors: expected a whole number below 2^63, found '4'"),  # type: ignore[arg-type]
        (lambda: simulate(SCHEDULE, "fugaku", slots=1.5), "slots: expected a whole number, found 1.5"),  # type: ignore[arg-type]
        (
            lambda: simulate(SCHEDULE, "fugaku", chunk_bytes=2**64),
            "chunk_bytes: expected a whole number from",
        ),
        (lambda: simulate(SCHEDULE, "fugaku", accuracy="1"), "accuracy: expected a number, found '1'"),  # type: ignore[arg-type]
        (lambda: machine_rails(SCHEDULE, "fugaku", rule=[]), "expected a rule for rails"),  # type: ignore[arg-type]
        (lambda: schedule_rails(None, 2, rails=2), "expected a Schedule, found None"),  # type: ignore[arg-type]
        (lambda: schedule_rails(SCHEDULE, 2, rails="2"), "rails: expected a whole number, found '2'"),  # type: ignore[arg-type]
        (lambda: schedule_rails(SCHEDULE, 2, rails=2, cut=1), "cut: expected True or False, found 1"),  # type: ignore[arg-type]
        (lambda: assign_rails([(0, 1)], rails=2), "expected messages as sender, receiver and bytes"),  # type: ignore[list-item]
        (lambda: RailAssignment(0, 1, "e0", 0, 8), "rail: expected a whole number below 2^31, found 'e0'"),  # type: ignore[arg-type]
        (lambda: message_traffic(0, []), "ranks: expected a whole number from 1"),
        (
            lambda: message_traffic(2, [[], [(0, 2, 8)]]),
            "round 1: expected ranks from 0 to 1, found the message (0, 2, 8)",
        ),
        (lambda: loggops(SCHEDULE, latency=2.5), "latency: expected a whole number, found 2.5"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_in_python_are_bad_input(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(BadInput, match=re.escape(expected)):
        call()


def test_a_machine_is_named_and_a_map_renumbers() -> None:
    hosts = machine_hosts("fugaku", 16)
    assert hosts.torus == machine_hosts(load_machine("fugaku"), 16).torus
    found = Grid((2, 2)).map(HostLayout.of_equal(2, 2))
    assert renumber(SCHEDULE, found) == renumber(SCHEDULE, found.rank_at)
