"""Rails of a schedule's messages as data: `onehop rails --schedule` and `simulate(rails=)`."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import load_machine, machine_rails, message_traffic, simulate, traffic_of
from onehop.machine.rails import RailAssignment, schedule_rails
from onehop.machine.schedule_rails import compare_schedule_rails
from onehop.patterns import allgather
from onehop.schedule import Schedule, halo
from onehop.topology import machine_hosts, map_schedule

SCHEDULE = halo(extents=(64, 48, 32), grid=(4, 4, 4))


def loads_of(rounds: list[list[RailAssignment]], ranks_per_host: int) -> dict[tuple[int, int], int]:
    """Add up the bytes on each rail of each host."""
    loads: dict[tuple[int, int], int] = defaultdict(int)
    for assignments in rounds:
        for one in assignments:
            loads[one.from_ // ranks_per_host, one.rail] += one.bytes
    return loads


@pytest.mark.parametrize("rule", ["by_rank", "round_robin", "longest_first", "optimum", "cut"])
def test_the_simulator_uses_the_rails_of_the_plan(rule: str) -> None:
    rails = machine_rails(SCHEDULE, "fugaku", rule=rule)
    name, cut = ("optimum", True) if rule == "cut" else (rule, False)
    assert rails == schedule_rails(SCHEDULE, 4, rails=6, rule=name, cut=cut)
    result = simulate(SCHEDULE, "fugaku", rails=rails)
    interfaces = {one.name: one.bytes for one in result.links if "interface" in one.name}
    expected = {f"node {host}, interface {rail}": load for (host, rail), load in loads_of(rails, 4).items()}
    assert {name: load for name, load in interfaces.items() if load} == expected
    assert simulate(SCHEDULE, "fugaku", rails=rule).seconds == result.seconds
    assert result.rounds[0].bytes == simulate(SCHEDULE, "fugaku").rounds[0].bytes
    if cut:
        assert result.rounds[0].messages > simulate(SCHEDULE, "fugaku").rounds[0].messages


def test_better_rails_take_less_time() -> None:
    """Long messages of four ranks to four other nodes: the time is that of the busiest interface."""
    sizes = (9, 9, 9, 9, 6, 6, 6, 6, 3, 3, 3, 3)
    unit = 10**6
    targets = (1, 24, 24 * 23, 24 * 23 * 24, 23, 24 * 22)  # neighbours on the torus, each over its own link
    messages = [
        (rank, 4 + 4 * (number % 6) + rank, size * unit)
        for number, size in enumerate(sizes[:6])
        for rank in range(2)
    ]
    places = [0, 1, 2, 3, *(4 * node + rank for node in targets for rank in range(4))]
    traffic = message_traffic(len(places), [messages])
    seconds = {
        rule: simulate(traffic, "fugaku", ranks=places, rails=rule).seconds
        for rule in ("by_rank", "optimum", "cut")
    }
    total = sum(size for _, _, size in messages)
    assert seconds["by_rank"] == pytest.approx(total / 2 / 6.8e9, rel=1e-3)
    # Two messages of 9 MB, or of 9 MB and 6 MB, on a link of the torus each: the interfaces are what counts.
    assert seconds["optimum"] == pytest.approx(18e6 / 6.8e9, rel=1e-3)
    assert seconds["cut"] == pytest.approx(18e6 / 6.8e9, rel=1e-3)


def test_rails_with_a_map() -> None:
    machine = load_machine("fugaku")
    found = map_schedule(SCHEDULE, machine_hosts(machine, SCHEDULE.ranks))
    rails = machine_rails(SCHEDULE, machine, ranks=found)
    host = found.host_at
    for one in rails[0]:
        assert host[one.from_] != host[one.to]
    assert sum(one.bytes for one in rails[0]) == found.cost.bytes_between_hosts
    result = simulate(SCHEDULE, machine, ranks=found, rails="optimum")
    assert result.seconds == simulate(SCHEDULE, machine, ranks=found, rails=rails).seconds


def test_rails_of_joined_rounds() -> None:
    """Rounds that read nothing that the round before has written are one round of the traffic. Rails fit either."""
    data = json.loads(allgather(8, 64, 8).to_json())
    data["arrays"].append(data["arrays"][0] | {"name": "second"})
    data["must_cover"] = []
    for transfer in data["rounds"][0]["transfers"]:
        transfer["to"]["array"] = 1
    data["rounds"] *= 2
    schedule = Schedule.from_json(json.dumps(data))
    traffic = traffic_of(schedule)
    assert traffic.rounds < len(schedule.rounds)
    by_schedule = schedule_rails(schedule, 4, rails=6)
    by_traffic = machine_rails(schedule, "fugaku")
    assert (len(by_schedule), len(by_traffic)) == (len(schedule.rounds), traffic.rounds)
    assert simulate(schedule, "fugaku", rails=by_schedule).seconds > 0
    assert simulate(schedule, "fugaku", rails=by_traffic).seconds > 0


def test_pieces_in_any_order() -> None:
    traffic = message_traffic(8, [[(0, 4, 100)]])
    pieces = [RailAssignment(0, 4, 1, 40, 60), RailAssignment(0, 4, 2, 0, 40)]
    assert sorted(traffic.on_rails([pieces]).messages(0)) == [(0, 4, 40), (0, 4, 60)]


def test_two_messages_between_the_same_ranks() -> None:
    traffic = message_traffic(8, [[(0, 4, 100), (0, 4, 300), (1, 5, 50)]])
    rails = machine_rails(traffic, "fugaku", rule="round_robin")
    assert sorted((one.bytes, one.rail) for one in rails[0]) == [(50, 2), (100, 0), (300, 1)]
    assert traffic.on_rails(rails).messages(0) == traffic.messages(0)


@pytest.mark.parametrize(
    ("rails", "message"),
    [
        ([], "expected a list for each of 1 round, found 0"),
        ([[RailAssignment(0, 4, 1, 0, 99)]], "100 bytes in all, found 99"),
        ([[RailAssignment(0, 4, 1, 0, 60), RailAssignment(0, 4, 2, 60, 60)]], "100 bytes in all, found 120"),
        ([[RailAssignment(0, 4, 1, 7, 100)]], "rank 0 to rank 4 in round 0 that begin at byte 0 and follow"),
        ([[RailAssignment(0, 4, 1, 50, 50), RailAssignment(0, 4, 2, 50, 50)]], "found other first bytes"),
        ([[RailAssignment(0, 5, 1, 0, 100)]], "found more from rank 0 to rank 5 than the round sends"),
        ([[RailAssignment(0, 4, -1, 0, 100)]], "rails from 0 to 1023"),
        (
            [[]],
            "rails of 1 message that leave their host in round 0, found those of 0; .* from rank 0 to rank 4",
        ),
        ([[1]], "expected a RailAssignment in round 0, found 1"),
        ([1], r"one list of RailAssignment for each round, found 1 for round 0"),
        (7, "one list of RailAssignment for each round, found 7"),
        ("best", "expected a rule for rails .*found 'best'"),
    ],
)
def test_rails_of_another_schedule(rails: Any, message: str) -> None:
    traffic = message_traffic(8, [[(0, 4, 100)]])
    with pytest.raises(BadInput, match=message):
        simulate(traffic, "fugaku", rails=rails)


def test_the_comparison_agrees_with_plain_counting() -> None:
    report, chosen = compare_schedule_rails(SCHEDULE, per_host=4, rails=6)
    names = [one["name"] for one in report["assignments"]]
    assert names == ["pattern 1", "round robin", "longest first", "optimum", "optimum, cut"]
    for row, (rule, rounds) in zip(report["assignments"], chosen.items(), strict=True):
        loads = loads_of(rounds, 4)
        busiest = max(loads.values())
        assert row["seconds"] == pytest.approx(busiest / 6.8e9)
        assert row["busiest_rail"] == pytest.approx(6 * busiest)
        host = row["rounds"][0]["host"]
        assert busiest in [load for (each, _), load in loads.items() if each == host]
        assert row["bytes"] == sum(load for (each, _), load in loads.items() if each == host)
        assert row["gb_per_s"] == pytest.approx(row["bytes"] / row["seconds"] / 1e9)
        assert row["seconds"] >= row["rounds"][0]["lower_bound"] * (1 - 1e-12), rule
    by_machine, _ = compare_schedule_rails(SCHEDULE, machine=load_machine("fugaku"))
    for row, same in zip(by_machine["assignments"], report["assignments"], strict=True):
        assert row["seconds"] == pytest.approx(same["seconds"])
        assert row["predicted_seconds"] > 0


def test_the_command_writes_rails_that_the_simulator_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule, rails, out, plot = (tmp_path / name for name in ("h.json", "r.json", "o.json", "p.svg"))
    SCHEDULE.save(schedule)
    command = ["rails", "--schedule", str(schedule), "--machine", "fugaku", "--rule", "cut", "-o", str(rails)]
    assert main([*command, "--json", str(out), "--plot", str(plot)]) == 0
    assert "<svg" in plot.read_text()
    cut = json.loads(out.read_text())["assignments"][-1]
    assert cut["rounds"][0]["pieces"] > cut["rounds"][0]["messages"]
    for value in (str(rails), "cut"):
        assert (
            main(["simulate", str(schedule), "--machine", "fugaku", "--rails", value, "--json", str(out)])
            == 0
        )
        assert json.loads(out.read_text())["seconds"] == cut["predicted_seconds"]
    assert main(["rails", "--schedule", str(schedule), "--per-host", "4", "--rails", "6"]) == 0
    assert "of 16 hosts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("made_for", "message"),
    [
        (["--per-host", "8", "--rails", "6"], "expected rails for hosts 16, found 8"),
        (["--machine", "perlmutter"], "expected rails for machine fugaku, found"),
        (["--per-host", "4", "--rails", "12"], "expected rails from 0 to 5 on level"),
    ],
)
def test_rails_of_other_hosts_are_refused(
    made_for: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule, rails = tmp_path / "h.json", tmp_path / "r.json"
    SCHEDULE.save(schedule)
    assert main(["rails", "--schedule", str(schedule), *made_for, "-o", str(rails)]) == 0
    capsys.readouterr()
    assert main(["simulate", str(schedule), "--machine", "fugaku", "--rails", str(rails)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("rule", ["optimum", "cut"])
def test_a_file_without_its_last_entry_is_refused(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule, rails, out = (tmp_path / name for name in ("h.json", "r.json", "o.json"))
    SCHEDULE.save(schedule)
    common = ["rails", "--schedule", str(schedule), "--machine", "fugaku"]
    assert main([*common, "--rule", rule, "-o", str(rails)]) == 0
    found = json.loads(rails.read_text())
    whole = found["rails"][0]
    lost = whole.pop()
    rails.write_text(json.dumps(found))
    capsys.readouterr()
    assert (
        main(["simulate", str(schedule), "--machine", "fugaku", "--rails", str(rails), "--json", str(out)])
        == 2
    )
    message = " ".join(capsys.readouterr().err.split())
    if any((one["from"], one["to"]) == (lost["from"], lost["to"]) for one in whole):
        assert f"pieces of the message from rank {lost['from']} to rank {lost['to']} in round 0" in message
    else:
        messages = len({(one["from"], one["to"]) for one in whole})
        assert f"expected rails of {messages + 1} messages that leave their host in round 0" in message
        assert (
            f"found those of {messages}; the message from rank {lost['from']} to rank {lost['to']}" in message
        )
    assert not out.exists()


def test_places_beyond_the_machine_are_refused() -> None:
    with pytest.raises(BadInput, match="expected places from 0 to 1, found place 1000000000000 of rank 1"):
        machine_rails(message_traffic(2, [[(0, 1, 8)]]), load_machine("two-core").job(2), ranks=[0, 10**12])


def test_pieces_of_more_bytes_than_a_message_are_refused() -> None:
    most = 2**63 - 1
    pieces = [RailAssignment(0, 4, number, 0, most) for number in (1, 2)]
    with pytest.raises(BadInput, match="100 bytes in all, found"):
        simulate(
            message_traffic(8, [[(0, 4, 100)]]), "fugaku", rails=[[RailAssignment(0, 4, 0, 0, 1), *pieces]]
        )
