"""Maps to the hosts of a machine file, and maps that `onehop map` writes and `onehop simulate` reads."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import Simulation, load_machine, simulate
from onehop.schedule import halo
from onehop.topology import Grid, HostLayout, machine_hosts, map_schedule, renumber


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "ranks", "hosts", "groups", "torus"),
    [
        ("mira", 16 * 1024, 1024, (), (2, 4, 4, 4, 8)),
        ("fugaku", 4096, 1024, (), (2, 2, 2, 4, 4, 8)),
        ("fugaku", 4, 4, (), ()),
        ("frontier", 8192, 1024, (4, 32), ()),
        ("cluster-100gbe", 65536, 1024, (32,), ()),
        ("cluster-100gbe", 64, 2, (), ()),
        ("genesis", 7200, 100, (25,), ()),
        ("mi300x", 1, 1, (), ()),
    ],
)
def test_hosts_of_a_machine(name: str, ranks: int, hosts: int, groups: Any, torus: Any) -> None:
    layout = machine_hosts(load_machine(name), ranks)
    assert (layout.hosts, layout.groups, layout.torus) == (hosts, groups, torus)
    assert len(layout.host_of_rank) == ranks
    assert layout.host_of_rank == tuple(rank // (ranks // hosts) for rank in range(ranks))


def test_borders_cost_what_the_machine_says() -> None:
    # Leaf switches of the cluster pass on half of what their hosts send.
    assert machine_hosts(load_machine("cluster-100gbe"), 65536).costs == (1, 2)
    # Three other groups at 384 GB/s for 128 nodes of 96 GB/s: 10.67 times the time of a byte.
    assert machine_hosts(load_machine("perlmutter"), 2048).costs == (100, 100, 1067)
    assert machine_hosts(load_machine("perlmutter"), 2048, [1, 2, 3]).costs == (1, 2, 3)
    with pytest.raises(BadInput, match="expected 3 costs"):
        machine_hosts(load_machine("perlmutter"), 2048, [1, 2])
    with pytest.raises(BadInput, match=r"expected 1 to 8 ranks.*found 9"):
        machine_hosts(load_machine("mi300x"), 9)


@pytest.mark.parametrize("name", ["fugaku", "mira", "frontier"])
def test_the_simulator_finds_the_bytes_and_hops_of_the_map(name: str) -> None:
    schedule = halo(extents=(64, 64, 32), grid=(8, 8, 4))
    machine = load_machine(name)
    found = map_schedule(schedule, machine_hosts(machine, schedule.ranks))
    result = simulate(schedule, machine, ranks=found)
    level = machine.levels[-1].name
    assert result.bytes_by_level[level] == found.cost.bytes_between_hosts
    # The bytes of all links of a torus are bytes times hops.
    carried = sum(one.bytes * one.alike for one in result.links if ", dimension " in one.name)
    assert carried == found.cost.byte_hops
    assert (found.cost.byte_hops > 0) == (name != "frontier")
    # The same as a schedule whose ranks are numbered by the map, without a map: equal loads of the links between hosts.
    # Ranks begin their messages in the order of their numbers, so the times differ a little.
    numbered = simulate(renumber(schedule, found.rank_at), machine)

    def between(one: Simulation) -> dict[str, float]:
        return {
            link.name: link.bytes for link in one.links if "dimension" in link.name or "router" in link.name
        }

    assert between(result) == between(numbered)
    assert numbered.seconds == pytest.approx(result.seconds, rel=0.1)


def test_a_map_travels_to_the_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "map.json", tmp_path / "out.json"
    arguments = ["map", "--grid", "8x8x4", "--periodic", "--machine", "fugaku"]
    assert main([*arguments, "-o", str(file), "--json", str(out)]) == 0
    capsys.readouterr()
    written, printed = json.loads(file.read_text()), json.loads(out.read_text())
    assert written["places"] == printed["places"]
    assert sorted(written["places"]) == list(range(256))
    assert written["processors"] == 256
    assert (written["machine"], written["hosts"], written["per_host"]) == ("fugaku", 64, 4)
    grid = Grid((8, 8, 4), True)
    layout = machine_hosts(load_machine("fugaku"), 256)
    chosen = next(one for one in printed["candidates"] if one["name"] == printed["chosen"])
    assert grid.cost(layout, written["places"]).byte_hops == chosen["byte_hops"]

    pattern = ["simulate", "halo", "--grid", "8x8x4", "--extent", "64x64x32", "--machine", "fugaku"]
    plain = run(capsys, *pattern)
    mapped = [run(capsys, *pattern, "--map", str(one)) for one in (file, out)]
    assert mapped[0]["seconds"] == mapped[1]["seconds"] < plain["seconds"]
    schedule = renumber(halo(extents=(64, 64, 32), grid=(8, 8, 4)), written["places"])
    assert simulate(schedule, "fugaku").seconds == pytest.approx(mapped[0]["seconds"], rel=0.1)


@pytest.mark.parametrize(
    ("made_for", "message"),
    [
        (["--machine", "mira"], 'expected a map for machine fugaku, found "mira"'),
        (["--hosts", "2", "--per-host", "32"], "expected a map for hosts 16, found 2"),
    ],
)
def test_a_map_for_other_hosts_is_refused(
    made_for: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "map.json"
    assert main(["map", "--grid", "8x8", *made_for, "-o", str(file)]) == 0
    capsys.readouterr()
    halo_of = ["simulate", "halo", "--grid", "8x8", "--extent", "64x64", "--machine", "fugaku"]
    assert main([*halo_of, "--map", str(file)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_candidates_list_what_the_choice_is_made_by(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "map --grid 8x8 --hosts 4 --per-host 16 --bytes 8x100 --groups 2 --costs 1x3"
    found = run(capsys, *arguments.split())
    for one in found["candidates"]:
        inside, between, across = one["bytes_by_level"]
        assert one["bytes_between_hosts"] == between + across
        assert one["weighted_bytes"] == between + 3 * across
        assert inside + between + across == 2 * 7 * 8 * (8 + 100)
    chosen = next(one for one in found["candidates"] if one["name"] == found["chosen"])
    assert chosen["weighted_bytes"] == min(one["weighted_bytes"] for one in found["candidates"])
    assert found["lower_bound"] <= chosen["bytes_between_hosts"]


def test_hosts_that_ranks_do_not_fill() -> None:
    """97 ranks on hosts of eight: the last host has one."""
    layout = machine_hosts(load_machine("h100"), 97)
    sizes = [layout.host_of_rank.count(host) for host in range(layout.hosts)]
    assert sizes == [8] * 12 + [1]
    found = Grid((97,)).map(layout)
    assert sorted(found.rank_at) == list(range(97))
    assert [found.host_at.count(host) for host in range(13)] == sizes


def test_the_map_of_many_ranks_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "map.json"
    arguments = ["--grid", "64x32x64", "--hosts", "2731", "--per-host", "48"]
    assert main(["map", *arguments, "-o", str(file)]) == 0
    places = json.loads(file.read_text())["places"]
    assert len(set(places)) == len(places) == math.prod((64, 32, 64))
    assert max(places) < 2731 * 48
    assert Grid((64, 32, 64)).cost(HostLayout.of_equal(2731, 48), places).edges_between_hosts > 0
