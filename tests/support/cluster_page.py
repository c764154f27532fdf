"""docs/howto/cluster.md, and the program that its commands start in tests."""

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/howto/cluster.md").read_text()
PROGRAM = """
import os
import numpy as np
from onehop import Group, Plan, halo, halo_block
from onehop.collectives import allreduce

group = Group.world()
here = group.rank // 2 * 2
assert group.size == 4 and group.local_ranks == [here, here + 1], group.local_ranks
assert (allreduce(group, np.full(100_000, group.rank + 1, np.float32)) == 10).all()
layout = {"extents": [400], "grid": [4], "width": 1, "periodic": [True]}
array = np.full(halo_block(**layout, rank=group.rank).shape, float(group.rank))
plan = Plan(halo(**layout), group, [array])
plan.run()
assert (array[0], array[-1]) == ((group.rank - 1) % 4, (group.rank + 1) % 4)
across = group.split(group.rank % 2)
assert (across.size, across.local_ranks) == (2, [across.rank])
assert (allreduce(across, np.full(3, group.rank, np.float32)) == 2 * (group.rank % 2) + 2).all()
carriers = {c["peer"] // 2 == group.rank // 2: c["carrier"].split(":")[0] for c in plan.explain()["channels"]}
found = f"{group.origin} {carriers[False]} {os.environ.get('ONEHOP_TIMEOUT')}"
# In one piece, because some launchers pass on the pieces that they read.
os.write(1, f"rank {group.rank} is right: {found}\\n".encode())
"""


def assert_right(text: str, expected: str) -> None:
    found = sorted(line for line in text.splitlines() if "is right" in line)
    assert found == [f"rank {rank} is right: {expected}" for rank in range(4)], text
