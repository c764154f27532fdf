"""Heat flows through a square that is cut into strips, one for each rank: one halo exchange a step."""

import numpy as np

import onehop
from onehop.figure import empty_figure, save_figure

group = onehop.Group.world()
cut = {"extents": (64, 64), "grid": (group.size, 1), "width": 1, "periodic": False}

block = onehop.halo_block(rank=group.rank, **cut)  # this rank's part, with ghost layers
field = np.zeros(block.shape)
if group.rank == 0:
    field[:2] = 1.0  # the upper edge of the square is hot

schedule = onehop.halo(**cut)  # plain data, the same on every rank
onehop.verify_or_throw(schedule)  # nothing is lost and nothing is overwritten
plan = onehop.Plan(schedule, group, [field])  # collective: opens the channels, once


def flow(rows: slice) -> np.ndarray:
    """The change of these rows in one step, by the five-point stencil."""
    up, down = slice(rows.start - 1, rows.stop - 1), slice(rows.start + 1, rows.stop + 1)
    around = field[up, 1:-1] + field[down, 1:-1] + field[rows, :-2] + field[rows, 2:]
    return 0.2 * (around - 4 * field[rows, 1:-1])


last = field.shape[0] - 1  # the lower ghost layer
change = np.zeros_like(field)
for _ in range(3000):
    with plan:  # the edges travel ...
        change[2 : last - 1, 1:-1] = flow(slice(2, last - 1))  # ... while the interior is computed
    change[1, 1:-1] = flow(slice(1, 2))[0]  # rows beside a ghost layer
    change[last - 1, 1:-1] = flow(slice(last - 1, last))[0]
    field += change
    if group.rank == 0:
        field[:2] = 1.0

sent = onehop.count(schedule).ranks[group.rank].bytes_sent
parts = group.allgather(field[block.interior].tobytes())
if group.rank == 0:
    square = np.concatenate([np.frombuffer(part).reshape(-1, 64) for part in parts])
    print(f"each rank sends {sent} bytes per step")
    print(
        "temperature of column 32 at rows 0, 16, 32, 48:",
        *(f"{square[row, 32]:.4f}" for row in (0, 16, 32, 48)),
    )
    figure = empty_figure(9, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    image = left.imshow(square, cmap="inferno")
    left.contour(square, levels=[0.1, 0.2, 0.4, 0.6], colors="white", linewidths=0.8)
    left.set(xlabel="column", ylabel="row", title="temperature after 3000 steps")
    figure.colorbar(image, ax=left, label="temperature")
    right.plot(square[:, 32], range(64), color="black", label="column 32")
    for axes in (left, right):
        for rank in range(1, group.size):
            row = 64 * rank / group.size - 0.5
            axes.axhline(
                row, color="#3b9dff", linestyle="--", label="where two ranks meet" if rank == 1 else None
            )
    right.set(xlabel="temperature", ylabel="row", ylim=(63, 0))
    right.legend()
    save_figure(figure, "halo.svg")
