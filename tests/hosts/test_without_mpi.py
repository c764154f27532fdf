"""Ranks on different hosts that connect through a key-value store, with UCX as transport and without MPI."""

import time
from pathlib import Path

import pytest

from hosts_runner import run_without_mpi
from onehop import _core
from onehop_bench.hosts import EmulatedHosts

pytestmark = pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")


def test_messages_sums_and_parts(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """A halo, an all-reduce by hosts and a split, against NumPy."""
    results = run_without_mpi(
        own_hosts,
        tmp_path,
        """
        from onehop.collectives import allreduce
        assert group.local_ranks == [rank // 2 * 2, rank // 2 * 2 + 1], group.local_ranks
        length, width = 100_000, 3
        layout = {"extents": [4 * length], "grid": [4], "width": width, "periodic": [True]}
        array = np.zeros(halo_block(**layout, rank=rank).shape)
        whole = np.arange(4 * length, dtype=float)
        plan = Plan(halo(**layout), group, [array])
        for step in range(5):
            array[:] = 0
            array[width:-width] = whole[rank * length : (rank + 1) * length] + step
            plan.run()
            places = np.arange(rank * length - width, (rank + 1) * length + width) % (4 * length)
            assert np.array_equal(array, whole[places] + step)
        carriers = {channel["peer"]: channel["carrier"] for channel in plan.explain()["channels"]}
        for peer, carrier in carriers.items():
            expected = "shared_memory" if peer // 2 == rank // 2 else "ucx: active messages over tcp/"
            assert carrier.startswith(expected), (peer, carrier)
        for length in (10, 5000, 400_000):
            numbers = [np.random.default_rng(r).standard_normal(length).astype(np.float32) for r in range(4)]
            a, b, c, d = numbers
            assert np.array_equal(allreduce(group, numbers[rank].copy(), algorithm="by_host"), (a + b) + (c + d))
        across = group.split(rank % 2)
        assert across.size == 2 and across.local_ranks == [across.rank]
        total = allreduce(across, np.full(3, rank, np.float32))
        assert (total == 2 * (rank % 2) + 2).all()
        group.barrier()
        """,
    )
    assert [code for code, _ in results] == [0] * 4, results


@pytest.mark.parametrize("own_hosts", [{"links": 3}], indirect=True, ids=["3 links"])
def test_assigned_rails_carry_their_bytes(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """Messages, and pieces cut anywhere, leave through the interfaces of the plan's `rails`, by the counters."""
    results = run_without_mpi(
        own_hosts,
        tmp_path,
        """
        from onehop import Error, permute_bits
        from onehop.machine.rails import RailAssignment, schedule_rails
        hosts, seen = [0, 0, 1, 1], []
        def sent():
            return np.array([int(open(f"/sys/class/net/e{k}/statistics/tx_bytes").read()) for k in range(3)])
        def carried(plan, run):
            group.barrier()
            before = sent()
            group.barrier()
            for step in range(3):
                run(plan, step)
            group.barrier()
            return sent() - before
        def check(schedule, rails, array, run, **more):
            plan = Plan(schedule, group, [array], rails=rails, **more)
            senders = [c for c in plan.explain()["channels"] if c["direction"] == "send"]
            assert {(c["peer"] // 2, c["rails"], c["rails_assigned"]) for c in senders} <= {
                (rank // 2, 1, False), (1 - rank // 2, 3, True)}, senders
            assigned = np.zeros(3)
            for one in (one for pieces in rails for one in pieces if one.from_ // 2 == rank // 2):
                assigned[one.rail] += 3 * one.bytes
            # Headers take 1 %, the barriers and signs of life a few kilobytes.
            found = carried(plan, run)
            assert (found >= assigned).all() and (found < 1.04 * assigned + 20_000).all(), (found, assigned)
            seen.append(tuple(found > 50_000))
        layout = {"extents": [96, 200, 500], "grid": [2, 2, 1], "width": [1, 2, 0], "periodic": [True] * 3}
        faces = halo(**layout)
        array = np.zeros(halo_block(**layout, rank=rank).shape)
        def exchange(plan, step):
            array[:] = rank + 10 * step
            plan.run()
            assert (array[0, 2:-2] == (rank + 2) % 4 + 10 * step).all()
            assert (array[1:-1, :2] == (rank ^ 1) + 10 * step).all()
        random = np.random.default_rng(5)
        def pieces_of(one):
            at = sorted({0, one.bytes, *map(int, random.integers(0, one.bytes, 6))})
            return [RailAssignment(one.from_, one.to, int(random.integers(3)), a, b - a) for a, b in zip(at, at[1:])]
        whole = schedule_rails(faces, hosts, rails=3)
        check(faces, whole, array, exchange)
        check(faces, schedule_rails(faces, hosts, rails=3, cut=True), array, exchange)
        pieces = [[piece for one in whole[0] for piece in pieces_of(one)][::-1]]
        check(faces, pieces, array, exchange, slots=5, slot_bytes=70_000)
        assert seen == [(True, True, False), (True, True, True), (True, True, True)], seen
        found = carried(Plan(faces, group, [array]), exchange)  # which makes up for nothing
        assert (abs(found / found.sum() - 1 / 3) < 0.05).all(), found
        # Bits of the rank number, of which one tells the hosts apart, change places with bits inside a rank.
        bits = permute_bits(16, local=14, pairs=[(3, 15), (0, 14)], element_bytes=8)
        state = np.zeros(1 << 14)
        def permute(plan, step):
            state[:] = np.arange(rank << 14, rank + 1 << 14) + step
            plan.run()
            index = np.arange(rank << 14, rank + 1 << 14)
            swap = lambda x, a, b: x ^ ((x >> a ^ x >> b) & 1) * (1 << a | 1 << b)
            assert (state == swap(swap(index, 3, 15), 0, 14) + step).all()
        check(bits, schedule_rails(bits, hosts, rails=3, cut=True), state, permute)
        try:
            Plan(faces, group, [array], rails=[[RailAssignment(0, 2, 3, 0, whole[0][0].bytes)]])
            raise SystemExit("rail 3 of three was taken")
        except Error as error:
            assert "expected rails from 0 to 2" in str(error) and "rail 3" in str(error), error
        """,
    )
    assert [code for code, _ in results] == [0] * 4, results


def test_a_host_that_vanishes(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """The ranks of the other host learn it, each with the number of a rank of that host, and end."""
    ready = tmp_path / "store/ready"

    def kill() -> None:
        end = time.monotonic() + 40
        while not ready.exists() and time.monotonic() < end:
            time.sleep(0.02)
        own_hosts.kill(1)

    results = run_without_mpi(
        own_hosts,
        tmp_path,
        """
        array = np.zeros(halo_block(extents=[400], grid=[4], width=1, periodic=[True], rank=rank).shape)
        plan = Plan(halo(extents=[400], grid=[4], width=1, periodic=[True]), group, [array])
        plan.run()
        group.barrier()
        if rank == 0:
            FileStore(folder).set("ready", b"1")
        try:
            while True:
                plan.run()
        except PeerLost as error:
            assert error.rank in (2, 3), error
            print("lost", error, flush=True)
        """,
        kill,
    )
    for code, text in results[:2]:
        assert code == 0, results
        assert "lost" in text
        assert "on onehop1" in text, text


@pytest.mark.parametrize("own_hosts", [{"count": 3}], indirect=True, ids=["3 hosts"])
def test_late_and_lost_ranks_on_unequal_hosts(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """A rank that is late is a Timeout, and one that dies a PeerLost with its number, in every operation by hosts."""
    results = run_without_mpi(
        own_hosts,
        tmp_path,
        """
        import os, time
        from onehop import Timeout, allgather, allreduce, broadcast, reduce_scatter
        numbers = np.ones(300_000, np.float32)
        steps = {
            "allreduce": lambda on: allreduce(on, numbers, algorithm="by_host"),
            "broadcast": lambda on: broadcast(on, numbers.copy(), root=3),
            "reduce_scatter": lambda on: reduce_scatter(on, numbers),
            "allgather": lambda on: allgather(on, numbers[:50_000]),
        }
        apart = group.split(0 if rank != 1 else -1, rank)  # a rank on each host, which pass a broadcast on
        parts = {name: group.split(0, rank) for name in steps}
        for name, step in steps.items():
            step(parts[name])
        def error_of(step):
            begin = time.monotonic()
            try:
                for _ in range(1000):
                    step()
            except (Timeout, PeerLost) as error:
                return type(error).__name__, getattr(error, "rank", None), time.monotonic() - begin
        parts["allreduce"].timeout = 0.5
        if rank == 2:
            time.sleep(2.5)
        else:
            found = error_of(lambda: steps["allreduce"](parts["allreduce"]))
            assert found[0] == "Timeout", found
        for name in ("broadcast", "reduce_scatter", "allgather"):
            step = steps[name]
            group.barrier()
            for _ in range(3):
                step(parts[name])
        if rank != 1:
            for _ in range(3):
                steps["broadcast"](apart) if apart.size == 4 else broadcast(apart, numbers.copy(), root=2)
        group.barrier()
        if rank == 3:
            os._exit(9)
        found = error_of(lambda: steps["broadcast"](parts["broadcast"]))
        assert found[:2] == ("PeerLost", 3) and found[2] < 5, found
        for name in ("reduce_scatter", "allgather"):
            found = error_of(lambda: steps[name](parts[name]))
            assert found[0] == "PeerLost" and found[2] < 5, (name, found)
        if rank != 1:
            found = error_of(lambda: broadcast(apart, numbers.copy(), root=0))
            assert found[0] == "PeerLost" and found[2] < 5, found
        print("as it should be", flush=True)
        """,
        per_host=(2, 1, 1),
    )
    assert [code for code, _ in results] == [0, 0, 0, 9], results
    assert all("as it should be" in text for _, text in results[:3]), results


def test_survivors_finish_a_circuit(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """A circuit loses a host in the middle and goes on from its checkpoint on the other one, with the same shots."""
    checkpoint, ready = tmp_path / "store/run.h5", tmp_path / "store/ready"

    def kill() -> None:
        end = time.monotonic() + 40
        while not (checkpoint.exists() and ready.exists()) and time.monotonic() < end:
            time.sleep(0.01)
        own_hosts.kill(1)

    results = run_without_mpi(
        own_hosts,
        tmp_path,
        """
        from onehop.quantum import Circuit, simulate
        circuit = Circuit(16, 16)
        angles = np.random.default_rng(1).uniform(0, 3, (700, 16))
        for layer in angles:
            for qubit, angle in enumerate(layer):
                circuit.ry(angle, qubit)
            for qubit in range(15):
                circuit.cx(qubit, qubit + 1)
        circuit.measure(range(16), range(16))
        def run(group, **more):
            return simulate(circuit, group, shots=100, seed=7, search_seconds=0, **more)
        def progress(done, total, *_):
            if rank == 0 and done > total / 8:  # the ranks have exchanged amplitudes
                FileStore(folder).set("ready", b"1")
        try:
            run(group, checkpoint=folder + "/run.h5", every=0.2, progress=progress)
            raise SystemExit("nothing was lost")
        except PeerLost as error:
            group = group.survivors(lost=[error.rank], wait=3)
        assert (group.rank, group.size) == (rank, 2)
        result = run(group, checkpoint=folder + "/run.h5")
        assert result.resumed
        assert result.counts == run(Group.alone()).counts
        print("the same shots", flush=True)
        """,
        kill,
    )
    assert [code for code, _ in results[:2]] == [0, 0], results
    assert all("the same shots" in text for _, text in results[:2]), results
