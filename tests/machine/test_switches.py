"""Hosts below switches: `onehop map --topology` and `switch_hosts`."""

import itertools
import json
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.topology import Grid, switch_hosts
from onehop.topology.switches import host_names

SLURM = r"""# unequal leaves, and a node that is less deep
SwitchName=s0 Nodes=n[0-2] LinkSpeed=100
switchname=s1 \
  nodes=n[3-4],m07
SwitchName=s2 Nodes=x[01-02]
SwitchName=spine Switches=s[0-2] Nodes=login
"""
SWITCH_OF = {"n0": 0, "n1": 0, "n2": 0, "n3": 1, "n4": 1, "m07": 1, "x01": 2, "x02": 2, "login": 3}


def test_lists_of_hosts() -> None:
    assert host_names("n[0-2,7],login") == ["n0", "n1", "n2", "n7", "login"]
    assert host_names("r[1-2]n[08-10] x") == [f"r{r}n{n}" for r in "12" for n in ("08", "09", "10")] + ["x"]


def test_hosts_below_unequal_switches(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(SLURM)
    layout, names = switch_hosts(file, [2])
    assert sorted(filter(None, names)) == sorted(SWITCH_OF)
    (unit,) = layout.groups
    assert layout.costs == (1, 2)
    for a, b in itertools.combinations(SWITCH_OF, 2):
        same = names.index(a) // unit == names.index(b) // unit
        assert same == (SWITCH_OF[a] == SWITCH_OF[b]), (a, b)
    assert [names[host] for host in layout.host_of_rank[::2]] == list(SWITCH_OF)
    # Nodes of a job, in the order of ranks, with ranks of their own.
    layout, names = switch_hosts(file, [1, 2, 3], ["x02", "n0", "x01"], [1, 5])
    assert [names[host] for host in layout.host_of_rank] == ["x02", "n0", "n0", "x01", "x01", "x01"]
    assert layout.costs == (1, 5)


def test_a_map_keeps_traffic_below_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, ranks = tmp_path / "switches", tmp_path / "ranks"
    # Two levels of switches; halves of an 8x4 grid differ by 4 pairs of neighbours, quarters by 4 more each.
    file.write_text("a: n[0-1]\nb: n[2-3]\nc: n[4-5]\nd: n[6-7]\nleft: a b\nright: c d\ntop: left right\n")
    arguments = f"--grid 8x4 --per-host 4 --topology {file} --rankfile {ranks} --json -"
    assert main(["map", *arguments.split()]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["groups"], result["costs"]) == ([2, 2], [1, 2, 3])
    chosen = next(one for one in result["candidates"] if one["name"] == result["chosen"])
    assert sum(chosen["bytes_by_level"][1:]) == chosen["edges_between_hosts"]
    assert chosen["bytes_by_level"][3] == 8
    assert {line.split("=")[1].split()[0] for line in ranks.read_text().splitlines()} == {
        f"n{number}" for number in range(8)
    }
    assert chosen["weighted_bytes"] == Grid((8, 4)).map(switch_hosts(file, [4])[0]).cost.weighted_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a Nodes=n",
            "a loop: b -> c -> a -> b",
        ),
        ("a: a", "a loop: a -> a"),
        ("a: n0\nb: n[0-1]", "line 2: expected n0 below one switch, found it below a and b"),
        ("a: n[3-1]", r"line 1: expected numbers and ranges .* found 'n\[3-1\]'"),
        ("a: n[3", r"brackets in pairs, as in n\[0-7\], found 'n\[3'"),
        ("a: n[0-99999999]", "at most 1048576 names"),
        ("\nhello", "line 2: expected SwitchName=NAME .* found 'hello'"),
        ("SwitchName=a LinkSpeed=3", "nodes or switches of a, found"),
        ("Nodes=a", "a switch with a name, found 'Nodes=a'"),
        ("a: n0\na: n1", "expected every switch once, found a again, as in .*line 1"),
        ("# nothing", "expected switches, one a line, found none"),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(BadInput, match=message):
        switch_hosts(tmp_path / "file", [1])


def test_bad_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("a: n[0-3]")
    for arguments, message in (
        ("--hosts 5", "expected 5 hosts, found 4 nodes in"),
        ("--host-names n1,q", "expected the node q below a switch"),
        ("--host-names n1,n1", "expected every host once, found 2 hosts with 1 names"),
        ("--groups 2", "expected --topology without --groups and --torus"),
        ("--machine fugaku", "expected --per-host without --machine"),
    ):
        assert (
            main(["map", "--grid", "2x2", "--per-host", "1", "--topology", str(file), *arguments.split()])
            == 2
        )
        assert message in capsys.readouterr().err
