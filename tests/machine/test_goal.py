"""GOAL files, and the times of LogGOPSim beside our own.

LogGOPSim and its txt2bin are found through ONEHOP_LOGGOPSIM; docs/reference/simulate.md says how to build them.
"""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import onehop
from onehop.error import BadInput
from onehop.machine import Traffic, goal, loggops, message_traffic, traffic_of

FOLDER = os.environ.get("ONEHOP_LOGGOPSIM", "")
COSTS = (
    {"latency": 2500, "overhead": 1500, "gap": 1000, "gap_per_byte": 6, "overhead_per_byte": 0},
    {"latency": 700, "overhead": 200, "gap": 900, "gap_per_byte": 1, "overhead_per_byte": 2},
)


def schedules() -> dict[str, Traffic]:
    """Twenty schedules of up to 16 ranks."""
    found = {}
    for grid in ((8,), (4, 4), (2, 2, 4), (2, 2, 2, 2), (5, 3)):
        extents = tuple(3 * extent + 1 for extent in grid)
        name = "x".join(map(str, grid))
        found[f"halo {name}"] = traffic_of(onehop.halo(extents=extents, grid=grid))
    found["halo with corners"] = traffic_of(
        onehop.halo(extents=(12, 12, 12), grid=(2, 2, 3), corners=True, fields=2)
    )
    found["open halo"] = traffic_of(onehop.halo(extents=(40, 9), grid=(5, 3), periodic=False, width=2))
    for ranks in (2, 3, 8, 16):
        found[f"allgather {ranks}"] = traffic_of(onehop.patterns.allgather(ranks, 100, 8))
    for pairs in ([(0, 4)], [(0, 4), (1, 5)], [(0, 4), (1, 5), (2, 6)]):
        found[f"permutation {len(pairs)}"] = traffic_of(onehop.permute_bits(7, local=4, pairs=pairs))
    found["permutation of ranks"] = traffic_of(
        onehop.permute_bits(7, local=4, permutation=[4, 6, 2, 3, 0, 5, 1])
    )
    found["chain"] = message_traffic(6, [[(rank, rank + 1, 5000)] for rank in range(5)])
    found["ring"] = message_traffic(7, [[(rank, (rank + 1) % 7, 1 + 333 * rank) for rank in range(7)]] * 4)
    found["pingpong"] = message_traffic(2, [[(0, 1, 8)], [(1, 0, 8)]] * 5)
    random = np.random.default_rng(1)
    for ranks in (5, 16):
        rounds = []
        for _ in range(6):
            pairs = {(int(a), int(b)) for a, b in random.integers(0, ranks, (3 * ranks, 2)) if a != b}
            rounds.append([(a, b, int(random.integers(1, 5000))) for a, b in sorted(pairs)])
        found[f"random {ranks}"] = message_traffic(ranks, rounds)
    return found


def test_times_of_single_messages_follow_the_formulas() -> None:
    costs = COSTS[0]
    size = 1000
    one = loggops(message_traffic(2, [[(0, 1, size)]]), **costs)
    assert one == [1500, 1500 + 2500 + 1500 + (size - 1) * 6]
    # The interface of the sender is busy for g + (s-1) G, which delays the second message.
    two = loggops(message_traffic(3, [[(0, 1, size), (0, 2, size)]]), **costs)
    begin = 1000 + (size - 1) * 6
    assert two == [begin + 1500, one[1], begin + one[1]]
    # Both ranks compute before they take a message, and a reply waits for the round before.
    both = loggops(message_traffic(2, [[(0, 1, 1)], [(1, 0, 1)]]), **costs, compute_ns=[10000, 0])
    replied = 10000 + 1500 + 1500
    assert both == [replied + 2500 + 1500, replied]


def test_the_text_has_every_message_once_on_both_sides() -> None:
    traffic = schedules()["halo 2x2x4"]
    text = goal(traffic, compute_ns=7)
    assert text.startswith("num_ranks 16\n")
    sent, received, rank = [], [], -1
    for line in text.splitlines():
        if match := re.match(r"rank (\d+) {", line):
            rank = int(match[1])
        elif match := re.match(r"l\d+: send (\d+)b to (\d+) tag (\d+)", line):
            sent.append((rank, int(match[2]), int(match[1])))
        elif match := re.match(r"l\d+: recv (\d+)b from (\d+) tag (\d+)", line):
            received.append((int(match[2]), rank, int(match[1])))
    assert sorted(sent) == sorted(received) == sorted(traffic.messages(0))
    assert text.count("calc 7\n") == 16


def test_bad_input() -> None:
    with pytest.raises(
        BadInput, match="different ranks below 4 and 0 bytes or more, found rank 3 to rank 3, 8 bytes"
    ):
        goal(message_traffic(4, [[(3, 3, 8)]]))
    with pytest.raises(BadInput, match="found rank 0 to rank 1, -8 bytes"):
        loggops(message_traffic(4, [[(0, 1, -8)]]))
    with pytest.raises(BadInput, match="one for each of 1 round,"):
        goal(message_traffic(2, [[(0, 1, 8)]]), compute_ns=[1, 2])
    with pytest.raises(BadInput, match="at least 0"):
        goal(message_traffic(2, [[(0, 1, 8)]]), compute_ns=-1)
    with pytest.raises(BadInput, match="0 or more nanoseconds"):
        loggops(message_traffic(2, [[(0, 1, 8)]]), latency=-1)


@pytest.mark.skipif(not FOLDER, reason="ONEHOP_LOGGOPSIM does not name a folder with LogGOPSim and txt2bin")
@pytest.mark.parametrize("costs", COSTS, ids=["default", "processor-bound"])
@pytest.mark.parametrize("name", list(schedules()))
@pytest.mark.parametrize("compute", [0, 4321])
def test_times_equal_those_of_loggopsim(
    name: str, costs: dict[str, int], compute: int, tmp_path: Path
) -> None:
    traffic = schedules()[name]
    (tmp_path / "x.goal").write_text(goal(traffic, compute_ns=compute))
    subprocess.run(
        [Path(FOLDER) / "txt2bin", "-i", "x.goal", "-o", "x.bin"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    letters = {"latency": "L", "overhead": "o", "gap": "g", "gap_per_byte": "G", "overhead_per_byte": "O"}
    arguments = [text for key, value in costs.items() for text in (f"--LogGOPS_{letters[key]}", str(value))]
    out = subprocess.run(
        [Path(FOLDER) / "LogGOPSim", "-f", "x.bin", "--LogGOPS_S", "1000000000", *arguments],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    theirs = [int(time) for time in re.findall(r"Host \d+: (\d+)", out)]
    assert loggops(traffic, **costs, compute_ns=compute) == theirs
