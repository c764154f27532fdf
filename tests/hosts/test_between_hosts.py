"""Every kind of operation between hosts, two ranks on each: results against NumPy or a single rank, and bytes sent."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hosts_runner import OnHosts
from onehop import _core
from ranks import completed


def test_who_shares_memory(on_hosts: OnHosts) -> None:
    text = on_hosts.check(
        """
        import socket
        from onehop import Group
        group = Group.world()
        print(f"rank {group.rank} on {socket.gethostname()}: {group.local_ranks}", flush=True)
        """
    )
    assert sorted(line for line in text.splitlines() if line.startswith("rank")) == [
        "rank 0 on onehop0: [0, 1]",
        "rank 1 on onehop0: [0, 1]",
        "rank 2 on onehop1: [2, 3]",
        "rank 3 on onehop1: [2, 3]",
    ]


def test_a_rank_that_makes_no_group(on_hosts: OnHosts) -> None:
    """The time limit holds for the steps that go through MPI, too, from the first one on."""
    text = on_hosts.check(
        """
        import os, time
        rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        os.environ["ONEHOP_TIMEOUT"] = "2"
        if rank == 1:
            os.environ["ONEHOP_NETWORK"] = "token ring"
        from onehop import BadInput, Group, Timeout
        begin = time.monotonic()
        try:
            Group.world()
        except (BadInput, Timeout) as error:
            os.write(1, f"rank {rank}: {type(error).__name__} {time.monotonic() - begin < 10}\\n".encode())
        """
    )
    assert sorted(line for line in text.splitlines() if line.startswith("rank")) == [
        "rank 0: Timeout True",
        "rank 1: BadInput True",
        "rank 2: Timeout True",
        "rank 3: Timeout True",
    ]


def test_another_network_on_one_rank(on_hosts: OnHosts) -> None:
    text = on_hosts.check(
        """
        import os
        rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        os.environ["ONEHOP_NETWORK"] = "ucx" if rank == 2 else "mpi"
        from onehop import Group, Mismatch
        try:
            Group.world()
        except Mismatch as error:
            os.write(1, f"rank {rank}: {error}\\n".encode())
        """
    )
    lines = sorted(line for line in text.splitlines() if line.startswith("rank"))
    assert [line[:6] for line in lines] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    for line in lines:
        assert "ONEHOP_NETWORK is 'mpi' on rank 0, but 'ucx' on rank 2 on onehop1" in line


def test_halo(on_hosts: OnHosts) -> None:
    on_hosts.check(
        """
        import numpy as np
        from onehop import Group, Plan, halo, halo_block
        group = Group.world()
        for extents, width in (((8, 12), 1), ((64, 96, 48), 2)):
            grid = (2, 2, 1)[: len(extents)]
            layout = {"extents": list(extents), "grid": list(grid), "width": width, "periodic": [True] * len(extents)}
            whole = np.arange(np.prod(extents), dtype=float).reshape(extents)
            block = halo_block(**layout, rank=group.rank)
            array = np.zeros(block.shape)
            mine = np.unravel_index(group.rank, grid)
            begin = [c * e // g for c, e, g in zip(mine, extents, grid)]
            length = [e // g for e, g in zip(extents, grid)]
            inside = tuple(slice(width, width + n) for n in length)
            plan = Plan(halo(**layout), group, [array])
            for step in range(3):
                array[:] = 0
                array[inside] = (whole + step)[tuple(slice(b, b + n) for b, n in zip(begin, length))]
                plan.run()
                for axis in range(len(extents)):
                    for side in (0, 1):
                        ghost = list(inside)
                        ghost[axis] = slice(0, width) if side == 0 else slice(width + length[axis], None)
                        at = begin[axis] - width if side == 0 else begin[axis] + length[axis]
                        where = [np.arange(b, b + n) for b, n in zip(begin, length)]
                        where[axis] = np.arange(at, at + width) % extents[axis]
                        assert np.array_equal(array[tuple(ghost)], (whole + step)[np.ix_(*where)]), (axis, side)
        """
    )


def test_circuit(on_hosts: OnHosts) -> None:
    on_hosts.check(
        """
        import numpy as np
        from onehop import Group
        from onehop.quantum import Circuit, simulate
        group, qubits = Group.world(), 10
        circuit, random = Circuit(qubits), np.random.default_rng(5)
        for layer in range(6):
            for qubit in range(qubits):
                circuit.h(qubit)
                circuit.rz(random.uniform(0, 6), qubit)
            for qubit in random.permutation(qubits - 1):
                circuit.cx(int(qubit), int(qubit) + 1)
        words = ["Z0 Z9", "X8 Y9", "Y3"]
        split = simulate(circuit, group, shots=500, seed=3, observables=words)
        alone = simulate(circuit, shots=500, seed=3, observables=words)
        assert split.ranks == 4 and split.bytes_between_hosts > 0
        assert np.allclose(split.expectations, alone.expectations, atol=1e-12)
        assert split.counts == alone.counts
        """
    )


def test_lattice_solve(on_hosts: OnHosts) -> None:
    on_hosts.check(
        """
        import numpy as np
        from onehop import Group
        from onehop.lattice import Staggered
        from gauge_fields import random_gauge
        from staggered_reference import dslash_by_numpy, some_field
        group, extents, mass = Group.world(), (4, 4, 4, 8), 0.2
        gauge = random_gauge(group, extents)
        whole = gauge.gather()
        mine = gauge.geometry.block_slices(group.rank)
        source = some_field(extents, 6)
        result = Staggered(gauge).solve(np.ascontiguousarray(source[mine]), mass, tolerance=1e-11)
        solution = np.empty_like(source)
        for rank, part in enumerate(group.allgather(result.solution.tobytes())):
            block = np.frombuffer(part, complex).reshape(result.solution.shape)
            solution[gauge.geometry.block_slices(rank)] = block
        rest = source - 2 * mass * solution - dslash_by_numpy(whole, solution, True)
        assert result.converged
        assert np.linalg.norm(rest) < 1.01e-11 * np.linalg.norm(source)
        """
    )


def _bench(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    """The rows of a benchmark on two emulated hosts."""
    out = tmp_path / "out.json"
    line = [sys.executable, "-m", "onehop", "bench", *words, "--hosts", "2", "--quick", "--json", str(out)]
    completed(line, timeout=100, status=0)
    return json.loads(out.read_text())["rows"]


@pytest.mark.usefixtures("hosts")
def test_bench_command(tmp_path: Path) -> None:
    """The rows of `onehop bench --hosts`, and the bytes on the wire."""
    words = ("--per-host", "2", "--links", "2", "--blocks", "64x32x32", "--rate", "1gbit")
    for row in _bench(tmp_path, "halo", *words):
        assert (row["hosts"], row["ranks"]) == (2, 4)
        # In a chain of four ranks, two faces of each host cross.
        faces = 2 * 8 * (64 * 32 if "last" in row["case"] else 32 * 32)
        assert row["minimum_bytes_per_host"] == faces
        assert faces < row["wire_bytes_per_host"] < 1.2 * faces
        assert row["ratio"] is not None


@pytest.mark.usefixtures("hosts")
@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
def test_bench_of_ucx_beside_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates over UCX follow those of MPI, whose long messages need their sender until they have arrived."""
    monkeypatch.setenv("ONEHOP_NETWORK", "ucx")
    monkeypatch.setenv("ONEHOP_TIMEOUT", "10")
    rows = _bench(tmp_path, "pingpong", "--sizes", "64K,256K,1M")
    assert [row["bytes"] for row in rows] == [1 << 16, 1 << 18, 1 << 20]
    assert all("persistent" in row["peers"] for row in rows), rows


@pytest.mark.usefixtures("hosts")
def test_allreduce_sends_each_number_once_a_host(tmp_path: Path) -> None:
    for row in _bench(tmp_path, "allreduce", "--per-host", "2", "--sizes", "256K,1M"):
        assert row["minimum_bytes_per_host"] == pytest.approx(row["bytes"], rel=1e-4)
        # Headers of the network and of MPI take some percent.
        assert row["bytes"] < row["wire_bytes_per_host"] < 1.1 * row["bytes"]


@pytest.mark.alone
@pytest.mark.parametrize("transport", ["mpi", "ucx"])
def test_messages_travel_while_ranks_compute(on_hosts: OnHosts, transport: str) -> None:
    """Where a program calls `test` between its steps, little is left to wait for at the end."""
    if transport == "ucx" and not _core.ucx_library()["path"]:
        pytest.skip("no UCX library was found")
    on_hosts.check(
        f"""
        import time
        import numpy as np
        from onehop import Group, Plan, halo, halo_block
        group = Group.world()
        layout = {{"extents": [16, 1 << 17], "grid": [2, 1], "width": [1, 0], "periodic": [True, False]}}
        array = np.zeros(halo_block(**layout, rank=group.rank).shape)
        plan = Plan(halo(**layout), group, [array], transport="{transport}")
        def seconds(run):
            group.barrier()
            begin = time.perf_counter()
            run()
            return time.perf_counter() - begin
        alone = sorted(seconds(plan.run) for _ in range(7))[3]
        left = []
        for number in range(7):
            array[:] = -1
            array[1:-1] = group.rank + 10 * number
            group.barrier()
            end = time.perf_counter() + 2 * alone
            plan.start()
            while time.perf_counter() < end:
                time.sleep(5e-4)  # stands for computing
                plan.test()
            begin = time.perf_counter()
            plan.finish()
            left.append((time.perf_counter() - begin) / alone)
            assert (array[0] == 1 - group.rank + 10 * number).all()
            assert (array[-1] == 1 - group.rank + 10 * number).all()
        assert sorted(left)[3] < 0.2, (alone, left)
        """,
        per_host=1,
    )
