"""Memory that ranks need for staging; ranks of one machine do not allocate the same memory twice."""

from pathlib import Path

import numpy as np
import pytest

import onehop
from onehop import Group, collectives
from ranks import Ranks
from threads import run_threads, same_on

MIB = 1 << 20


def shared_bytes() -> int:
    """Bytes behind all memory of this process that other ranks can reach, as the system counts them."""
    total = 0
    for fd in Path("/proc/self/fd").iterdir():
        try:
            if "memfd:onehop" in str(fd.readlink()):
                total += fd.stat().st_blocks * 512
        except OSError:
            continue
    return total


@pytest.mark.parametrize("number", [2, 8, 32])
def test_staging_follows_what_is_used(number: int) -> None:
    before = shared_bytes()
    seen = {}

    def rank(group: Group) -> tuple[int, int]:
        paths = collectives.plans(group).collectives
        few, many = np.full(20, 1.0, np.float32), np.full(1 << 18, 1.0, np.float32)
        assert (onehop.allreduce(group, few) == number).all()
        group.barrier()
        if group.rank == 0:
            seen["80 bytes"] = shared_bytes() - before
        group.barrier()
        short = paths.staging_bytes
        assert (onehop.allreduce(group, many) == number).all()
        group.barrier()
        if group.rank == 0:
            seen["1 MiB"] = shared_bytes() - before
        group.barrier()
        return short, paths.staging_bytes

    said = run_threads(number, rank)
    # A page of the group's own and the released words of the long paths come on top.
    for name, index, most in (("80 bytes", 0, 4096 * number), ("1 MiB", 1, 6.5 * MIB)):
        each = [staging[index] for staging in said]
        assert max(each) <= most, (name, each)
        assert seen[name] <= sum(each) + number * 3 * 4096, name
    assert seen["80 bytes"] < MIB / 8 * number


def test_staging_of_few_ranks_is_as_large_as_is_fast() -> None:
    def rank(group: Group) -> tuple[int, int]:
        onehop.allreduce(group, np.zeros(MIB, np.float32))
        return collectives.plans(group).collectives.staging_bytes // MIB

    assert run_threads(2, rank) == [2] * 2
    assert run_threads(4, rank) == [7] * 4  # one of them is the area that the other ranks read


def test_ranks_that_fit_one_by_one_but_not_together_all_hear_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(40 * MIB))

    def rank(group: Group) -> str:
        peers = [rank for rank in range(group.size) if rank != group.rank]
        with pytest.raises(onehop.Error) as caught:
            group.channels(send=dict.fromkeys(peers, 4 << 20), receive=dict.fromkeys(peers, 4 << 20))
        group.channels(send=dict.fromkeys(peers, 1 << 10), receive=dict.fromkeys(peers, 1 << 10))
        return str(caught.value)

    text = same_on(3, rank)
    # Two slots for each of two peers: 16 MiB per rank, and a little more.
    assert "needs 16 MiB, all 3 ranks of its machine 48 MiB together, and 40 MiB were available" in text, text


def test_arrays_of_several_ranks_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(40 * MIB))

    def rank(group: Group) -> str:
        said, array = "", None
        try:
            array = group.empty(30 << 20, "uint8")
        except onehop.Error as error:
            said = str(error)
        group.barrier()
        del array
        group.barrier()
        if group.rank == 1:
            assert group.empty(30 << 20, "uint8").size == 30 * MIB
        return said

    refused = [text for text in run_threads(3, rank) if text]
    assert len(refused) >= 2
    for text in refused:
        assert "30 MiB requested on rank" in text
        assert "MiB including pending requests of other ranks of this machine, and 40 MiB available" in text


def test_rank_without_memory_for_staging_is_named_to_all(ranks: Ranks) -> None:
    source = """
        import os, numpy as np, onehop
        group = onehop.Group.world()
        assert (onehop.allreduce(group, np.ones(20)) == group.size).all()
        if group.rank == 1:
            os.environ["ONEHOP_TEST_FREE_MEMORY"] = "1000"
        try:
            onehop.allreduce(group, np.ones(1 << 18))
        except onehop.Error as error:
            print(error)
        group.barrier()
    """
    done = ranks.launch(3, source)
    said = sorted(done.stdout.splitlines())
    assert done.returncode == 0, done.stderr
    assert [line[:4] for line in said] == ["[0] ", "[1] ", "[2] "]
    assert "not enough memory for the slots" in said[1]
    for line in (said[0], said[2]):
        assert "rank 1 has not enough memory for the slots of its paths" in line


def test_available_memory_can_be_pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(5 * MIB))
    with pytest.raises(onehop.Error, match="6 MiB requested"):
        Group.alone().empty(6 * MIB, "uint8")
