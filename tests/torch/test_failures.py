"""Errors of torch ranks when one of them is killed, is late, or calls another operation in the middle of a step."""

import signal

import pytest

from ranks import PATIENCE, Ranks
from torch_program import START, WITHOUT_TORCH, launch, outcomes, started

pytest.importorskip("torch", reason=WITHOUT_TORCH)

# Every rank trains one model with each variant, all of which work at first. Then something happens to the last rank in
# the middle of the backward pass of the chosen variant. The survivors go through the other variants, too.
PROGRAM = """
    import os, signal, sys, time
    from datetime import timedelta
    from pathlib import Path
    import torch
    import torch.distributed as dist
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    import onehop.torch

    rank, size, what, first, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5])
    dist.init_process_group("onehop", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    torch.set_num_threads(1)
    victim = rank == size - 1
    happen = None

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.unused = torch.nn.Linear(8, 40), torch.nn.Linear(40, 3), torch.nn.Linear(5, 5)

        def forward(self, x):
            x = self.a(x).relu()
            x.register_hook(lambda _: happen() if happen else None)  # in the middle of backward
            return self.b(x)

    def trained(make):
        def prepare(group):
            torch.manual_seed(0)
            model = Model()
            if make is not unused:
                del model.unused
            step = make(model, group)
            return step if callable(step) and not isinstance(step, torch.nn.Module) else lambda: once(step)
        return prepare

    def once(model):
        model(torch.ones(4, 8) * (rank + 1)).square().mean().backward()

    def buckets(model, group, **options):
        return DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.0001, **options)

    def unused(model, group):
        return buckets(model, group, find_unused_parameters=True)

    def accumulated(model, group):
        model = buckets(model, group, gradient_as_bucket_view=True)
        def step():
            with model.no_sync():
                model.module(torch.ones(4, 8)).square().mean().backward()
            once(model)
        return step

    def hooked(hook):
        def make(model, group):
            model = buckets(model, group)
            model.register_comm_hook(group, hook)
            return model
        return make

    def compressed(model, group):
        state = states[group] = onehop.torch.CompressionState(group)
        model = buckets(model, group)
        model.register_comm_hook(state, onehop.torch.compression_hook)
        return model

    def sharded(model, group):
        mesh = dist.DeviceMesh.from_group(group, "cpu")
        for layer in (model.a, model.b):
            fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    def plain(run):
        def prepare(group):
            def step():
                if happen:
                    happen()
                run(group)
            return step
        return prepare

    def waited(group):
        works = [dist.all_reduce(torch.ones(5), group=group, async_op=True) for _ in range(3)]
        for work in works:
            work.wait()

    def coalesced(group):
        outputs = [torch.empty(size * 2) for _ in range(3)]
        work = group.all_gather_single_coalesced(outputs, [torch.ones(2) for _ in range(3)])
        work.wait()

    states = {}
    variants = {
        "buckets": trained(buckets),
        "one_bucket": trained(lambda model, group: DistributedDataParallel(model, process_group=group)),
        "unused": trained(unused),
        "static_graph": trained(lambda model, group: buckets(model, group, static_graph=True)),
        "no_sync": trained(accumulated),
        "hook": trained(hooked(default_hooks.allreduce_hook)),
        "fp16_hook": trained(hooked(default_hooks.fp16_compress_hook)),
        "compressed": trained(compressed),
        "fsdp": trained(sharded),
        "functional": plain(lambda group: functional.all_reduce(torch.ones(5), "sum", group).sum().item()),
        "functional_coalesced": plain(lambda group: [
            one.sum().item() for one in functional.reduce_scatter_tensor_coalesced(
                [torch.ones(size)] * 2, "sum", [0, 0], group)]),
        "wait": plain(waited),
        "coalesced": plain(coalesced),
        "future": plain(lambda group: dist.all_reduce(
            torch.ones(5), group=group, async_op=True).get_future().then(lambda one: one.value()).wait()),
    }
    groups = {name: dist.new_group() for name in variants}
    steps = {name: prepare(groups[name]) for name, prepare in variants.items()}
    for _ in range(2):
        for step in steps.values():
            step()
    dist.barrier()
    print(f"rank {rank} trains", flush=True)

    def disturb(name):
        group, state = groups[name], states.get(groups[name])
        def killed():
            os.kill(os.getpid(), signal.SIGKILL)
        def late():
            while len(list(folder.glob("gone-*"))) < size - 1:
                time.sleep(0.05)
        def mismatched():
            global happen
            happen = None
            if state is not None:
                state.codec = "q4"
            else:
                dist.all_reduce(torch.zeros(7), group=group, async_op=True)
        return {"killed": killed, "late": late, "mismatched": mismatched}[what]

    if what == "late" and not victim:
        for name, group in groups.items():
            group.set_timeout(timedelta(seconds=0.5))
            if group in states:
                states[group].group.timeout = 0.5
    for name in [first, *(name for name in variants if name != first)]:
        happen = disturb(name) if victim else None
        try:
            steps[name]()
        except RuntimeError as error:
            last, words = error, str(error).split(chr(10))[0]
            states_error = states[groups[name]].error if groups[name] in states else groups[name].error
            lost = getattr(states_error, "rank", None)
            print(f"{rank}|{name}|{type(error).__name__}|{getattr(error, 'rank', None)}|{lost}|{words}", flush=True)
        else:
            print(f"{rank}|{name}|nothing", flush=True)
            last = None
        if what == "mismatched" or (victim and what == "late"):
            break
    (folder / f"gone-{rank}").touch()
    raise last
"""

