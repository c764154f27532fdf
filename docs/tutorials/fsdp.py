"""Fully sharded training on CPUs: every rank keeps a part of the network, and gradients travel compressed."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import onehop.torch

dist.init_process_group("onehop")
torch.set_num_threads(1)
torch.manual_seed(0)  # the same start on every rank
layers = [torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 64), torch.nn.Tanh()]
model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 1))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer)
        layer.set_custom_reduce_scatter(onehop.torch.CompressedReduceScatter(codec="q6", feedback=True))
fully_shard(model)

parameters = list(model.parameters())
held = sum(one.to_local().numel() for one in parameters)
if dist.get_rank() == 0:
    print(f"rank 0 keeps {held} of {sum(one.numel() for one in parameters)} numbers")

optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)  # its moments are sharded, too
generator = torch.Generator().manual_seed(dist.get_rank())  # data of its own
losses = []
for _ in range(30):
    inputs = torch.rand(64, 64, generator=generator)
    loss = (model(inputs).squeeze(1) - inputs[:, :8].sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss := loss.detach(), op=dist.ReduceOp.AVG)
    losses.append(loss.item())
if dist.get_rank() == 0:
    print(f"loss fell below a tenth: {losses[-1] < losses[0] / 10}")
dist.destroy_process_group()
