"""The threads of asynchronous operations: priority, waits, one at a time."""

import threading

import pytest

from ranks import Ranks
from torch_program import START, WITHOUT_TORCH, launch

pytest.importorskip("torch", reason=WITHOUT_TORCH)

PROGRAM = (
    START
    + """
    def nices():
        # Of all threads of this process but the main one, by name.
        found = {}
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                found[thread.name] = os.getpriority(os.PRIO_PROCESS, thread.native_id)
        return found

    def of(words):
        return [nice for name, nice in nices().items() if words in name]

    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert group.niceness == 0
    group.niceness = 3  # before the thread begins
    dist.all_reduce(torch.ones(5), async_op=True).wait()
    assert of("process group") == [own + 3], nices()
    group.niceness = 7  # a thread that runs
    assert of("process group") == [own + 7] and group.niceness == 7
    work = dist.isend(torch.ones(2), 1 - rank)
    dist.recv(torch.ones(2), 1 - rank)
    work.wait()
    assert of("onehop to") == [own + 7], nices()
    group.niceness = 19
    assert of("onehop to") == of("process group") == [min(own + 19, 19)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own  # the process itself stays as it is
    for wrong in (-1, 20, 1.5):
        assert "from 0 to 19" in raised(onehop.BadInput, lambda: setattr(group, "niceness", wrong))
    if os.geteuid() == 0 and rank == 0:  # without the right to raise a priority
        os.setuid(65534)
    if os.geteuid() != 0:
        assert "found 4, less than before" in raised(onehop.BadInput, lambda: setattr(group, "niceness", 4))
        assert group.niceness == 19

    # Threads sleep early where computing needs all processors: one computing thread a rank here.
    assert group._collective.sleeps_early is (2 >= (os.cpu_count() or 1))
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, async_op=True).wait()
    assert tensor.tolist() == [1.0] * 3
    print("nice", flush=True)
"""
)


def test_niceness_of_the_threads(ranks: Ranks) -> None:
    launch(ranks, 2, PROGRAM, "nice")


@pytest.mark.parametrize("wait", [True, False])
def test_one_thread_at_a_time_is_in_the_collectives(wait: bool) -> None:
    from onehop.torch.work_queue import WorkQueue

    thread = WorkQueue("test")
    inside, second = threading.Event(), threading.Event()
    overlapped, order = [], []

    def long_job() -> None:
        inside.set()
        overlapped.append(second.wait(0.5))
        order.append("first")

    def other_job() -> None:
        second.set()
        order.append("second")

    caller = threading.Thread(target=lambda: thread.submit(long_job, True).wait())
    caller.start()
    assert inside.wait(20)
    thread.submit(other_job, wait).wait()
    caller.join()
    thread.close()
    assert overlapped == [False]
    assert order == ["first", "second"]
