"""Programs on the subjects of PyTorch's tests that are not in its wheel, run with gloo and with onehop side by side.

    python torch_subjects.py FOLDER RANK RANKS [SUBJECT ...]

Each subject returns values, which must be the same with both backends, up to rounding. Where gloo raises an error,
onehop may raise one or succeed. Prints a line of JSON: the outcome of each subject and part.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed import _functional_collectives as functional
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import onehop.torch  # noqa: F401

Parts = dict[str, Callable[[], Any]]
folder, rank, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
right, left = (rank + 1) % size, (rank - 1) % size


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Random numbers, the same on every rank for the same seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def objects() -> Parts:
    """Collectives of Python objects."""
    mine = {"rank": rank, "list": list(range(rank)), "tensor": torch.arange(rank + 1)}
    last_two = dist.new_group([size - 2, size - 1])
    inside = rank >= size - 2

    def all_gather() -> Any:
        found = [None] * size
        dist.all_gather_object(found, mine)
        return found

    def gather() -> Any:
        found = [None] * size if rank == 1 else None
        dist.gather_object(mine, found, dst=1)
        return found

    def broadcast() -> Any:
        found = [mine, "x" * 5000, None] if rank == 2 % size else [None] * 3
        dist.broadcast_object_list(found, src=2 % size)
        return found

    def scatter() -> Any:
        found = [None]
        dist.scatter_object_list(found, [[r, "a" * r] for r in range(size)] if rank == 0 else None, src=0)
        return found

    def messages() -> Any:
        found = [None, None]
        if rank == 0:
            dist.send_object_list([mine, "end"], dst=1)
        elif rank == 1:
            dist.recv_object_list(found, src=0)
        return found

    def in_a_part() -> Any:
        found = [None, None]
        if inside:
            dist.all_gather_object(found, rank, group=last_two)
            other = [rank * 10]
            dist.broadcast_object_list(other, group_src=1, group=last_two)
            found += other
        return found

    return {one.__name__: one for one in (all_gather, gather, broadcast, scatter, messages, in_a_part)}


def functional_collectives() -> Parts:
    """The functional collectives, with and without gradients."""
    group = dist.group.WORLD
    x = numbers(2 * size, 3 * size, seed=rank)

    def gradient(call: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        source = x.clone().requires_grad_()
        result = call(source)
        (result * torch.arange(result.numel(), dtype=torch.float32).view(result.shape)).sum().backward()
        return result.detach(), source.grad

    splits = [1 + (r + rank) % 2 for r in range(size)]  # rows to each rank, and from each rank
    calls: Parts = {
        f"all_reduce_{op}": lambda op=op: functional.all_reduce(x, op, group)
        for op in ("sum", "avg", "max", "min", "product")
    }
    calls |= {
        "all_gather_0": lambda: functional.all_gather_tensor(x, 0, group),
        "all_gather_1": lambda: functional.all_gather_tensor(x, 1, group),
        "reduce_scatter_0": lambda: functional.reduce_scatter_tensor(x, "sum", 0, group),
        "reduce_scatter_1": lambda: functional.reduce_scatter_tensor(x, "sum", 1, group),
        "broadcast": lambda: functional.broadcast(x, 1, group),
        "all_to_all": lambda: functional.all_to_all_single(x, None, None, group),
        "uneven": lambda: functional.all_to_all_single(x[: sum(splits)], splits, splits, group),
        "permute": lambda: functional.permute_tensor(
            x.view(-1), [(r + 1) % size for r in range(size)], group
        ),
        "all_reduce_coalesced": lambda: functional.all_reduce_coalesced([x, 2 * x[0]], "sum", group),
        "all_gather_coalesced": lambda: functional.all_gather_into_tensor_coalesced([x, x[0]], group),
        "reduce_scatter_coalesced": lambda: functional.reduce_scatter_tensor_coalesced(
            [x, x.t().contiguous()], "sum", [0, 0], group
        ),
        "all_gather_gradient": lambda: gradient(lambda s: functional.all_gather_tensor_autograd(s, 0, group)),
        "reduce_scatter_gradient": lambda: gradient(
            lambda s: functional.reduce_scatter_tensor_autograd(s, "sum", 0, group)
        ),
        "all_to_all_gradient": lambda: gradient(
            lambda s: functional.all_to_all_single_autograd(s, [2] * size, [2] * size, group)
        ),
    }
    return calls


def dtensors() -> Parts:
    """Distributed tensors: every redistribution, sharded arithmetic, and tensor parallelism."""
    line = init_device_mesh("cpu", (size,))
    square = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
    x = numbers(7, 5)  # uneven
    kinds = {"r": Replicate(), "0": Shard(0), "1": Shard(1), "p": Partial()}

    def redistributed(mesh: Any, source: str, target: str) -> Any:
        whole = distribute_tensor(x, mesh, [kinds[one].__class__() if one in "rp" else kinds[one] for one in
                                            source.replace("p", "r")])  # fmt: skip
        if "p" in source:
            placements = [kinds[one] for one in source]
            whole = DTensor.from_local(
                whole.to_local() * (1 + rank),
                mesh,
                placements,
                run_check=False,
                shape=x.shape,
                stride=x.stride(),
            )
        moved = whole.redistribute(mesh, [kinds[one] for one in target])
        return moved.to_local(), moved.full_tensor()

    parts: Parts = {
        f"{source}_to_{target}": lambda s=source, t=target: redistributed(line, s, t)
        for source in kinds
        for target in kinds
        if target != "p" and source != target
    }
    parts |= {
        f"{s}_to_{t}": lambda s=s, t=t: redistributed(square, s, t)
        for s, t in (("0r", "r0"), ("01", "rr"), ("rr", "10"), ("00", "11"), ("pr", "0r"), ("0p", "0r"))
    }

    def arithmetic() -> Any:
        a = distribute_tensor(numbers(8, 6, seed=1), line, [Shard(0)]).requires_grad_()
        b = distribute_tensor(numbers(6, 10, seed=2), line, [Shard(1)]).requires_grad_()
        c = torch.nn.functional.layer_norm((a @ b).softmax(-1), (10,))
        (c.square().sum() + c.mean() + c.max()).backward()
        return c.full_tensor(), a.grad.full_tensor(), b.grad.full_tensor()

    return parts | {"arithmetic": arithmetic, "parallel": lambda: tensor_parallel(line)}


def tensor_parallel(line: Any) -> Any:
    """A model whose layers are split by columns, rows and sequences: its output and gradients."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)
    )
    plan = {
        "0": SequenceParallel(sequence_dim=0),
        "1": ColwiseParallel(input_layouts=Shard(0)),
        "3": RowwiseParallel(output_layouts=Replicate()),
    }
    parallelize_module(model, line, plan)
    y = model(numbers(size * 2, 8, seed=4))
    y.square().sum().backward()
    return y, [one.grad.full_tensor() for one in model.parameters()]


