"""Ghost layers of a three-dimensional array. Try: onehop launch -n 2 halo.py."""

import numpy as np

import onehop

group = onehop.Group.world()
what = {"extents": (16 * group.size, 8, 8), "grid": (group.size, 1, 1), "width": 1, "periodic": True}
block = onehop.halo_block(rank=group.rank, **what)
field = np.full(block.shape, group.rank, float)

schedule = onehop.halo(**what)  # plain data: the same on every rank, no communication
plan = onehop.Plan(schedule, group, [field])
with plan:
    pass  # here the interior is updated, which needs no neighbour
print(f"rank {group.rank}: ghost {field[0, 1, 1]:g}, {onehop.count(schedule).bytes} bytes between ranks")
assert field[0, 1, 1] == (group.rank - 1) % group.size
