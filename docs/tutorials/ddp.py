"""Train with compressed gradients: DistributedDataParallel with a communication hook of onehop."""

import torch
import torch.distributed as dist

import onehop.torch

dist.init_process_group("gloo")  # or "onehop"
torch.manual_seed(0)  # the same model on every rank
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1, bias=False))
state = onehop.torch.CompressionState(codec="q6", feedback=True)
model.register_comm_hook(state, onehop.torch.compression_hook)

generator = torch.Generator().manual_seed(dist.get_rank() + 1)  # each rank has data of its own
truth = torch.linspace(-1, 1, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
first = last = 0.0
for step in range(100):
    inputs = torch.randn(32, 64, generator=generator)
    loss = (model(inputs).squeeze(1) - inputs @ truth).square().mean()
    optimizer.zero_grad()
    loss.backward()  # gradients travel encoded
    optimizer.step()
    first, last = (loss.item() if step == 0 else first), loss.item()

if dist.get_rank() == 0:
    print(f"loss fell below a tenth: {last < first / 10}")
    print(f"sent {state.bytes_sent / state.bytes_raw:.0%} of the bytes")
state.close()
dist.destroy_process_group()
