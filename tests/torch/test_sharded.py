"""Compressed gradients of fully_shard, compared with the NumPy reference of the codecs and with raw gradients."""

import pytest

from ranks import PYTHON_FOLDER, Ranks
from torch_program import WITHOUT_TORCH

pytest.importorskip("torch", reason=WITHOUT_TORCH)

PROGRAM = """
    import os, sys
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    sys.path.insert(0, sys.argv[2])
    import codec_reference as reference
    import onehop.torch

    dist.init_process_group(sys.argv[1])
    torch.set_num_threads(1)
    rank, size = dist.get_rank(), dist.get_world_size()

    # Two steps of one reduce-scatter, with feedback, against the reference; a part of 45 numbers is padded.
    part, steps = 45, 2
    x = np.random.default_rng(4).standard_normal((steps, size, size, part)).astype(np.float32)  # step, rank, part
    residual = np.zeros((size, size, part), np.float32)
    compressed = onehop.torch.CompressedReduceScatter("q6")
    for step in range(steps):
        sums = np.zeros(part, np.float32)
        for r in range(size):
            for place in range(size):
                sent = x[step, r, place] + residual[r, place]
                arrived = reference.decode("q6", reference.encode("q6", sent), part)
                residual[r, place] = sent - arrived
                if place == rank:
                    sums = arrived if r == 0 else sums + arrived
        output = torch.empty(part)
        compressed(output, torch.from_numpy(x[step, rank].reshape(-1)), dist.group.WORLD, dist.ReduceOp.AVG)
        assert torch.equal(output, torch.from_numpy(sums / np.float32(size)))
    assert compressed.bytes_sent == steps * size * 52 and compressed.bytes_raw == steps * size * 4 * part
    for make in (lambda: onehop.torch.CompressedReduceScatter("raw"),
                 lambda: onehop.torch.CompressedReduceScatter(compress_above="always"),
                 lambda: compressed(output, torch.ones(90), dist.group.WORLD, dist.ReduceOp.MAX)):
        try:
            make()
        except onehop.BadInput as error:
            assert "expected" in str(error)
        else:
            raise SystemExit("nothing was raised")

    # Short gradients are reduced by the process group itself, also with a factor that it does not know.
    for above, sent in ((4 * size * part + 1, 4 * size * part), (4 * size * part, size * 52)):
        compressed = onehop.torch.CompressedReduceScatter("q6", compress_above=above)
        for op, factor in ((dist.ReduceOp.SUM, 1), (dist._make_nccl_premul_sum(0.5), 0.5)):
            compressed(output, torch.from_numpy(x[0, rank].reshape(-1)), dist.group.WORLD, op)
            exact = factor * torch.from_numpy(x[0, :, rank].sum(axis=0))
            off = (output - exact).abs().max().item()
            assert off < (1e-6 if above > 4 * size * part else 0.3), off
            if above <= 4 * size * part:
                assert off > 1e-4
        assert compressed.bytes_sent == 2 * sent and compressed.bytes_raw == 2 * size * 4 * part
    # Ranks that differ are named on every rank, and the next operation works. fp8 and q8 have the same lengths.
    for mine in ((("fp8" if rank else "q8"), 0), ("q8", 1 << 20 if rank else 0), (("lossless" if rank else "q8"), 0)):
        differing = onehop.torch.CompressedReduceScatter(mine[0], compress_above=mine[1])
        for call in range(2):
            try:
                differing(output, torch.ones(size * part), dist.group.WORLD, dist.ReduceOp.SUM)
            except onehop.Mismatch as error:
                assert "rank 0 has" in str(error) and "but rank 1 has" in str(error), error
            else:
                raise SystemExit("no Mismatch")
        try:
            onehop.torch.CompressionState(codec=mine[0], compress_above=mine[1])
        except onehop.Mismatch as error:
            assert "codec='q8'" in str(error) and "but rank 1 has" in str(error), error
        else:
            raise SystemExit("no Mismatch of a CompressionState")
    compressed = onehop.torch.CompressedReduceScatter("q6")
    try:
        compressed(output, torch.ones(size * part, dtype=torch.float64 if rank else torch.float32), dist.group.WORLD,
                   dist.ReduceOp.SUM)
    except onehop.Mismatch as error:
        assert "torch.float64" in str(error), error
    else:
        raise SystemExit("no Mismatch of types")

    # The threshold of `onehop tune`: that of rank 0 on all ranks, though their tuning files differ.
    if rank == 1:
        onehop._core.compress_above = lambda *_: None
    threshold = onehop._core.compress_above("q6", True, size)
    assert threshold == (None if rank == 1 else 4 << 20)
    for length, compresses in ((1 << 20, True), ((1 << 20) - size, False)):  # floats
        compressed = onehop.torch.CompressedReduceScatter("q6", compress_above="auto")
        compressed(torch.empty(length // size), torch.ones(length), dist.group.WORLD, dist.ReduceOp.SUM)
        assert (compressed.bytes_sent < compressed.bytes_raw) is compresses, (length, threshold)

    def trained(codec, factor):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 31), torch.nn.Linear(31, 1, bias=False))
        truth = torch.linspace(-1, 1, 64)
        for module in (model[0], model[1], model):
            fully_shard(module)
        for module in (model[0], model[1]):
            if codec is not None:
                module.set_custom_reduce_scatter(onehop.torch.CompressedReduceScatter(codec))
            if factor is not None:
                module.set_gradient_divide_factor(factor)  # which torch turns into PREMUL_SUM
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        torch.manual_seed(1 + rank)
        for _ in range(150):
            x = torch.randn(32, 64)
            optimizer.zero_grad()
            loss = (model(x).squeeze(1) - x @ truth).square().mean()
            loss.backward()
            optimizer.step()
        return loss.item()

    losses = {(codec, factor): trained(codec, factor) for codec in (None, "q4") for factor in (None, 2.5)
              if factor is None or sys.argv[1] == "onehop"}
    assert all(loss < 1e-4 for loss in losses.values()), losses
    dist.barrier()
    print("sharded", flush=True)
    os._exit(0)  # gloo's own threads now and then end with an abort
"""


@pytest.mark.parametrize("backend", ["onehop", "gloo"])
def test_compressed_gradients_of_fully_shard(ranks: Ranks, backend: str) -> None:
    ranks.environment["TMPDIR"] = str(ranks.folder)
    support = str(PYTHON_FOLDER.parent / "tests/support")
    done = ranks.torchrun(ranks.script(PROGRAM), backend, support)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sharded") == 2
