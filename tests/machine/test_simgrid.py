"""Messages that meet on links, beside SimGrid (Debian's libsimgrid-dev), on stars, tori and fat trees."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from onehop.machine import Machine, message_traffic, simulate

SOURCE = Path(__file__).with_name("simgrid") / "flows.cc"
BANDWIDTH = 1e9
# Every message flows at its max-min fair share at once: no weights by latency, no window, no acknowledgements.
OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/weight-S:0",
    "--log=root.thresh:error",
)


@pytest.fixture(scope="module")
def simgrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not Path("/usr/include/simgrid/s4u.hpp").exists() or shutil.which("g++") is None:
        pytest.skip("SimGrid is not installed (Debian, Ubuntu: libsimgrid-dev) or there is no g++")
    program = tmp_path_factory.mktemp("simgrid") / "flows"
    subprocess.run(["g++", "-std=c++17", "-O1", "-w", SOURCE, "-lsimgrid", "-o", program], check=True)
    return program


def machine(routing: str, extents: list[int], taper: list[float]) -> Machine:
    figure = lambda value: {"value": value, "basis": "guessed", "source": "this test"}  # noqa: E731
    level = {
        "name": "system",
        "routing": routing,
        "extents": extents,
        "latency": figure(0),
        "overhead": figure(0),
        "bandwidth": figure(BANDWIDTH),
        "taper": taper,
    }
    return Machine.from_json(
        json.dumps(
            {
                "onehop_machine": 1,
                "name": "test",
                "levels": [level],
                "memory_bandwidth": figure(1e12),
                "memory": figure(1),
            }
        )
    )


NETWORKS = {
    "star of 8": ("star 8", "all_to_all", [8], []),
    "star of 64": ("star 64", "all_to_all", [64], []),
    "ring of 16": ("torus 16", "torus", [16], []),
    "torus of 4x4": ("torus 4,4", "torus", [4, 4], []),
    "torus of 8x5": ("torus 8,5", "torus", [8, 5], []),
    "torus of 7x9": ("torus 7,9", "torus", [7, 9], []),
    "torus of 4x4x4": ("torus 4,4,4", "torus", [4, 4, 4], []),
    # One cable above every switch, so that SimGrid's choice among cables does not count.
    "tree of 4x4": ("fattree 2;4,4;1,1;1,1", "fat_tree", [4, 4], [1 / 4]),
    "tree of 8x8": ("fattree 2;8,8;1,1;1,1", "fat_tree", [8, 8], [1 / 8]),
    "tree of 4x4x4": ("fattree 3;4,4,4;1,1,1;1,1,1", "fat_tree", [4, 4, 4], [1 / 4, 1 / 4]),
}
PATTERNS = ("permutation", "neighbours", "everyone to few", "random", "sizes")


def messages_of(pattern: str, hosts: int) -> list[tuple[int, int, int]]:
    random = np.random.default_rng(hosts)
    size = 10**6
    if pattern == "permutation":
        targets = random.permutation(hosts)
        return [(rank, int(to), size) for rank, to in enumerate(targets) if rank != to]
    if pattern == "neighbours":
        return [(rank, (rank + step) % hosts, size) for rank in range(hosts) for step in (1, hosts - 1)]
    if pattern == "everyone to few":
        return [(rank, rank % 3, size) for rank in range(3, hosts)]
    pairs = sorted({(int(a), int(b)) for a, b in random.integers(0, hosts, (3 * hosts, 2)) if a != b})
    sizes = random.integers(1, 20, len(pairs)) if pattern == "sizes" else [1] * len(pairs)
    return [(a, b, size * int(one)) for (a, b), one in zip(pairs, sizes, strict=True)]


def turns_back(extents: list[int], source: int, target: int) -> bool:
    """Whether both ways are as long and SimGrid goes downwards, which it does from the middle to 0 only."""
    for extent in extents:
        if extent % 2 == 0 and source % extent == extent // 2 and target % extent == 0:
            return True
        source, target = source // extent, target // extent
    return False


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("network", list(NETWORKS))
def test_every_message_ends_when_simgrid_says(simgrid: Path, network: str, pattern: str) -> None:
    text, routing, extents, taper = NETWORKS[network]
    hosts = math.prod(extents)
    messages = messages_of(pattern, hosts)
    if routing == "torus":
        messages = [one for one in messages if not turns_back(extents, *one[:2])]
    lines = [f"{text} {BANDWIDTH}", *(f"{a} {b} {size}" for a, b, size in messages)]
    out = subprocess.run(
        [simgrid, *OPTIONS], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    theirs = [float(line) for line in out.stdout.split()]
    assert len(theirs) == len(messages)
    ours = simulate(message_traffic(hosts, [messages]), machine(routing, extents, taper))
    assert ours.seconds == pytest.approx(max(theirs), rel=0.05)
    # The end of a rank is that of the last message that it sends or receives.
    for rank in range(hosts):
        ends = [end for end, (a, b, _) in zip(theirs, messages, strict=True) if rank in (a, b)]
        if ends:
            assert ours.timeline(rank)[0][3] == pytest.approx(max(ends), rel=0.05)