VARIANTS = 14


def run(ranks: Ranks, size: int, what: str, first: str) -> list[tuple[int, list[list[str]], str]]:
    """Run the program: the exit code, the lines and the errors of each rank."""
    arguments = [(rank, size, what, first, ranks.folder) for rank in range(size)]
    results = []
    for rank, (code, output, errors) in enumerate(outcomes(ranks, ranks.script(PROGRAM), arguments)):
        assert f"rank {rank} trains" in output, errors
        results.append((code, [line.split("|", 5) for line in output.splitlines() if "|" in line], errors))
    return results


@pytest.mark.parametrize(("size", "first"), [(3, "buckets"), (2, "compressed"), (3, "fsdp")])
def test_every_survivor_of_a_killed_rank_says_who_is_lost(ranks: Ranks, size: int, first: str) -> None:
    *survivors, victim = run(ranks, size, "killed", first)
    assert victim[0] == -signal.SIGKILL
    for rank, (code, lines, errors) in enumerate(survivors):
        assert code == 1, (code, lines, errors)
        assert len(lines) == VARIANTS, lines
        assert {line[0] for line in lines} == {str(rank)}
        for line in lines:
            assert f"rank {size - 1} (process" in line[5], line
            assert "has ended" in line[5], line
            assert (line[2], line[3]) in (("RuntimeError", "None"), ("PeerLost", str(size - 1))), line
            assert line[4] == str(size - 1), line
        typed = {line[1] for line in lines if line[2] == "PeerLost"}
        assert typed >= {"fsdp", "functional", "functional_coalesced", "wait", "coalesced"}
        assert "has ended" in errors


def test_a_time_limit_is_an_error_on_every_rank_that_waited(ranks: Ranks) -> None:
    *survivors, victim = run(ranks, 3, "late", "buckets")
    for code, lines, errors in survivors:
        assert code == 1, (code, lines, errors)
        assert len(lines) == VARIANTS, lines
        for line in lines:
            assert line[2] in ("RuntimeError", "Timeout"), line
            assert "waited" in line[5], line
    # When it goes on the others have gone.
    code, lines, errors = victim
    assert code == 1, (code, lines, errors)
    assert [line[1] for line in lines] == ["buckets"], lines
    assert "PeerLost" in lines[0][5], lines