def layers() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(9, 13), torch.nn.Tanh(), torch.nn.Linear(13, 5))


def trained(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3, begin: int = 0) -> None:
    for step in range(begin, begin + steps):
        optimizer.zero_grad()
        model(numbers(6, 9, seed=100 * step + rank)).square().mean().backward()
        optimizer.step()


def whole(model: torch.nn.Module) -> Any:
    return [
        one.detach().full_tensor() if isinstance(one, DTensor) else one.detach() for one in model.parameters()
    ]


def sharded_models() -> Parts:
    """fully_shard (FSDP 2) and ZeroRedundancyOptimizer."""

    def make(mesh: Any = None, **options: Any) -> torch.nn.Module:
        model = layers()
        for module in (model[0], model[2], model):
            fully_shard(module, mesh=mesh, **options)
        return model

    def run(**options: Any) -> Any:
        model = make(**options)
        trained(model, torch.optim.Adam(model.parameters(), 0.05))
        return whole(model)

    def accumulated() -> Any:
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(4):
            model.set_requires_gradient_sync(step % 2 == 1)
            model(numbers(6, 9, seed=step * size + rank)).square().mean().backward()
            if step % 2 == 1:
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()
        return whole(model), norm.full_tensor()

    def zero() -> Any:
        model = torch.nn.parallel.DistributedDataParallel(layers())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
        trained(model, optimizer)
        optimizer.consolidate_state_dict(0)
        return whole(model), len(optimizer.state_dict()["state"]) if rank == 0 else 0

    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return {
        "usual": lambda: run(mesh=init_device_mesh("cpu", (size,))),
        "kept": lambda: run(mesh=init_device_mesh("cpu", (size,)), reshard_after_forward=False),
        "hybrid": lambda: run(
            mesh=init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
        ),
        "half": lambda: run(mesh=init_device_mesh("cpu", (size,)), mp_policy=half),
        "accumulated": accumulated,
        "zero": zero,
    }


