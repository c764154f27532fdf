"""Unusual tensors, groups and failures with the backend for torch.distributed, compared with local computations."""

import signal

import pytest

from ranks import Ranks
from torch_program import START, WITHOUT_TORCH, launch, outcomes

pytest.importorskip("torch", reason=WITHOUT_TORCH)

TENSORS = """
    from torch._subclasses import FakeTensorMode

    # A dry run: tensors without memory.
    for make in (lambda: torch.zeros(4, device="meta"), lambda: FakeTensorMode().from_tensor(torch.zeros(4))):
        dist.all_reduce(make())
        assert dist.all_reduce(make(), async_op=True).get_future().wait()[0].shape == (4,)
        dist.broadcast(make(), 1)
        dist.all_gather([make() for _ in range(size)], make())
        dist.all_gather_single(make(), make())
        dist.reduce_scatter_single(make(), make())
        dist.all_to_all_single(make(), make())
        if rank == 0:
            dist.send(make(), 1)
            dist.recv(make(), 1)

    for op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN):
        assert "int64" in raised(onehop.BadInput, lambda: dist.all_reduce(torch.ones(3).to(torch.uint64), op))

    # Complex numbers, without the views that torch.distributed makes for some operations.
    sources = [torch.arange(2 * size) * (1 + 2j * r) for r in range(size)]
    total = sum(sources)
    block, tensor = torch.empty(2, dtype=torch.complex64), sources[rank].clone()
    dist.reduce_scatter_single(block, sources[rank])
    assert torch.equal(block, total[2 * rank : 2 * rank + 2])
    dist.reduce_scatter(block, list(sources[rank].to(torch.complex64).chunk(size)), dist.ReduceOp.AVG)
    assert torch.allclose(block, total[2 * rank : 2 * rank + 2].to(torch.complex64) / size)
    group.allreduce([tensor]).wait()
    assert torch.equal(tensor, total)
    conjugate = sources[rank].conj()
    group.reduce_scatter_single(block, conjugate.to(torch.complex64), dist.ReduceScatterOptions()).wait()
    assert torch.equal(block, total.conj()[2 * rank : 2 * rank + 2].to(torch.complex64))
    assert "SUM or AVG" in raised(onehop.BadInput, lambda: group.allreduce([tensor], dist.ReduceOp.MAX))

    # Each rank's factor first, then the sum.
    for factor in (0.5, torch.tensor([0.5])):
        op = dist._make_nccl_premul_sum(factor)
        tensor = torch.arange(4.0) * (rank + 1)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor, torch.arange(4.0) * 3)
        block, whole = torch.empty(2), torch.ones(2 * size)
        dist.reduce_scatter_single(block, whole, op)
        assert block.tolist() == [size / 2] * 2 and (whole == 1).all()
    assert "PREMUL_SUM" in raised(onehop.BadInput, lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), op))
    assert "factor" in raised(onehop.BadInput, lambda: group.allreduce([tensor], dist.ReduceOp.PREMUL_SUM))

    # Sparse tensors, also empty ones and ones with dense dimensions.
    dense = [torch.zeros(5, 4, 2), torch.zeros(5, 4, 2), torch.zeros(5, 4, 2)]
    dense[0][3, 1], dense[0][0, 2], dense[2][3, 1] = 1.5, -1, 4
    for dense_dim in (0, 1, 2):
        tensor = dense[rank].to_sparse(3 - dense_dim)
        dist.all_reduce(tensor)
        assert tensor.is_sparse and tensor.is_coalesced() and torch.equal(tensor.to_dense(), sum(dense))
    tensor = torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,), check_invariants=False)  # not coalesced
    assert torch.equal(dist.all_reduce(tensor, async_op=True).get_future().wait()[0].to_dense(),
                       torch.tensor([0, 3.0 * size, 0]))
    shape = (5, 4 + (rank == 1))
    assert "rank 1" in raised(onehop.Mismatch, lambda: dist.all_reduce(torch.zeros(shape).to_sparse()))
    for wrong in (torch.eye(3).to_sparse_csr(), [torch.eye(3).to_sparse()] * 2):
        raised(onehop.BadInput, lambda: group.allreduce(wrong if isinstance(wrong, list) else [wrong]))

    # Tensors with gaps and other orders, everywhere.
    mine = (torch.arange(24.0).reshape(6, 4) + rank).t()[::2]
    other = [(torch.arange(24.0).reshape(6, 4) + r).t()[::2] for r in range(size)]
    into = torch.zeros(6, 2 * size).t()
    dist.all_gather_single(into, mine)
    assert torch.equal(into, torch.cat(other))
    part = torch.zeros(4, 2).t()
    whole = torch.arange(8.0 * size).reshape(4, 2 * size).t()
    dist.reduce_scatter_single(part, whole * (rank + 1))
    assert not (whole * 2).is_contiguous() and torch.equal(part, 6 * whole[2 * rank : 2 * rank + 2])
    back = torch.zeros(2, 6).t()
    whole = torch.arange(4.0 * size).reshape(2, 2 * size).t()  # rows 2 r and 2 r + 1 are for rank r
    dist.all_to_all_single(back, whole + 100 * rank)
    assert torch.equal(back, torch.cat([whole[2 * rank : 2 * rank + 2] + 100 * r for r in range(size)]))
    dist.broadcast(mine, 2)
    assert torch.equal(mine, other[2])
"""

