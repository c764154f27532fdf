"""Sums of arrays on devices, over ranks; QuickReduce's interface."""

from pathlib import Path

import pytest

from cards import environment
from ranks import Ranks

PROGRAM = """
    import logging, sys
    import numpy as np, onehop
    from onehop import device, quickreduce

    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    where = "DEVICE"
    group = onehop.Group.world()
    for dtype in ("float32", "float16"):
        for count in (1, 5000, 100_001):
            numbers = [np.arange(count) % (11 + rank) for rank in range(group.size)]
            held = device.array(numbers[group.rank], where, dtype)
            result = onehop.allreduce(group, held)
            device.wait(group, result)
            assert np.array_equal(result.numpy(), sum(numbers).astype(dtype)), (dtype, count)
    assert device.explain(group, held)["path"] == "kernel"
    assert device.explain(group, held, "max")["reason"] == "kernels compute sums, not max"
    for _ in range(2):
        most = onehop.allreduce(group, held, "max")
    assert np.array_equal(most.numpy(), np.maximum(*numbers).astype("float16"))
    assert np.array_equal(held.numpy(), numbers[group.rank].astype("float16"))
    near = onehop.allreduce(group, device.array(np.ones(3000, np.float32) * 3, where), codec="q8")
    assert np.array_equal(near.numpy(), np.full(3000, near.numpy()[0])) and abs(near.numpy()[0] - 6) < 0.1

    quickreduce.init(group.size, group.rank)
    handle = np.frombuffer(quickreduce.get_comm_handle(), np.uint8)
    quickreduce.set_comm_handles([bytes(one) for one in onehop.allgather(group, handle).reshape(group.size, -1)])
    assert quickreduce.should_allreduce(held, 4)
    for profile in range(1, 7):
        result = quickreduce.allreduce(profile, device.array(np.ones(1024, np.float16), where))
        device.wait(quickreduce._current[0].group, result)
        assert abs(result.numpy() - group.size).max() < 0.2, profile
    group.barrier()
    print("right")
"""


@pytest.mark.parametrize("kind", ["processor", "cuda"])
def test_sums_over_ranks(kind: str, ranks: Ranks, tmp_path: Path) -> None:
    if kind == "cuda":
        ranks.environment = {**environment(kind, tmp_path), **ranks.environment}
    run = ranks.launch(2, PROGRAM.replace("DEVICE", kind))
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("right") == 2
    # Each rank says once that an operation has no kernel.
    assert run.stdout.count("go through the processor's memory: kernels compute sums, not max") == 2


UNREACHABLE = """
    import logging, os, sys
    import numpy as np, onehop
    from onehop import device

    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    group = onehop.Group.world()
    if group.rank == 1:
        os.environ["STANDIN_FAIL"] = "cuIpcOpenMemHandle_v2:0"
    for count in (10, 20):
        total = onehop.allreduce(group, device.array(np.full(count, 1.0 + group.rank, np.float32), "cuda"))
        assert np.array_equal(total.numpy(), np.full(count, 3, np.float32))
    schedule = onehop.permute_bits(4, local=3, pairs=[(0, 3)], dtype="float64")
    plan = onehop.Plan(schedule, group, [device.array(np.arange(8.0) + 8 * group.rank, "cuda")])
    assert "rank 1 cannot reach the memory of all others" in plan.explain()["reason"], plan.explain()
    plan.run()
    plan.wait()
    group.barrier()
    print("right")
"""


def test_cards_that_do_not_reach_each_other_go_through_memory_and_say_so_once(
    ranks: Ranks, tmp_path: Path
) -> None:
    ranks.environment = {**environment("cuda", tmp_path), **ranks.environment}
    run = ranks.launch(2, UNREACHABLE)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("right") == 2
    assert run.stdout.count("go through the processor's memory: rank 1 cannot reach the memory of") == 2
