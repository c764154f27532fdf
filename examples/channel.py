"""A ring: every rank sends a number to the next one. Try: onehop launch -n 4 channel.py."""

import numpy as np

import onehop

group = onehop.Group.world()
following, previous = (group.rank + 1) % group.size, (group.rank - 1) % group.size
number = np.zeros(1, int)
ring = group.channels(send={following: number}, receive={previous: number})

ring.send[following].put(np.array([10 * group.rank]))
ring.receive[previous].get(number)
print(f"rank {group.rank} got {number[0]} from rank {previous}")
assert number[0] == 10 * previous