GROUPS = """
    import torch.distributed.checkpoint as checkpoint
    from torch.nn.parallel import DistributedDataParallel

    # The coalescing manager, with and without its device: one work for all operations.
    cpu = torch.device("cpu")
    assert group._device_types == [cpu] and group._get_backend(cpu) is group
    assert "cuda" in raised(RuntimeError, lambda: group._get_backend(torch.device("cuda")))
    for device in (None, cpu):
        with dist._coalescing_manager(group, device, async_ops=True) as manager:
            tensors = [torch.ones(n) for n in (3, 5)]
            for tensor in tensors:
                dist.all_reduce(tensor)
        manager.wait()
        assert all((tensor == size).all() for tensor in tensors)
    right, left = (rank + 1) % size, (rank - 1) % size
    with dist._coalescing_manager(group, cpu, async_ops=True) as manager:
        tensor, received = torch.full((4,), float(rank)), torch.empty(2)
        works = [dist.broadcast(tensor, 1, async_op=True), dist.isend(torch.full((2,), float(rank)), right),
                 dist.irecv(received, left)]
    manager.wait()
    assert all(work.is_success() for work in works) and (tensor == 1).all() and (received == left).all()
    with dist._coalescing_manager(group, cpu, async_ops=True) as manager:
        wrong = [dist.broadcast(torch.zeros(n + (rank == 1)), 0, async_op=True) for n in (4, 5)]
        dist.broadcast(tensor, 2, async_op=True)
    words = raised(onehop.Mismatch, manager.wait)
    assert "operation 2 of 3 failed, too" in words, words
    with dist._coalescing_manager(group, cpu) as manager:
        pass

    # Checkpoints in the background.
    state = {"weights": torch.full((5,), float(rank)) if rank == 0 else torch.zeros(5), "step": 7}
    checkpoint.async_save(state, checkpoint_id=sys.argv[1] + ".checkpoint").result()
    loaded = {"weights": torch.empty(5), "step": 0}
    checkpoint.load(loaded, checkpoint_id=sys.argv[1] + ".checkpoint")
    assert loaded["step"] == 7 and (loaded["weights"] == 0).all()

    # A barrier that names who is missing.
    second = dist.new_group()
    onehop.torch.monitored_barrier(second, timedelta(seconds=20))
    onehop.torch.monitored_barrier(second, 20.0, wait_all_ranks=True)
    if rank == 0:
        words = raised(onehop.Timeout, lambda: second.monitored_barrier(timedelta(seconds=0.3), True))
        assert "Ranks 1, 2 failed" in words, words
    dist.barrier()
    third = dist.new_group()
    if rank != 1:
        words = raised(onehop.Timeout, lambda: onehop.torch.monitored_barrier(third, 0.5))
        assert ("Rank 1 failed" if rank == 0 else "misses rank 1") in words, words
    dist.barrier()
    pair = dist.new_group([0, 2])
    onehop.torch.monitored_barrier(pair)
    # The time limit of one operation.
    if rank == 2:
        raised(onehop.Timeout, lambda: dist.barrier(third, timeout=timedelta(seconds=0.2)))

    # Parts of a group.
    part = group.split_group([2, 0], group_desc="a pair")
    assert (part is None) == (rank == 1)
    if part is not None:
        tensor = torch.tensor([rank + 1.0])
        part.allreduce([tensor]).wait()
        assert tensor.item() == 4 and part.size() == 2 and part.rank() == rank // 2 and part.group_desc == "a pair"
        part.shutdown()
    raised(onehop.BadInput, lambda: group.split_group([0, 0]))
    raised(onehop.BadInput, lambda: group.split_group([size]))

    # Groups that work at the same time, each in a thread.
    groups, sums = [dist.new_group() for _ in range(4)], {}
    def use(number):
        tensor = torch.zeros(1)
        for step in range(30):
            one = torch.full((100 * number + 1,), float(step + rank))
            dist.all_reduce(one, group=groups[number])
            tensor += one[0]
        sums[number] = tensor.item()
    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads[:: 1 if rank else -1]:  # in another order on rank 0
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == dict.fromkeys(range(4), 30 * 3.0 + 3 * 29 * 15), sums

    # Operations go on while Python computes: nobody waits for them.
    works, counted = [dist.all_reduce(torch.ones(300_000), async_op=True) for _ in range(4)], 0
    limit, done = time.monotonic() + 60, [0]
    while done[-1] < 4 and time.monotonic() < limit:
        counted = sum(number * number for number in range(2000))
        done.append(sum(work.is_completed() for work in works))
    assert done[-1] == 4 and done == sorted(done) and counted, done[-1]

    # A callback that waits for another operation of the same group, before operations that were already queued.
    order = []
    def then(future):
        second = torch.full((3,), 2.0)
        dist.all_reduce(second, async_op=True).wait()
        third = dist.all_reduce(second, async_op=True).get_future().wait()[0]
        order.append(third[0].item())
        return third
    first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(then)
    last = dist.all_reduce(torch.ones(400_000), async_op=True)
    assert (first.wait() == 2 * size * size).all() and last.wait() and order == [2.0 * size * size]

    # Gradients of an embedding.
    torch.manual_seed(0)
    model = torch.nn.Embedding(12, 3, sparse=True)
    parallel = DistributedDataParallel(model)
    parallel(torch.tensor([rank, 5, 5])).sum().backward()
    expected = torch.zeros(12, 3)
    expected[:size] += 1 / size
    expected[5] += 2
    assert model.weight.grad.is_sparse and torch.allclose(model.weight.grad.to_dense(), expected)
"""