def checkpoints() -> Parts:
    """Checkpoints: saved from one distribution and loaded into another, in the background, and of an optimizer."""
    line = init_device_mesh("cpu", (size,))
    place = str(folder / dist.get_backend())

    def resharded() -> Any:
        x = numbers(7, 10)
        dcp.save({"x": distribute_tensor(x, line, [Shard(0)]), "step": 3}, checkpoint_id=place + "a")
        loaded = {"x": distribute_tensor(torch.zeros(7, 10), line, [Shard(1)]), "step": 0}
        dcp.load(loaded, checkpoint_id=place + "a")
        assert torch.equal(loaded["x"].full_tensor(), x)
        return loaded["x"].to_local(), loaded["step"]

    def background() -> Any:
        dcp.async_save(
            {"x": distribute_tensor(numbers(9), line, [Shard(0)])}, checkpoint_id=place + "b"
        ).result()
        loaded = {"x": torch.zeros(9)}
        dcp.load(loaded, checkpoint_id=place + "b")
        return loaded["x"]

    def continued() -> Any:
        def make() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
            model = layers()
            fully_shard(model, mesh=line)
            return model, torch.optim.Adam(model.parameters(), 0.05)

        model, optimizer = make()
        trained(model, optimizer, 2)
        weights, moments = states.get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=place + "c")
        trained(model, optimizer, 2, begin=2)
        other, second = make()
        weights, moments = states.get_state_dict(other, second)
        loaded = {"model": weights, "optimizer": moments}
        dcp.load(loaded, checkpoint_id=place + "c")
        states.set_state_dict(
            other, second, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"]
        )
        trained(other, second, 2, begin=2)
        for one, two in zip(whole(model), whole(other), strict=True):
            assert torch.equal(one, two)
        options = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
        return sorted(states.get_model_state_dict(other, options=options).items())

    return {one.__name__: one for one in (resharded, background, continued)}


def pipelines() -> Parts:
    """Pipeline parallelism with two schedules."""

    def run(schedule: Any) -> Any:
        torch.manual_seed(rank)
        stage_model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh())
        stage = PipelineStage(stage_model, rank, size, torch.device("cpu"))
        losses: list[torch.Tensor] = []
        steps = schedule(stage, n_microbatches=size, loss_fn=torch.nn.functional.mse_loss)
        x, wanted = numbers(2 * size, 6, seed=1), numbers(2 * size, 6, seed=2)
        arguments = (x,) if rank == 0 else ()
        options = {"target": wanted, "losses": losses} if rank == size - 1 else {}
        y = steps.step(*arguments, **options)
        return y, [one.detach() for one in losses], [one.grad for one in stage_model.parameters()]

    return {"gpipe": lambda: run(ScheduleGPipe), "one_forward_one_backward": lambda: run(Schedule1F1B)}


SUBJECTS = {
    one.__name__: one
    for one in (objects, functional_collectives, dtensors, sharded_models, checkpoints, pipelines)
}


def outcomes(backend: str, subject: str) -> dict[str, Any]:
    """The value, or the error, of each part."""
    dist.init_process_group(
        backend, init_method=f"file://{folder}/store_{backend}_{subject}", rank=rank, world_size=size
    )
    found = {}
    for name, part in SUBJECTS[subject]().items():
        try:
            value = part()
            found[name] = torch.utils._pytree.tree_map_only(
                torch.Tensor, lambda tensor: tensor.detach().clone(), value
            )
        except Exception as error:
            found[name] = error
    dist.barrier()
    dist.destroy_process_group()
    return found


def verdict(gloo: Any, ours: Any) -> str:
    """What comes of a part with both backends."""
    if isinstance(gloo, Exception):
        return "neither" if isinstance(ours, Exception) else "more than gloo"
    if isinstance(ours, Exception):
        return f"{type(ours).__name__}: {ours}"
    (theirs, their_shape), (mine, shape) = (torch.utils._pytree.tree_flatten(one) for one in (gloo, ours))
    if shape != their_shape:
        return f"differs from gloo: {shape} instead of {their_shape}"
    for one, two in zip(mine, theirs, strict=True):
        if not isinstance(two, torch.Tensor):
            if one != two:
                return f"differs from gloo: {one!r} instead of {two!r}"
            continue
        try:
            torch.testing.assert_close(one, two)
        except AssertionError as error:
            return f"differs from gloo: {error}"
    return "same"


if __name__ == "__main__":
    torch.set_num_threads(1)
    result = {}
    for subject in sys.argv[4:] or SUBJECTS:
        gloo, ours = outcomes("gloo", subject), outcomes("onehop", subject)
        assert gloo.keys() == ours.keys()
        result |= {f"{subject}.{name}": verdict(gloo[name], ours[name]) for name in gloo}
    print(json.dumps(result), flush=True)
    os._exit(0)  # gloo's own threads now and then end with an abort
