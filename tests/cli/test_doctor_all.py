"""`onehop doctor --all`: what it compares, and that its figures are those of the links."""

import json
from pathlib import Path

import pytest

import onehop
from commands import refused
from onehop.doctor import allocation
from onehop.doctor.allocation import Pair, differences, examine_all, rounds_of, slow_pairs
from onehop.doctor.plot import save_links_plot
from ranks import Ranks
from threads import run_threads


@pytest.mark.parametrize("hosts", range(1, 10))
def test_every_pair_of_hosts_meets_once_and_no_host_twice_at_a_time(hosts: int) -> None:
    rounds = rounds_of(hosts)
    assert sorted(pair for one in rounds for pair in one) == [
        (a, b) for a in range(hosts) for b in range(a + 1, hosts)
    ]
    for one in rounds:
        places = [place for pair in one for place in pair]
        assert len(places) == len(set(places))


def test_differences_name_ranks() -> None:
    rows = [{"NumPy": "2"}, {"NumPy": "1"}, {"NumPy": "1"}, {"NumPy": "2"}, {"NumPy": "1", "MPI": "5"}]
    assert differences(rows) == [
        "NumPy: 2 on rank 0, 3, 1 on rank 1-2, 4",
        "MPI: unset on rank 0-3, 5 on rank 4",
    ]
    assert differences(rows[:1] * 3) == []


def test_slow_links_and_slow_hosts_are_named() -> None:
    names = ["a", "b", "c", "d"]

    def links(slow: dict[tuple[int, int], float]) -> list[Pair]:
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        return [Pair(a, b, 10 * slow.get((a, b), 1), 4 / slow.get((a, b), 1), 0.0) for a, b in pairs]

    assert slow_pairs(links({}), names) == []
    (one,) = slow_pairs(links({(1, 2): 3}), names)
    assert one == "b to c: 30 µs and 1.33 GB/s, where others have 10 µs and 4 GB/s"
    assert slow_pairs(links({(0, 3): 2, (1, 3): 2, (2, 3): 2}), names) == ["all links of host d"]
    assert slow_pairs([Pair(0, 1, 10, 4, 0.0)], names) == []


def test_all_ranks_and_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(allocation, "_PER_PAIR", 0.02)
    monkeypatch.setattr(allocation.software, "ucx_library", lambda: {"version": "1", "networks": "tcp/x"})
    found = run_threads(3, examine_all)
    assert found[0] == found[1] == found[2]
    result = json.loads(json.dumps(found[0].to_dict()))
    (host,) = result["hosts"]
    assert host["ranks"] == [0, 1, 2]
    assert host["ucx"] == "tcp/x"
    (pair,) = result["pairs"]
    assert pair["a"] == pair["b"] == host["name"]
    assert 0 < pair["us"] < 1e6
    assert 0 < pair["gb_per_s"] < 1e4
    assert abs(pair["clock_s"]) < 0.1  # one clock
    assert result["differences"] == []
    assert result["verdict"].startswith("3 ranks on 1 host: ")
    save_links_plot(str(tmp_path / "links.svg"), ["a", "b"], [Pair(0, 1, 2.0, 3.0, 0.0)])
    assert "GB/s" in (tmp_path / "links.svg").read_text()


def test_a_rank_with_another_setting_is_in_the_verdict(ranks: Ranks) -> None:
    program = "import sys\nfrom onehop.cli import main\nsys.exit(main(['doctor', '--all', '--json', '-']))"
    done = ranks.launch(2, program, "--env", "ONEHOP_THREADS=1{rank}", "--prefix", "rank0", status=0)
    result = json.loads(done.stdout)
    assert result["differences"] == ["ONEHOP_THREADS: 10 on rank 0, 11 on rank 1"]
    assert result["verdict"] == "2 ranks on 1 host: ranks differ: ONEHOP_THREADS: 10 on rank 0, 11 on rank 1"
    assert result["version"] == onehop.__version__


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("doctor --all --no-tests", "--tests has no effect with --all"),
        ("doctor --plot x.svg", "--plot needs --all"),
    ],
)
def test_refused(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(command, capsys)