END = """
    dist.barrier()
    tensor = torch.ones(200_000)
    pending = [dist.all_reduce(tensor, async_op=True) for _ in range(3)]
    dist.destroy_process_group()  # which lets them end
    assert all(work.is_success() for work in pending) and (tensor == size**3).all()
    assert "shut down" in raised(RuntimeError, lambda: group.allreduce([torch.ones(2)]).wait())
    for attempt in range(2):  # and again
        dist.init_process_group("onehop", init_method=f"file://{sys.argv[1]}.{attempt}", rank=rank, world_size=size)
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert (tensor == size).all()
        dist.destroy_process_group()
    print("all there", flush=True)
"""


@pytest.mark.parametrize("part", [TENSORS, GROUPS], ids=["tensors", "groups"])
def test_unusual_tensors_and_groups(ranks: Ranks, part: str) -> None:
    launch(ranks, 3, START + part + END, "all there")


SUBGROUPS = """
    from torch.distributed.device_mesh import init_device_mesh

    def check(part, members):
        tensor = torch.tensor([float(1 << rank)])
        part.allreduce([tensor]).wait()
        assert tensor.item() == sum(1 << member for member in members), (tensor, members)

    pair_here = [rank // 2 * 2, rank // 2 * 2 + 1]
"""

NAMES = """
    # Ranks that make different groups: torch gives those of ranks 0 and 2 the same names as those of ranks 1 and 3.
    for _ in range(10):
        pair, pairs = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
        alone, _ = dist.new_subgroups(group_size=1, group=pair)
        again, _ = dist.new_subgroups(group_size=2, group=pair)
        for part, expected in ((pair, [rank % 2, rank % 2 + 2]), (alone, [rank]), (again, [rank % 2, rank % 2 + 2])):
            check(part, expected)
        dist.barrier()
    # The same name once a group has been destroyed.
    for _ in range(3):
        pair = dist.new_group(pair_here, use_local_synchronization=True)
        check(pair, pair_here)
        dist.destroy_process_group(pair)
    dist.destroy_process_group()
    print("all there", flush=True)
"""

