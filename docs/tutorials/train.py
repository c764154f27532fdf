"""Train on CPUs: the same network three times, with raw and with compressed gradients."""

import torch
import torch.distributed as dist

import onehop.torch
from onehop.figure import empty_figure, save_figure

STEPS = 400


def spirals(points: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two spirals, and the spiral to which each belongs."""
    generator = torch.Generator().manual_seed(seed)
    which = torch.randint(2, (points,), generator=generator)
    turn = 3.5 * torch.rand(points, generator=generator).sqrt() * torch.pi
    angle = turn + torch.pi * which
    places = torch.stack([turn * angle.cos(), turn * angle.sin()], 1) / 10
    return places + 0.01 * torch.randn(points, 2, generator=generator), which


def train(codec: str | None) -> tuple[torch.nn.Module, list[float], float]:
    """Train a network; return it with its losses and the share of the bytes that its gradients took."""
    torch.manual_seed(0)  # the same start on every rank, and for every codec
    layers = [torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(64, 2)))
    state = None
    if codec is not None:
        state = onehop.torch.CompressionState(codec=codec, feedback=True)
        model.register_comm_hook(state, onehop.torch.compression_hook)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        places, which = spirals(128, seed=step * dist.get_world_size() + dist.get_rank())  # data of its own
        loss = torch.nn.functional.cross_entropy(model(places), which)
        optimizer.zero_grad()
        loss.backward()  # sums the gradients of all ranks
        optimizer.step()
        dist.all_reduce(loss := loss.detach(), op=dist.ReduceOp.AVG)
        losses.append(loss.item())
    if state is None:
        return model.module, losses, 1.0
    share = state.bytes_sent / state.bytes_raw
    state.close()
    return model.module, losses, share


dist.init_process_group("onehop")  # `onehop launch` and torchrun say who and where the others are
torch.set_num_threads(1)
found = {codec or "raw": train(codec) for codec in (None, "q6", "q4")}

if dist.get_rank() == 0:
    places, which = spirals(2000, seed=-1)
    figure = empty_figure(9, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for (name, (model, losses, share)), style in zip(found.items(), ("-", "--", ":"), strict=True):
        right_ones = (model(places).argmax(1) == which).float().mean().item()
        print(
            f"{name}: {100 * share:.0f} % of the bytes; more than 97 % of new points are right: {right_ones > 0.97}"
        )
        means = torch.tensor(losses).reshape(-1, 10).mean(1)
        left.semilogy(range(5, STEPS, 10), means, style, label=f"{name}, {100 * share:.0f} % of the bytes")
    left.set(xlabel="step", ylabel="training loss, mean of 10 steps")
    left.legend()
    axis = torch.linspace(-1.3, 1.3, 100)
    grid = torch.cartesian_prod(axis, axis)
    area = found["q4"][0](grid).softmax(1)[:, 1].detach().reshape(100, 100).T
    look = {"vmin": -1.5, "vmax": 2.5, "interpolation": "none", "origin": "lower"}
    right.imshow(area, "RdBu_r", extent=(-1.3, 1.3, -1.3, 1.3), **look)
    for spiral, color in enumerate(("C0", "C1")):
        shown = places[which == spiral][:100]
        right.plot(shown[:, 0], shown[:, 1], ".", color=color, markersize=3, label=f"spiral {spiral}")
    right.set(title="answers after q4", xticks=[], yticks=[])
    save_figure(figure, "train.svg")
dist.destroy_process_group()