@pytest.mark.parametrize(("size", "first"), [(3, "buckets"), (2, "compressed")])
def test_a_mismatch_in_the_middle_of_backward_is_an_error_on_every_rank(
    ranks: Ranks, size: int, first: str
) -> None:
    for code, lines, errors in run(ranks, size, "mismatched", first):
        assert code == 1, (code, lines, errors)
        ((_, name, kind, _, _, words),) = lines
        assert (name, kind) == (first, "RuntimeError")
        assert "Mismatch" in words
        assert f"rank {size - 1}" in words


LEFT_ALONE = """
    import sys, time
    from pathlib import Path
    import torch
    import torch.distributed as dist
    import onehop.torch

    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group("onehop", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    dist.barrier()
    if rank == 0:
        dist.all_reduce(torch.ones(3), async_op=True)
        raise SystemExit(5)
    while not (folder / "gone").exists():
        time.sleep(0.05)
    for _ in range(2):  # the other rank's part of the first has come
        dist.all_reduce(torch.ones(3))
"""


def test_a_rank_that_ends_while_its_thread_waits_ends_by_itself(ranks: Ranks) -> None:
    """The thread polls for signals, which is impossible after the interpreter has ended."""
    arguments = [(rank, ranks.folder) for rank in (0, 1)]
    with started(ranks, ranks.script(LEFT_ALONE), arguments) as (first, second):
        _, errors = first.communicate(timeout=PATIENCE)
        assert first.returncode == 5, errors
        (ranks.folder / "gone").touch()
        _, errors = second.communicate(timeout=PATIENCE)
        assert second.returncode == 1, errors
        assert "PeerLost: rank 0 (process" in errors


COALESCED = """
    other = rank == 1

    def sources(*lengths):
        return [torch.full((length,), float(rank + 1)) for length in lengths]

    # The first fails, the last does not; and two fail, each for a reason of its own.
    for lengths, words in (((3 + other, 5, 7), ["24", "32"]), ((3 + other, 5, 7 + other), ["24", "32", "56", "64"])):
        for name in ("all_gather", "reduce_scatter", "allgather"):
            ins, outs = sources(*lengths), [torch.zeros(size * n) for n in lengths]
            if name == "all_gather":
                work = group.all_gather_single_coalesced(outs, ins)
            elif name == "reduce_scatter":
                work = group.reduce_scatter_single_coalesced(ins, outs)
            else:
                work = group.allgather_coalesced([[one.clone() for one in ins] for _ in range(size)], ins)
            error = raised(onehop.Mismatch, work.wait)
            assert not work.is_success() and work.is_completed() and work.exception() is not None
            assert "Mismatch" in raised(RuntimeError, lambda: work.get_future().wait())
            if name != "reduce_scatter":
                assert all(word in error for word in words), error
            assert ("operation 3 of 3 failed, too: Mismatch" in error) == (len(words) == 4), error
            if name == "all_gather":  # what fitted was done
                assert outs[1].tolist() == [float(r + 1) for r in range(size) for _ in range(5)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for n in (4 + other, 6):
            dist.all_gather_into_tensor(torch.zeros(size * n), torch.ones(n))
    raised(onehop.Mismatch, manager.wait)

    # Nothing is nothing.
    for work in (
        group.all_gather_single_coalesced([], []),
        group.reduce_scatter_single_coalesced([], []),
        group.allgather_coalesced([[] for _ in range(size)], []),
        group.allreduce_coalesced([]),
    ):
        assert work.wait() and work.is_success() and work.result() == []
    total = torch.ones(5)
    dist.all_reduce(total)
    assert (total == size).all()
    dist.destroy_process_group()
    print("all carried", flush=True)
"""


def test_a_coalesced_operation_carries_the_failures_of_all_its_parts(ranks: Ranks) -> None:
    launch(ranks, 2, START + COALESCED, "all carried")
