"""Maps of ranks to hosts: the figures of `onehop map`, its files and its errors, and maps in halos and lattices."""

import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop import Group, count, verify
from onehop.cli import main
from onehop.error import BadInput
from onehop.lattice import Geometry
from onehop.schedule import halo, halo_block
from onehop.topology import Grid, HostLayout, map_text, renumber

FIGURES = {"row-major": (4704, 96), "hyperplane": (1328, 38), "k-d tree": (1732, 46), "strips": (1244, 28)}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["map", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def edges_of(host_at: np.ndarray, periodic: bool = False) -> tuple[int, int]:
    """Count directed edges between hosts, and those that leave the busiest host, with NumPy alone."""
    leaving = np.zeros(host_at.max() + 1, int)
    for axis in range(host_at.ndim):
        for step in (-1, 1):
            beside = np.roll(host_at, step, axis)
            outer = beside != host_at
            if not periodic:
                edge = [slice(None)] * host_at.ndim
                edge[axis] = 0 if step == 1 else -1
                outer[tuple(edge)] = False
            np.add.at(leaving, host_at[outer], 1)
    return int(leaving.sum()), int(leaving.max())


def test_the_figures_of_the_plane(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "--grid", "50x48", "--hosts", "50", "--per-host", "48")
    assert {"candidates", "chosen", "lower_bound", "seconds"} <= set(result)
    assert sorted(result["places"]) == list(range(2400))
    host_at = np.array(result["places"]).reshape(50, 48) // 48
    chosen = next(one for one in result["candidates"] if one["name"] == result["chosen"])
    assert edges_of(host_at) == (chosen["edges_between_hosts"], chosen["busiest_host_edges"])
    costs = {
        one["name"]: (one["edges_between_hosts"], one["busiest_host_edges"]) for one in result["candidates"]
    }
    assert {name: costs[name] for name in FIGURES} == FIGURES
    assert costs["best box"] == (2404, 50)
    assert result["lower_bound"] == 1204
    assert costs[result["chosen"]] <= (1244, 28)


def test_maps_of_random_grids_are_better_than_published_ones() -> None:
    path = Path(__file__).parents[2] / "tools/map_survey.py"
    spec = importlib.util.spec_from_file_location("map_survey", path)
    assert spec is not None
    assert spec.loader is not None
    survey = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(survey)
    draw = random.Random(1)
    edges = 0
    for _ in range(4):
        grid, sizes = survey.random_case(draw)
        found = grid.map(HostLayout.of_sizes(sizes))
        host_at = np.array(found.host_at).reshape(grid.extents)
        assert np.bincount(host_at.ravel()).tolist() == sizes
        assert (survey.ratio_of(found) or 1) >= 1
        published = [one.cost for one in found.candidates if one.name != "local search"]
        best = min(published, key=lambda cost: (cost.weighted_bytes, cost.busiest_host_bytes))
        cost = found.cost
        edges += cost.edges_between_hosts
        assert cost.bytes_between_hosts <= best.bytes_between_hosts
        # More bytes of the busiest host are paid for by fewer bytes in all.
        fall = best.bytes_between_hosts / cost.bytes_between_hosts
        assert cost.busiest_host_bytes <= best.busiest_host_bytes * fall**4
    assert edges <= 11_330  # as found; a search that finds more is worse


def test_two_processes_find_the_same_map() -> None:
    code = (
        "from onehop.topology import Grid, HostLayout;"
        "print(Grid((13, 11, 7)).map(HostLayout.of_equal(77, 13)).rank_at)"
    )
    texts = {
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout for _ in range(2)
    }
    assert len(texts) == 1


def test_files_for_launchers(tmp_path: Path) -> None:
    found = Grid((4, 4)).map(HostLayout.of_equal(4, 4))
    hosts = [found.host_at[p] for p in range(16)]
    rankfile = map_text(found, "openmpi").splitlines()
    used = dict.fromkeys(range(4), 0)
    for position, line in enumerate(rankfile):
        assert line == f"rank {position}=+n{hosts[position]} slot={used[hosts[position]]}"
        used[hosts[position]] += 1
    assert set(used.values()) == {4}
    machines = map_text(found, "mpich", ["a", "b", "c", "d"]).splitlines()
    unrolled = [name for name, ranks in (line.split(":") for line in machines) for _ in range(int(ranks))]
    assert unrolled == ["abcd"[host] for host in hosts]
    # Entry k of MPICH_RANK_ORDER is the rank in place k; places fill the hosts one after the other.
    order = [int(one) for line in map_text(found, "reorder").splitlines() for one in line.split(",")]
    assert [hosts[rank] for rank in order] == sorted(hosts)
    positions = [int(line) for line in map_text(found, "list").splitlines()]
    assert positions == list(found.position_of)
    assert [hosts[position] for position in positions] == [rank // 4 for rank in range(16)]


def test_the_command_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plot = tmp_path / "ranks", tmp_path / "map.svg"
    arguments = f"--grid 8x6 --hosts 4 --per-host 12 --rankfile {file} --plot {plot} --host-names a,b,c,d"
    run(capsys, *arguments.split())
    assert file.read_text().startswith("rank 0=a slot=0\n")
    assert len(file.read_text().splitlines()) == 48
    assert "<svg" in plot.read_text()
    assert "edges between hosts" in plot.read_text()


def test_a_mapped_halo_moves_fewer_bytes_between_hosts() -> None:
    parameters = {"extents": (64, 64), "grid": (8, 8), "periodic": False}
    hosts = HostLayout.of_equal(16, 4)
    plain = halo(**parameters)
    mapped = halo(**parameters, map="auto", hosts=hosts)
    assert not verify(mapped)

    def between(schedule: Any) -> int:
        return sum(pair.bytes for pair in count(schedule).pairs if pair.from_ // 4 != pair.to // 4)

    assert between(mapped) < between(plain)
    assert count(mapped).bytes == count(plain).bytes
    found = Grid((8, 8), bytes=(64, 64)).map(hosts)
    assert mapped == halo(**parameters, map=found) == renumber(plain, found.rank_at)
    for rank in (0, 17, 63):
        assert halo(**parameters, map=found, rank=rank) == mapped.part(rank)
        coords = halo_block(**parameters, map=found, rank=rank).coords
        assert found.rank_at[coords[0] * 8 + coords[1]] == rank


def test_a_halo_of_this_run_is_mapped_by_its_group() -> None:
    group = Group.alone()
    schedule = halo(extents=(8,), grid=(1,), map="auto", hosts=group)
    assert schedule == halo(extents=(8,), grid=(1,))
    with pytest.raises(BadInput, match="group of the 4 ranks of the grid, found one of 1"):
        halo(extents=(8,), grid=(4,), map="auto", hosts=group)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("best", "expected map as 'auto'"),
        (3, "expected map as 'auto'"),
        ([0, 1, 2], "rank for each of the 4 positions"),
        ([0, 1, 2, 2], "found 2 at position 3, for the second time"),
        ([0, 1, 2, 4], "permutation of the ranks 0 to 3, found 4"),
    ],
)
def test_a_map_that_is_no_permutation(value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        halo(extents=(8, 8), grid=(2, 2), map=value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HostLayout([0.5]), r"host_of_rank to be a sequence of whole numbers, found one with 0\.5"),
        (lambda: HostLayout(3), "host_of_rank to be a sequence of whole numbers, found 3"),
        (lambda: HostLayout([0, 2**31]), "HostLayout: expected host_of_rank"),
        (lambda: HostLayout("abc"), "found 'abc'"),
        (lambda: HostLayout([0] * 100 + [0.5]), r"found one with 0\.5"),
        (lambda: HostLayout([0, 1], costs=[1.5]), r"costs to be a sequence .*found one with 1\.5"),
        (lambda: HostLayout([0, 1], groups=[None]), "groups to be a sequence"),
        (lambda: HostLayout([0, 1], torus=2), "torus to be a sequence"),
        (lambda: HostLayout.of_sizes([2, "3"]), "sizes to be a sequence"),
        (lambda: Grid((2, 2)).map([0, 0, 1, 1]), "expected hosts to be a HostLayout, found"),
        (lambda: Grid((2, 2)).cost([0, 0, 1, 1], [0, 1, 2, 3]), "expected hosts to be a HostLayout, found"),
    ],
)
def test_hosts_of_another_kind(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_hosts_as_an_array() -> None:
    assert HostLayout(np.array([0, 0, 1])).host_of_rank == (0, 0, 1)
    assert HostLayout.of_sizes((2, 1)).host_of_rank == (0, 0, 1)


def test_a_mapped_lattice_geometry() -> None:
    hosts = HostLayout.of_equal(4, 4)
    plain = Geometry((8, 8, 8, 8), (2, 2, 2, 2))
    mapped = Geometry((8, 8, 8, 8), (2, 2, 2, 2), map="auto", hosts=hosts)
    assert sorted(mapped.rank_at) == list(range(16))
    owners = np.full(mapped.shape, -1)
    for rank in range(16):
        assert (owners[mapped.block_slices(rank)] == -1).all()
        owners[mapped.block_slices(rank)] = rank
        position = sum(c * 2**d for d, c in enumerate(mapped.coordinates(rank)))
        assert mapped.rank_at[position] == rank
    assert (owners >= 0).all()
    assert not verify(mapped.halo(np.float64))
    assert renumber(plain.halo(np.float64), mapped.rank_at).rounds == mapped.halo(np.float64).rounds
    with pytest.raises(BadInput, match="permutation of the ranks 0 to 1, found 1 twice"):
        Geometry((8, 8), (2, 1), map=[1, 1])


def test_the_command_maps_a_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    halo(extents=(12, 12), grid=(6, 6), periodic=False).save(tmp_path / "halo.json")
    result = run(capsys, "--schedule", str(tmp_path / "halo.json"), "--hosts", "4", "--per-host", "9")
    costs = {one["name"]: one["edges_between_hosts"] for one in result["candidates"]}
    assert costs["row-major"] == edges_of(np.arange(36).reshape(6, 6) // 9)[0] == 40
    assert costs[result["chosen"]] == 24  # four squares of 3 x 3
    assert "lower_bound" not in result