SAME_STORE = """
    # One store for one default group after the other, like that of torchrun.
    dist.destroy_process_group()
    store = dist.FileStore(sys.argv[1] + ".same", size)
    for attempt in range(3):
        dist.init_process_group("onehop", store=store, rank=rank, world_size=size)
        group = dist.group.WORLD
        check(group, range(size))
        pair, _ = dist.new_subgroups(group_size=2)
        check(pair, pair_here)
        for members in ([1, 0], [rank % 2]):
            part = pair.split_group(members)
            check(part, sorted(pair_here[member] for member in members))
            part.shutdown()
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        check(mesh.get_group("rows"), [rank % 2, rank % 2 + 2])
        check(mesh.get_group("columns"), pair_here)
        dist.barrier()
        if attempt == 1 and rank == 3:
            group.abort()
        elif attempt == 1:
            assert "rank 3" in raised(onehop.PeerLost, lambda: dist.all_reduce(torch.ones(2)))
        dist.destroy_process_group()
    print("all there", flush=True)
"""


@pytest.mark.parametrize("program", [NAMES, SAME_STORE], ids=["same name", "same store"])
def test_groups_with_names_of_others(ranks: Ranks, program: str) -> None:
    launch(ranks, 4, START + SUBGROUPS + program, "all there")


ABORT = """
    import os, signal, sys, threading, time
    from datetime import timedelta
    from pathlib import Path
    import torch
    import torch.distributed as dist
    import onehop.torch

    rank, size, what, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    torch.set_num_threads(1)

    def start(name, number, ranks):
        dist.init_process_group("onehop", init_method=f"file://{folder}/{name}", rank=number, world_size=ranks)
        tensor = torch.ones(3)
        dist.all_reduce(tensor)
        assert (tensor == ranks).all()

    def message(call):
        begin = time.monotonic()
        try:
            call()
        except RuntimeError as error:
            return f"{type(error).__name__} after {time.monotonic() - begin:.1f} s: {error}"
        return "nothing"

    start("first", rank, size)
    group = dist.group.WORLD
    if rank == size - 1:
        time.sleep(1)
        (folder / "began").write_text(str(time.monotonic()))  # one clock for all processes
        if what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        group.abort()  # the others wait for this rank, which goes on
        print(message(lambda: dist.all_reduce(torch.ones(3))), flush=True)
        sys.exit(0)
    # Everything at once waits for the last rank: the program, the queue, a message.
    works = [dist.all_reduce(torch.ones(50), async_op=True), dist.irecv(torch.ones(3), size - 1)]
    blocked = []
    def block():
        blocked.append(message(lambda: works[0].wait()))
    thread = threading.Thread(target=block)
    thread.start()
    if what == "own" and rank == 0:  # a watchdog of this rank
        def watchdog():
            (folder / "began").write_text(str(time.monotonic()))
            group.abort()
        threading.Timer(0.3, watchdog).start()
    lines = [message(works[1].wait), message(lambda: dist.all_reduce(torch.ones(3)))]
    thread.join()
    ended = time.monotonic()
    lines.append(f"{ended - float((folder / 'began').read_text()):.3f}")
    for line in lines + blocked:
        print(line, flush=True)
    group.abort()
    group.abort()  # twice is once
    print("again", message(lambda: dist.send(torch.ones(3), 1 - rank)), flush=True)
    dist.destroy_process_group()
    start("second", rank, size - 1)
    print("restarted", flush=True)
    dist.destroy_process_group()
"""


LONGEST_END = 5.0  # seconds; a quiet machine takes milliseconds (docs/howto/torch.md)


@pytest.mark.parametrize("what", ["killed", "aborts", "own"])
def test_a_dead_or_aborted_rank_ends_every_wait_and_the_others_start_anew(ranks: Ranks, what: str) -> None:
    arguments = [(rank, 3, what, ranks.folder) for rank in range(3)]
    *survivors, last = outcomes(ranks, ranks.script(ABORT), arguments)
    assert last[0] == (-signal.SIGKILL if what == "killed" else 0), last
    for rank, (code, output, errors) in enumerate(survivors):
        assert code == 0, errors
        lines = output.splitlines()
        assert lines[-1] == "restarted", output
        assert "again Error" in lines[-2], output
        # The printed lines: two waits, the time after which all three had ended, the third wait.
        assert float(lines.pop(2)) < LONGEST_END, output
        for line in lines[:3]:
            if what == "own":
                assert "aborted" in line, output
                assert line.startswith("Error" if rank == 0 else "PeerLost"), output
            else:
                assert line.startswith("PeerLost"), output
                assert "rank 2" in line, output
                assert ("has aborted" if what == "aborts" else "has ended") in line, output
