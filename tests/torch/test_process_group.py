"""The backend for torch.distributed, compared with gloo and with local computations."""

import json
from pathlib import Path

import pytest

from ranks import SURVIVORS, Ranks
from torch_program import START, WITHOUT_TORCH, launch

pytest.importorskip("torch", reason=WITHOUT_TORCH)

EVERYTHING = """
    assert dist.get_backend() == "onehop"
    total = size * (size + 1) // 2

    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        tensor = torch.full((1000, 3), rank + 1, dtype=dtype)
        dist.all_reduce(tensor)
        assert (tensor == total).all() and tensor.dtype == dtype
    odd = torch.arange(12.0).reshape(3, 4).t()
    dist.all_reduce(odd, op=dist.ReduceOp.MAX)
    assert torch.equal(odd, torch.arange(12.0).reshape(3, 4).t())
    mean = torch.full((5,), float(rank))
    works = [dist.all_reduce(mean, op=dist.ReduceOp.AVG, async_op=True) for _ in range(3)]
    assert all(work.wait() for work in works) and works[0].is_completed() and works[0].is_success()
    assert torch.allclose(mean, torch.full((5,), (size - 1) / 2))
    assert torch.equal(works[2].get_future().value()[0], mean)

    tensor = torch.arange(7) * rank
    dist.broadcast(tensor, 1)
    assert torch.equal(tensor, torch.arange(7))
    gathered = [torch.empty(2, 2, dtype=torch.uint8) for _ in range(size)]
    dist.all_gather(gathered, torch.full((2, 2), rank, dtype=torch.uint8))
    assert all((part == r).all() for r, part in enumerate(gathered))
    flat = torch.empty(size * 3)
    dist.all_gather_into_tensor(flat, torch.full((3,), float(rank)))
    assert torch.equal(flat, torch.arange(float(size)).repeat_interleave(3))
    block = torch.empty(4)
    dist.reduce_scatter_tensor(block, torch.arange(4.0 * size) * (rank + 1))
    assert torch.equal(block, torch.arange(4.0 * size)[4 * rank : 4 * rank + 4] * total)
    dist.reduce_scatter(block, [torch.full((4,), float(r)) for r in range(size)])
    assert (block == rank * size).all()
    out = torch.empty(2 * size, dtype=torch.int64)
    dist.all_to_all_single(out, torch.arange(size).repeat_interleave(2) + 10 * rank)
    assert torch.equal(out, (10 * torch.arange(size) + rank).repeat_interleave(2))
    lists = [torch.empty(r + 1) for r in range(size)]
    dist.all_to_all(lists, [torch.full((rank + 1,), float(10 * rank + r)) for r in range(size)])
    assert all((part == 10 * r + rank).all() for r, part in enumerate(lists))
    tensor = torch.full((3,), float(rank + 1))
    dist.reduce(tensor, 0)
    assert (tensor == (total if rank == 0 else rank + 1)).all()
    parts = [torch.empty(2) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((2,), float(rank)), parts, 1)
    assert rank != 1 or all((part == r).all() for r, part in enumerate(parts))
    dist.scatter(block, [torch.full((4,), float(r)) for r in range(size)] if rank == 2 else None, 2)
    assert (block == rank).all()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    dist.barrier()

    # Messages longer than the path holds, both ways at once, and out of order.
    right, left = (rank + 1) % size, (rank - 1) % size
    there, back = torch.full((300_000,), float(rank)), torch.empty(300_000)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, there, right), dist.P2POp(dist.irecv, back, left)]):
        work.wait()
    assert (back == left).all()
    if rank == 0:
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    elif rank == 1:
        two, one = torch.empty(1), torch.empty(1)
        dist.recv(two, 0, tag=2)
        dist.recv(one, 0, tag=1)
        assert (one.item(), two.item()) == (1, 2)

    half = dist.new_group([0, 2])
    if rank != 1:
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, group=half)
        assert tensor.item() == 2
    # From whoever sends first; the rank that sends last is heard only then.
    if rank == 0:
        found = [torch.empty(2) for _ in range(1, size)]
        senders = [dist.recv(one, tag=5) for one in found]
        assert sorted(senders) == list(range(1, size))
        assert all((one == sender).all() for one, sender in zip(found, senders))
    else:
        dist.send(torch.full((2,), float(rank)), 0, tag=5)
    late = dist.irecv(torch.empty(2), left, tag=6)
    assert "0.05 s" in raised(onehop.Timeout, lambda: late.wait(timedelta(seconds=0.05)))
    dist.barrier()
    dist.send(torch.zeros(2), right, tag=6)
    late.wait()

    tensor = torch.full((3,), 1 + 2j) * (rank + 1)
    dist.all_reduce(tensor)
    assert (tensor == (1 + 2j) * total).all()
    parameter = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).t() * (rank + 1))
    dist.all_reduce(parameter)
    assert torch.equal(parameter.detach(), torch.arange(6.0).reshape(2, 3).t() * total)
    # Functional collectives, DTensor and FSDP find their groups by name.
    assert torch._C._distributed_c10d._resolve_process_group(dist.group.WORLD.group_name) is dist.group.WORLD

    for wrong, op in (
        (torch.zeros(3, dtype=torch.float8_e4m3fn), dist.ReduceOp.SUM),
        (torch.zeros(3), dist.ReduceOp.BOR),
        (torch.zeros(3, dtype=torch.int32), dist.ReduceOp.AVG),
        (torch.zeros(3).to_sparse(), dist.ReduceOp.MAX),
        (torch.eye(3).to_sparse_csr(), dist.ReduceOp.SUM),
    ):
        words = raised(onehop.BadInput, lambda: group.allreduce([wrong], op))
        assert "expected" in words or "onehop" in words or "there is no" in words, words
    dist.barrier()
    dist.destroy_process_group()
    print("all there", flush=True)
"""

