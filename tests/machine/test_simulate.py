"""`onehop.machine.simulate` and `onehop simulate`."""

import json
from pathlib import Path

import pytest

import onehop
from onehop.cli import main
from onehop.machine import (
    load_machine,
    message_traffic,
    permutation_traffic,
    simulate,
)


def test_a_message_on_each_machine_costs_its_own_figures() -> None:
    for name in ("mira", "fugaku", "mi300x", "a100-nvlink"):
        machine = load_machine(name)
        level = machine.levels[0]
        size = 1 << 24
        found = simulate(message_traffic(2, [[(0, 1, size)]]), machine).seconds
        expected = 2 * level.overhead.value + level.latency.value + size / level.bandwidth.value
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_schedule_and_its_parts() -> None:
    schedule = onehop.halo(extents=(32, 32, 32), grid=(4, 2, 2), width=1)
    result = simulate(schedule, "fugaku")
    counted = onehop.count(schedule)
    assert result.rounds[0].messages == counted.messages
    assert result.rounds[0].bytes == counted.bytes
    assert result.seconds == pytest.approx(sum(one.seconds for one in result.rounds))
    assert sum(result.bytes_by_level.values()) == counted.bytes
    assert result.busiest_link.seconds <= result.seconds
    for row in range(len(result.timeline_ranks)):
        for begin, posted, computed, end in result.timeline(row):
            assert begin <= posted <= computed <= end <= result.seconds
    data = json.loads(result.to_json())
    assert {"rounds", "seconds", "seconds_to_simulate", "busiest_link"} <= set(data)
    assert all("seconds" in one for one in data["rounds"])


def test_progress_is_called_and_may_raise() -> None:
    seen: list[float] = []
    traffic = message_traffic(
        64, [[(a, (a + k) % 64, 1000 * a + k) for a in range(64)] for k in range(1, 20)]
    )
    simulate(traffic, "fugaku", progress=seen.append)
    assert seen
    assert all(0 <= one <= 1 for one in seen)

    def stop(_: float) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        simulate(traffic, "fugaku", progress=stop)


def swapped(bits: int, local: int, pairs: int) -> list[int]:
    """Swap the lowest bits of the rank number with local ones."""
    permutation = list(range(bits))
    for i in range(pairs):
        permutation[i], permutation[local + i] = local + i, i
    return permutation


def test_an_exchange_of_all_bits_is_traffic_between_all_ranks() -> None:
    for name in ("frontier", "fugaku"):
        found = simulate(permutation_traffic(40, local=24, permutation=swapped(40, 24, 16)), name)
        assert found.by_symmetry
        assert found.seconds_to_simulate < 10
        assert found.rounds[0].bytes == 65536 * 65535 * (16 << 8)


@pytest.mark.parametrize("name", ["fugaku", "mira"])
@pytest.mark.parametrize("number", [5, 13, 15])
def test_exchanges_of_most_bits_on_a_torus(name: str, number: int) -> None:
    """The bits are spread over the dimensions, so that no dimension is whole where this is possible."""
    left_out = [14, 9, 5, 13, 11, 7, 3, 2, 6, 10, 12][: 16 - number]
    permutation = list(range(36))
    for i, bit in enumerate(bit for bit in range(16) if bit not in left_out):
        permutation[i], permutation[20 + bit] = 20 + bit, i
    found = simulate(permutation_traffic(36, local=20, permutation=permutation), name)
    assert found.by_symmetry
    assert len(found.timeline_ranks) <= 64
    assert found.rounds[0].messages == 65536 * (2**number - 1)
    assert found.rounds[0].bytes == found.rounds[0].messages * (16 << (20 - number))
    # No link carries more than the time allows, and the bytes of all links are those of all hops.
    assert found.busiest_link.seconds <= found.seconds * (1 + 1e-9)


def test_rails_change_the_interface() -> None:
    """Four ranks of a node send to four neighbours: through one interface they take four times as long."""
    traffic = message_traffic(8, [[(rank, 4 + rank, 10**7) for rank in range(4)]])
    places = [0, 1, 2, 3, *(4 * node for node in (1, 24, 24 * 23, 24 * 23 * 24))]
    spread = simulate(traffic, "fugaku", ranks=places)
    one = simulate(traffic.on_rails(0, [5] * 4), "fugaku", ranks=places)
    assert spread.seconds == pytest.approx(1e7 / 6.8e9, rel=1e-3)
    assert one.seconds == pytest.approx(4e7 / 6.8e9, rel=1e-3)
    assert one.busiest_link.name == "node 0, interface 5"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["simulate", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_takes_files_and_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "halo.json"
    halo = ["--grid", "4x4", "--extent", "64x64"]
    assert main(["schedule", "halo", *halo, "-o", str(file)]) == 0
    capsys.readouterr()
    by_file = run(capsys, str(file), "--machine", "fugaku")
    by_pattern = run(capsys, "halo", *halo, "--machine", "fugaku")
    assert by_file["seconds"] == by_pattern["seconds"] > 0
    places = tmp_path / "map.json"
    places.write_text(json.dumps({"places": [4 * rank for rank in range(16)]}))
    assert (
        run(capsys, "halo", *halo, "--machine", "fugaku", "--map", str(places))["bytes_by_level"]["node"] == 0
    )
    words = ("allreduce", "--machine", "h100", "--elements")
    reduction = run(capsys, *words, "1048576", "--ranks", "64", "--algorithm", "two_shot")
    assert len(reduction["rounds"]) == 2
    # On 400 GB/s inside a server and 50 GB/s a GPU between servers, a piece is between them in less time than inside.
    elements = 1 << 28
    seconds = run(capsys, *words, str(elements), "--ranks", "16")["seconds"]
    assert 300e9 < 4 * elements * 2 * 15 / 16 / seconds < 400e9 * 2 * 15 / 16 / (2 * 7 / 8)
    swap = run(
        capsys, "permutation", "--bits", "20", "--local", "17", "--swap", "0:17,1:18", "--machine", "mi300x"
    )
    assert swap["rounds"][0]["messages"] == 8 * 3
    plot = tmp_path / "plot.svg"
    goal = tmp_path / "halo.goal"
    assert (
        main(["simulate", "halo", *halo, "--machine", "mira", "--plot", str(plot), "--goal", str(goal)]) == 0
    )
    assert plot.stat().st_size > 1000
    assert goal.read_text().startswith("num_ranks 16\n")
