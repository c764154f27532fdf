"""`onehop simulate`, `map` and `rails` refuse numbers that no machine has and options that do not belong together."""

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
    load_machine,
    message_traffic,
    permutation_traffic,
    simulate,
)
from onehop.machine.rails import assign_rails
from onehop.predict import predict_solver
from onehop.topology import Grid, HostLayout, machine_hosts, map_schedule, renumber

HALO = "simulate halo --grid 4x4 --extent 64x64 --machine fugaku"
SMALL = "simulate halo --grid 4x2 --extent 8x8 --machine mi300x"
PERMUTATION = "simulate permutation --machine mira --bits 20 --local 16"
ALLREDUCE = "simulate allreduce --machine mira"
MAP = "map --grid 4x4 --hosts 4 --per-host 4"
PLANE = "map --grid 5x5 --hosts 5 --per-host 5"
TALK = "rails --rails 6 --faces 32x6x4x3 --injected 40.8"
RAILS = "rails --schedule halo.json -o rails.json"
HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"{HALO} --width 1000000000000", "at most 65536 layers"),
        (f"{HALO} --map /dev/zero", "at most 268435456 bytes"),
        (f"{HALO} --map none.json", "--map none.json"),
        (f"{HALO} --fields {HUGE}", "--fields"),
        (f"{HALO} --chunk {HUGE}", "--chunk"),
        (f"{HALO} --chunk -1", "--chunk"),
        (f"{HALO} --slots {HUGE}", "--slots"),
        (f"{HALO} --slot -1", "--slot"),
        (f"{HALO} --compute 1e300", "--compute"),
        (f"{HALO} --compute -1", "--compute as a finite number of 0"),
        (f"{HALO} --rows -1", "--rows"),
        (f"{HALO} --dtype O", "a NumPy type of numbers"),
        (f"{HALO} --dtype V0", "a NumPy type of numbers"),
        (f"{HALO} --plot x.xyz", "a name that ends in one of"),
        (f"{HALO} --elements 7", "with the pattern allreduce or broadcast only"),
        (f"{HALO} --accuracy 0.6", "--accuracy"),
        (f"simulate halo --grid {HUGE}x4 --extent 64x64 --machine fugaku", "--grid"),
        (f"simulate halo --grid 4x4 --extent {HUGE}x4 --machine fugaku", "--extent"),
        ("simulate halo --machine mira", "--grid"),
        ("simulate halo --grid 4x4 --extent 8x8 --machine nowhere", "expected a machine"),
        ("simulate nothing.json --machine mira", "cannot read the schedule"),
        ("simulate halo.json --machine mira --grid 2x2", "--grid with the pattern halo only"),
        ("simulate halo.json --machine mira --dtype float32", "--dtype with the pattern"),
        (f"{ALLREDUCE} -n {HUGE} --elements 8", "--ranks"),
        (f"{ALLREDUCE} -n 8 --elements {HUGE}", "--elements"),
        (f"{ALLREDUCE} -n 8 --elements 8 --algorithm foo", "expected --algorithm auto, by_host, two_shot or"),
        ("simulate allreduce --machine mi300x --ranks 9 --elements 8", "expected 1 to 8 ranks"),
        (f"simulate permutation --machine mira --bits {HUGE} --local 16 --swap 0:1", "--bits"),
        ("simulate permutation --machine mi300x --bits 8 --local 4", "--swap"),
        ("simulate permutation --machine mi300x --bits 8 --local 4 --swap 0:9", "bits below 8"),
        (f"{PERMUTATION} --swap \u00b2:1", "pairs of bits below 20"),
        (f"{PERMUTATION} --swap 0:17 --dtype foo", "a NumPy type of numbers"),
        (f"{PERMUTATION} --permutation 0,{HUGE}", "--permutation"),
        (f"{MAP} --seed {HUGE}", "--seed"),
        (f"{MAP} --torus {HUGE}", "--torus"),
        (f"{MAP} --format mpich", "expected --format with --rankfile only"),
        (f"{MAP} --host-names a,b,c,d", "expected --host-names with --rankfile only"),
        (f"map --grid 4x4 --hosts 4 --per-host {HUGE}", "--per-host"),
        (f"map --grid 4x4 --hosts {HUGE} --per-host 4", "--hosts"),
        ("map --grid 4x4", "or --machine, found neither"),
        ("map --grid 9x9x9 --machine mi300x", "expected 1 to 8 ranks"),
        (
            "map --grid 600x600 --hosts 600 --per-host 600 --plot map.svg",
            "at most 512 positions in the dimension",
        ),
        ("map --grid 5x5 --hosts 4 --per-host 6", "hold the 25 ranks of the grid, found 4 hosts for 24"),
        ("map --grid 5x5 --hosts 0 --per-host 6", "1 host or more, found 0"),
        ("map --grid 5x5 --hosts 5 --per-host 0", "1 rank per host or more, found 0"),
        ("map --grid 5x0 --hosts 5 --per-host 5", "expected --grid as numbers of 1 to 2^31-1 with x between"),
        ("map --grid 5xq --hosts 5 --per-host 5", "expected --grid"),
        ("map --grid 99999x99999 --hosts 5 --per-host 5", "at most 1048576 ranks"),
        ("map --grid 5x5 --hosts 99999999999 --per-host 99999999999", "at most 2^31-1"),
        ("map --grid 5x5 --per-host 5", "expected --hosts"),
        ("map --grid 5x5 --hosts 3 --per-host 20,5", "one for each of 3 hosts"),
        ("map --hosts 5 --per-host 5", "expected --grid or --schedule, found neither"),
        ("map --schedule none --periodic --hosts 5 --per-host 5", "with --grid only"),
        (f"{PLANE} --torus 2x2", "torus of at least 5 hosts, found 4"),
        (f"{PLANE} --bytes 8", "for each of 2 dimensions"),
        (f"{PLANE} --rankfile ranks --format slurm", "expected --format openmpi"),
        (f"{PLANE} --rankfile ranks --format mpich", "expected the names"),
        (f"{PLANE} --rankfile ranks --host-names a,b", "names of 5 hosts, found 2"),
        (f"{PLANE} --rankfile ranks --host-names a,a,b,c,d", "found 'a' twice"),
        ("map --grid 4x4 --machine fugaku --hosts 4", "expected --hosts without --machine"),
        ("map --grid 4x4 --machine fugaku --per-host 4", "expected --per-host without --machine"),
        ("map --grid 4x4 --machine fugaku --groups 2", "expected --groups without --machine"),
        ("map --grid 4x4 --machine fugaku --torus 2x2", "expected --torus without --machine"),
        ("map --grid 4x4 --machine fugaku --costs 1x2", "expected 1 cost,"),
        ("map --grid 4x4 --machine fugaku -o no/such/folder.json", "--output: there is no folder"),
        (f"{TALK} --plot plot.svg --rails 0", "expected 1 to 1024 rails, found 0"),
        (f"{TALK} --rails 100000", "expected 1 to 1024 rails, found 100000"),
        (f"{TALK} --faces 32xsix", "expected --faces as numbers"),
        (f"{TALK} --faces 32x0", "expected --faces as numbers of 1 or more with x between them"),
        (f"{TALK} --faces 4000000000x4000000000x4000000000", "below 2^63 sites"),
        (f"{TALK} --ranks 0", "expected 1 to 4096 ranks of a host, found 0"),
        (f"{TALK} --grid 2x2x1", "one per dimension of the local lattice 32x6x4x3, found 2x2x1"),
        (f"{TALK} --skip-inside", "expected the ranks of a host as a grid of 4 numbers"),
        (f"{TALK} --speeds 1,2", "expected one speed for each of 6 rails, found 2 speeds"),
        (f"{TALK} --speeds 1,2,3,4,5,0", "rail 5: expected a finite speed above 0, found 0"),
        (f"{TALK} --speeds 1,1,1,1,1,1e300", "(from 1e-100 to 1e100), found 1e+300"),
        (f"{TALK} --speeds 1,2,3,4,5,nan", "expected --speeds as a finite number, found '1,2,3,4,5,nan'"),
        (f"{TALK} --speeds fast", "expected --speeds as a finite number, found 'fast'"),
        (f"{TALK} --injected 0", "expected an injected bandwidth from 1e-30 to 1e30 GB/s, found 0"),
        (f"{TALK} --injected 1e308", "expected an injected bandwidth from 1e-30 to 1e30 GB/s, found 1e+308"),
        (f"{TALK} --min-piece 0", "--min-piece"),
        (f"{TALK} --min-piece {HUGE}", "--min-piece"),
        ("rails --machine fugaku", "expected --machine with --schedule only"),
        (f"{RAILS} --rails 6", "expected the number of ranks per host, at least 1, or a machine, found none"),
        (f"{RAILS} --per-host 0", "found 0"),
        (f"{RAILS} --per-host 4 --rails 0", "expected 1 to 1024 rails, found 0"),
        (f"{RAILS} --machine fugaku --rails 6", "expected --rails without --machine"),
        (f"{RAILS} --machine fugaku --per-host 4", "expected --per-host without --machine"),
        (f"{RAILS} --machine mi300x", "expected 1 to 8 ranks"),
        (f"{RAILS} --machine mira", "the route of a message determines its link"),
        (f"{RAILS} --per-host 4 --faces 4x4", "expected --faces without --schedule"),
        (f"{RAILS} --per-host 4 --rule best", "expected --rule by_rank"),
        (f"{RAILS} --per-host 4 --min-piece 0", "expected --min-piece"),
    ],
)
def test_a_command_is_refused_and_writes_nothing(
    command: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    halo(extents=(64, 48, 32), grid=(4, 4, 4)).save(tmp_path / "halo.json")
    assert main([*command.split(), "--json", "out.json"]) == 2
    shown = capsys.readouterr()
    assert expected in " ".join(shown.err.split())
    assert not shown.out
    assert [file.name for file in tmp_path.iterdir()] == ["halo.json"]


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        (
            "--map",
            "[0, 1, 1, 3, 4, 5, 6, 7]",
            "place of its own for every rank, found ranks 1 and 2 at place 1",
        ),
        ("--map", "[0, 1, 2]", "one place for each of 8 ranks, found 3"),
        ("--map", "[0, 1, 2, 3, 4, 5, 6, 9]", "places from 0 to 7 of the machine mi300x, found 9"),
        ("--map", "[0, 1, 2, -1]", "a list of the places of all ranks"),
        ("--map", "[0, 1, 2, 3.5]", "a list of the places of all ranks"),
        ("--map", '{"candidates": []}', "or a map that `onehop map -o` has written"),
        ("--map", '{"places": [0, 1, 2, 3, 4, 5, 6, 7], "processors": 9}', "expected 1 to 8 ranks"),
        ("--map", '{"places": [0, 1, 2, 3, 4, 5, 6, 7], "processors": 3}', "places from 0 to 2"),
        ("--map", '{"places": [0, 1, 2, 3], "processors": "4"}', "processors as a number above 0"),
        ("--map", "{", "or a map that `onehop map -o` has written, found"),
        ("--rails", "{", "expected a rule (by_rank,"),
        ("--rails", "{}", "expected rails that"),
        ("--rails", "[[1]]", "expected assignments with from, to, rail, first_byte, bytes, found 1"),
        ("--rails", '[[{"from":0,"to":1,"rail":0,"first_byte":0,"bytes":-1}]]', "bytes as a number from 0"),
        ("--rails", "[]", "a list for each of 1 round, found 0"),
    ],
)
def test_a_file_that_holds_no_map_or_no_rails(
    option: str, text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "file.json", tmp_path / "out.json"
    file.write_text(text)
    pattern = SMALL if option == "--map" else SMALL.replace("mi300x", "fugaku")
    assert main([*pattern.split(), option, str(file), "--json", str(out)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert option == "--rails" or f"--map {file}: expected" in told
    assert expected in told
    assert not out.exists()


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
    with pytest.raises(
        BadInput, match="the map of ranks: expected one place per rank: expected a whole number"
    ):
        simulate(schedule, "mira", ranks=places)


def test_bits_are_whole_numbers() -> None:
    with pytest.raises(BadInput, match=r"permutation to be a sequence of whole numbers, found one with 1\.5"):
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
        (lambda: machine_hosts("mira", 0), "expected 1 to 786432 ranks"),
        (lambda: predict_solver((8, 8, 8), "mira", 4), "four whole numbers of sites"),
        (lambda: predict_solver("8888", "mira", 4), "four whole numbers of sites"),  # type: ignore[arg-type]
        (
            lambda: renumber(SCHEDULE, [0, 1, 2, 2.5]),
            "rank_at to be a sequence of whole numbers, found one with 2.5",
        ),  # type: ignore[list-item]
        (lambda: renumber(SCHEDULE, [0, 1, 2, 2**40]), "renumber: expected"),
        (
            lambda: Grid((4, 4)).map(HostLayout.of_equal(4, 4), steps=-5),
            "steps: expected 0 or more, found -5",
        ),
        (
            lambda: Grid((4, 4)).map(HostLayout.of_equal(4, 4), seed=-1),
            "expected seed to be a whole number",
        ),
        (
            lambda: map_schedule(SCHEDULE, HostLayout.of_equal(2, 2), steps=2.5),
            "steps to be a whole number or None, found 2.5",
        ),  # type: ignore[arg-type]
        (lambda: Grid((4, 4), "no").map(HostLayout.of_equal(4, 4)), "map: periodic: expected True or False"),  # type: ignore[arg-type]
        (lambda: HostLayout.of_equal(2.5, 2), "expected hosts to be a whole number, found 2.5"),  # type: ignore[arg-type]
        (lambda: simulate(SCHEDULE, "fugaku", slots=1.5), "slots: expected a whole number, found 1.5"),  # type: ignore[arg-type]
        (
            lambda: simulate(SCHEDULE, "fugaku", chunk_bytes=2**64),
            "chunk_bytes: expected a whole number in the range",
        ),
        (lambda: simulate(message_traffic(4, [[(0, 1, 8)]]), "mi300x", ranks=[]), "found none"),
        (lambda: message_traffic(4, [[(0, 1, 8)]]).on_rails(0, [1, 2]), "rails: expected one for each of 1"),
        (lambda: assign_rails([(0, 1, 2**63)], rails=2), "in the range of its type, found 92"),
        (
            lambda: assign_rails([(0, 1)], rails=2),
            "expected messages to be a sequence of tuples of 3 whole numbers",
        ),  # type: ignore[list-item]
        (lambda: RailAssignment(0, 1, "e0", 0, 8), "expected rail to be a whole number, found 'e0'"),  # type: ignore[arg-type]
        (lambda: message_traffic(0, []), "expected at least 1 rank, found 0"),
        (
            lambda: message_traffic(2, [[], [(0, 2, 8)]]),
            "round 1: expected ranks from 0 to 1, found a message of 0 to 2",
        ),
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