ERRORS = """
    other = rank == 1
    cases = {
        "a length": lambda group: dist.all_reduce(torch.zeros(3 + other), group=group),
        "a shape": lambda group: dist.all_reduce(torch.zeros((2, 3) if other else (3, 2)), group=group),
        "a shape of several": lambda group: dist.all_reduce_coalesced(
            [torch.zeros(4), torch.zeros((2, 3) if other else (3, 2))], group=group
        ),
        "a type": lambda group: dist.all_reduce(
            torch.zeros(3, dtype=torch.int32 if other else torch.float32), group=group
        ),
        "an op": lambda group: dist.all_reduce(
            torch.zeros(3), dist.ReduceOp.MAX if other else dist.ReduceOp.SUM, group=group
        ),
        "an operation": lambda group: (dist.broadcast(torch.zeros(3), 0, group) if other
                                       else dist.all_reduce(torch.zeros(3), group=group)),
        "a length, later": lambda group: dist.all_reduce(torch.zeros(3 + other), group=group, async_op=True).wait(),
        "a block": lambda group: dist.reduce_scatter_tensor(
            torch.zeros(4 + other), torch.zeros(size * (4 + other)), group=group
        ),
        "a contribution": lambda group: dist.all_gather(
            [torch.zeros(4 + other) for _ in range(size)], torch.zeros(4 + other), group=group
        ),
        "a root": lambda group: dist.broadcast(torch.zeros(3), int(other), group),
    }
    group = dist.new_group()
    for name, case in cases.items():
        assert "rank 1" in raised(onehop.Mismatch, lambda: case(group)), name
        total = torch.ones(5)
        dist.all_reduce(total, group=group)
        assert (total == size).all(), f"after {name}"
    if rank == 2:
        dist.send(torch.zeros(3), 0)
    elif rank == 0:
        words = raised(onehop.Mismatch, lambda: dist.recv(torch.zeros(4), 2))
        assert "12 bytes" in words and "16" in words, words
    dist.barrier()
    print("all mismatched", flush=True)
    dist.barrier()
    received = dist.irecv(torch.zeros(3), 2) if rank == 0 else None
    from_any = dist.irecv(torch.zeros(3)) if rank == 1 else None
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    for wait in (lambda: dist.all_reduce(torch.zeros(100_000)), (received or from_any).wait):
        try:
            wait()
        except onehop.PeerLost as error:
            assert error.rank == 2
        else:
            raise SystemExit("nobody was missed")
    print(f"rank {rank} lost 2", flush=True)
    os._exit(0)
"""


def test_feedback_follows_a_parameter_into_another_bucket() -> None:
    """DistributedDataParallel deals parameters anew after the first step."""
    import torch
    import torch.distributed as dist

    from onehop.torch import CompressionState

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        state = CompressionState(codec="q4")
        small, large = (torch.nn.Parameter(torch.zeros(n)) for n in (40, 100))
        gradients = {
            one: torch.randn(one.numel(), generator=torch.Generator().manual_seed(3))
            for one in (small, large)
        }
        total = {one: torch.zeros(one.numel()) for one in gradients}
        steps = 40
        for step in range(steps):
            order = [small, large] if step == 0 else [large, small]
            bucket = state._average(order, torch.cat([gradients[one] for one in order]))
            for one, part in zip(order, bucket.split([one.numel() for one in order]), strict=True):
                total[one] += part
        # What is still late, and the roundings of the sums, which are as often up as down.
        bound = 1 / 6.9
        for one, gradient in gradients.items():
            off = (total[one] / steps - gradient).abs().max()
            assert off < bound * gradient.abs().max() / 3, off
            assert off > 0
    finally:
        dist.destroy_process_group()


def test_every_operation_of_torch(ranks: Ranks) -> None:
    launch(ranks, 3, START + EVERYTHING, "all there")


def test_another_tensor_is_a_mismatch_everywhere_and_a_dead_rank_is_named(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", 3, *SURVIVORS, ranks.script(START + ERRORS), ranks.folder / "store")
    assert done.stdout.count("all mismatched") == 3, done.stdout + done.stderr
    assert "rank 0 lost 2" in done.stdout, done.stdout + done.stderr
    assert "rank 1 lost 2" in done.stdout, done.stdout + done.stderr


def test_the_example_trains(ranks: Ranks) -> None:
    pytest.importorskip(
        "sklearn", reason="there is no scikit-learn in this environment; `make setup-torch` brings it"
    )
    picture, figures = ranks.folder / "digits.png", ranks.folder / "digits.json"
    example = Path(__file__).resolve().parents[2] / "examples/ddp_digits.py"
    arguments = ["--seeds", "1", "--epochs", "3", "--plot", str(picture), "--json", str(figures)]
    done = ranks.torchrun(str(example), *arguments)
    assert done.returncode == 0, done.stderr
    variants = {row["variant"]: row for row in json.loads(figures.read_text())["variants"]}
    assert len(variants) == 8
    assert all(row["accuracy"] > 0.5 for row in variants.values())
    assert variants["raw"]["bytes"] == 1
    assert [round(variants[codec]["bytes"] * 128) for codec in ("q8", "q6", "q4")] == [34, 26, 18]
    assert picture.read_bytes().startswith(b"\x89PNG")
