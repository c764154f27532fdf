"""Ghost layers of a three-dimensional array. Try: onehop launch -n 2 halo.py."""

import numpy as np

import onehop

group = onehop.Group.world()
layout = {"extents": (128, 64, 64), "grid": (group.size, 1, 1), "width": 1, "periodic": True}
block = onehop.halo_block(rank=group.rank, **layout)  # this rank's part, including ghosts
field = np.full(block.shape, float(group.rank))

schedule = onehop.halo(**layout)  # plain data, the same on every rank
plan = onehop.Plan(schedule, group, [field])  # prepared once
for _ in range(100):
    with plan:  # exchanges the faces ...
        pass  # ... while this block updates the interior, which needs no neighbour

sent = onehop.count(schedule).ranks[group.rank].bytes_sent
print(f"rank {group.rank} sends {sent} bytes per step and has rank {field[0, 1, 1]:g} below it")
assert field[0, 1, 1] == (group.rank - 1) % group.size
