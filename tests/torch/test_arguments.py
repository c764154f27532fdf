"""Arguments of the backend for torch.distributed that do not fit, and tensors that are conjugated or negated lazily."""

import pytest

from ranks import Ranks
from torch_program import START, WITHOUT_TORCH, launch

pytest.importorskip("torch", reason=WITHOUT_TORCH)

REFUSED = """
    # Other lengths and types than the other argument has.
    short, long, half = torch.ones(2), torch.zeros(1000), torch.zeros(2, dtype=torch.float16)
    for words, call in (
        ("2 elements", lambda: dist.all_gather([long] * size, short)),
        ("one type", lambda: group.allgather([[half] * size], [short])),
        ("one type", lambda: group.all_gather_single(torch.zeros(size * 2).int(), short)),
        ("one type", lambda: group.all_to_all_single(half, short)),
        ("one type", lambda: group.alltoall([half] * size, [short] * size).wait()),
        ("2 tensors to send", lambda: group.alltoall([short] * size, [short] * 3).wait()),
    ):
        assert words in raised(onehop.BadInput, call), words
        assert (long == 0).all() and (half == 0).all()
    options = dist.GatherOptions(), dist.ScatterOptions()
    options[0].rootRank = options[1].rootRank = rank  # each rank is refused as the root
    for words, blocks in (("one type", [half] * size), ("2 tensors", [short] * 3), ("equal lengths", [long] * size)):
        assert words in raised(onehop.BadInput, lambda: group.gather([blocks], [short], options[0]).wait())
        assert words in raised(onehop.BadInput, lambda: group.scatter([short], [blocks], options[1]).wait())

    # A sparse tensor elsewhere. There may be no GPU here, so this one has only what is asked for first.
    elsewhere = SimpleNamespace(is_sparse=True, is_cpu=False, device="cuda:0", dtype=torch.float32)
    assert "cuda:0" in raised(onehop.BadInput, lambda: group.allreduce([elsewhere]))
    # No sparse dimension, and no stored element on one rank or on any.
    for stored, expected in ((1, 3.0), (1 - rank, 1.0), (0, 0.0)):
        values, places = torch.full((stored, 3), rank + 1.0), torch.empty(0, stored, dtype=torch.int64)
        tensor = torch.sparse_coo_tensor(places, values, (3,), check_invariants=False)
        dist.all_reduce(tensor)
        assert tensor.is_sparse and tensor.to_dense().tolist() == [expected] * 3

    # Limits that are none.
    for limit in (float("inf"), float("nan"), 1e300):
        assert "finite" in raised(onehop.BadInput, lambda: onehop.torch.monitored_barrier(timeout=limit))
    group.monitored_barrier(timedelta.max)
    # Only rank 0 is a member.
    alone, tensor = dist.new_group([0]), torch.ones(40) * (rank + 1)
    assert onehop.torch.compressed_allreduce(tensor, alone, "fp16") is tensor and (tensor == rank + 1).all()

    # Another thread begins to send while the group ends.
    class Sender:
        closed = 0
        def close(self):
            Sender.closed += 1
            group._senders[100 + len(group._senders)] = Sender()
    group._senders[99] = Sender()
    dist.barrier()
    group.shutdown()
    assert Sender.closed == 1
"""

LAZY = """
    def lazy(values, kind):  # a view whose values are conjugated or negated, but whose memory is not
        tensor = values.conj() if kind == "conjugated" else torch._neg_view(values)
        assert tensor.is_conj() or tensor.is_neg()
        return tensor

    def same(tensor, expected):
        assert torch.equal(tensor.resolve_conj().resolve_neg(), expected.resolve_conj().resolve_neg()), (kind, expected)

    # Without the views that torch.distributed makes for some operations of complex numbers.
    for kind in ("conjugated", "negated", "negated and real"):
        dtype = torch.float32 if "real" in kind else torch.complex64
        number = 1 if "real" in kind else 1 + 2j
        plain = [(torch.arange(1, 2 * size + 1) * number * (r + 1)).to(dtype) for r in range(size)]
        sources = [lazy(one, kind).resolve_conj().resolve_neg() for one in plain]
        def fresh(like=None):
            return lazy((plain[rank] if like is None else like).clone(), kind)
        total = sum(sources)
        tensor = fresh()
        group.allreduce([tensor]).wait()
        same(tensor, total)
        tensor = fresh() if rank == 0 else sources[rank].clone()  # lazy on one rank only
        tensors = [tensor, sources[rank].clone()]
        group.allreduce(tensors).wait()
        same(tensors[0], total)
        same(tensors[1], total)
        tensor, options = fresh(), dist.ReduceOptions()
        options.rootRank = 1
        group.reduce([tensor], options).wait()
        same(tensor, total if rank == 1 else sources[rank])
        block = fresh(torch.zeros(2, dtype=dtype))
        group.reduce_scatter_single(block, fresh(), dist.ReduceScatterOptions()).wait()
        same(block, total[2 * rank : 2 * rank + 2])

        whole = fresh(torch.zeros(2 * size * size, dtype=dtype))
        group.all_gather_single(whole, fresh()).wait()
        same(whole, torch.cat(sources))
        parts = [fresh(torch.zeros(2 * size, dtype=dtype)) for _ in range(size)]
        group.allgather([parts], [fresh()]).wait()
        for part, source in zip(parts, sources):
            same(part, source)
        tensor = fresh()
        group.broadcast([tensor], 1).wait()
        same(tensor, sources[1])
        received = fresh(torch.zeros(2 * size, dtype=dtype))
        group.all_to_all_single(received, fresh()).wait()
        same(received, torch.cat([source[2 * rank : 2 * rank + 2] for source in sources]))
        works = [group.send([fresh()], 1 - rank, 5), group.recv([received], 1 - rank, 5)]
        for work in works:
            work.wait()
        same(received, sources[1 - rank])
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("part", [REFUSED, LAZY], ids=["refused", "lazy"])
def test_arguments(ranks: Ranks, part: str) -> None:
    launch(ranks, 2, START + part + '\n    print("all there", flush=True)\n', "all there")
