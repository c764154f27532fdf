"""Tensors on cards in the backend, by tensors that pretend to be: sums by kernels, the rest through copies."""

import pytest

from ranks import Ranks
from torch_program import START, WITHOUT_TORCH, launch

pytest.importorskip("torch", reason=WITHOUT_TORCH)

PROGRAM = (
    START
    + """
    import logging
    from onehop.device.arrays import Place
    from onehop.torch import card
    from onehop.torch.work import Work

    said = []
    logging.getLogger("onehop.device").addFilter(lambda record: said.append(record.getMessage()))
    marked = {}
    card.is_on_card = lambda tensor: id(tensor) in marked
    card.device_array = lambda tensor: Place(
        "processor", tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], 0, tensor.nbytes)

    def on_card(tensor):
        marked[id(tensor)] = tensor
        return tensor

    # A kernel adds in place; its work is done at once, for the host, and waiting is a matter of streams.
    devices = []
    card.Work = lambda of: devices.append(of) or Work()
    tensor = on_card(torch.full((1000,), float(rank + 1)))
    work = dist.all_reduce(tensor, async_op=True)
    assert work.is_completed() and torch.equal(tensor, torch.full((1000,), 3.0)), tensor
    assert not said and devices == [[tensor.device]]

    # Other reductions and types go through copies.
    for _ in range(2):
        most = on_card(torch.tensor([rank, 5 - rank]))
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        assert most.tolist() == [1, 5]
    total = on_card(torch.tensor([rank + 1], dtype=torch.int64))
    dist.all_reduce(total)
    assert total.tolist() == [3]
    mean = on_card(torch.tensor([float(rank)]))
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    assert mean.tolist() == [0.5]

    sent = on_card(torch.arange(4.0) + 10 * rank)
    dist.broadcast(sent, 1)
    assert sent.tolist() == [10, 11, 12, 13]
    parts = [on_card(torch.zeros(2)) for _ in range(size)]
    dist.all_gather(parts, on_card(torch.full((2,), float(rank))))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1]]
    block = on_card(torch.zeros(2))
    dist.reduce_scatter_tensor(block, on_card(torch.arange(4.0)))
    assert block.tolist() == [[0, 2], [4, 6]][rank]

    # Both send before they receive.
    mine, other = on_card(torch.full((3,), float(rank))), on_card(torch.zeros(3))
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)])
    for work in works:
        work.wait()
    assert other.tolist() == [1 - rank] * 3

    assert said.count("allreduce of tensors on a card goes through the processor's memory") == 1
    assert sum("goes through" in line for line in said) == len(set(said))
    print("right")
    dist.destroy_process_group()
"""
)


def test_tensors_on_cards(ranks: Ranks) -> None:
    launch(ranks, 2, PROGRAM, "right")
