"""State vectors on several hosts: exchanges stay inside a host where possible."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import brute_force
from onehop import BadInput, _core, quantum
from onehop.cli import main
from onehop.machine import load_machine
from onehop.predict import predict_circuit
from onehop.quantum import generators, plan
from onehop.quantum.io.qasm import parse_qasm
from ranks import Ranks
from threads import run_threads

INDICES = np.linspace(0, 2**24 - 1, 1000).astype(np.uint64)

# Ranks 0 and 1 are on the first host, 2 and 3 on the second.
ON_TWO_HOSTS = """
    import json
    import os
    import sys

    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
    os.environ["ONEHOP_TEST_HOST"] = f"host{rank // 2}"

    import numpy as np

    from onehop import Group, _core, quantum
    from onehop.cli import main
    from onehop.quantum.io.qasm import parse_qasm

    file, folder = sys.argv[1:]
    world = Group.world()
    found = {"ranks_per_host": [_core.ranks_per_host(world)]}
    # Hosts with alternating ranks, with two and one of them, with one rank each.
    orders = {"alternating": [0, 2, 1, 3], "unequal": [0, 1, 2, -1], "single": [0, -1, 1, -1]}
    for order in orders.values():
        part = world.split(0 if order[rank] >= 0 else -1, order[rank])
        numbers = b"" if part is None else str(_core.ranks_per_host(part)).encode()
        found["ranks_per_host"].append(sorted({int(one) for one in world.allgather(numbers) if one}))

    with open(file) as text:
        circuit = parse_qasm(text.read())
    planned = quantum.plan(circuit, 4, ranks_per_host=2)
    placed = _core.circuit_cache_counters()[0]
    result = quantum.simulate(circuit, world)
    found["placed again"] = _core.circuit_cache_counters()[0] - placed
    found["bytes"] = [result.bytes_moved, result.bytes_between_hosts]
    found["planned bytes"] = list(planned.bytes_by_level.values())
    indices = np.linspace(0, 2**24 - 1, 1000).astype(np.uint64)
    amplitudes = result.state.amplitudes(indices)
    # The same circuit where hosts are interleaved: the placement cannot prefer anything, and bytes leave the hosts.
    mixed = world.split(0, orders["alternating"][rank])
    other = quantum.simulate(circuit, mixed)
    found["bytes of alternating hosts"] = [other.bytes_moved, other.bytes_between_hosts]
    found["difference"] = float(abs(other.state.amplitudes(indices) - amplitudes).max())
    del other, mixed, result
    assert main(["run", file, "--shots", "0", "--json", folder + "/run.json"]) == 0
    if rank == 0:
        np.save(folder + "/amplitudes.npy", amplitudes)
        with open(folder + "/found.json", "w") as out:
            json.dump(found, out)
"""


def test_a_qft_on_two_hosts_stays_inside_them(ranks: Ranks, tmp_path: Path) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(24, state=0o12345670).save(str(file), 3)
    done = ranks.mpiexec(4, ranks.script(ON_TWO_HOSTS), str(file), str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["ranks_per_host"] == [2, [0], [0], [1]]
    state_bytes = 16 << 24
    assert found["bytes"] == [state_bytes // 2, 0]
    assert found["planned bytes"] == [state_bytes // 2, 0]
    assert found["placed again"] == 0
    moved, between = found["bytes of alternating hosts"]
    assert moved == state_bytes // 2
    assert between > 0
    assert found["difference"] < 1e-12
    report = json.loads((tmp_path / "run.json").read_text())
    assert report["bytes_by_level"] == {"inside hosts": state_bytes // 2, "between hosts": 0}

    circuit = parse_qasm(file.read_text())
    alone = quantum.simulate(circuit)
    assert alone.bytes_between_hosts == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "amplitudes.npy"), alone.state.amplitudes(INDICES), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_placements_for_hosts_give_the_same_state(seed: int) -> None:
    """Ranks are threads here, which are all on one host; the placement is for two."""
    circuit = brute_force.random_circuit(9, 60, seed, 3)
    expected = brute_force.run(circuit)
    planned = plan(circuit, 4, ranks_per_host=2)
    assert planned.ranks_per_host == 2
    plain = plan(circuit, 4)
    assert plain.bytes_by_level == {"inside hosts": 4 * plain.bytes_per_rank, "between hosts": 0}
    assert sum(planned.bytes_by_level.values()) == 4 * planned.bytes_per_rank == 4 * plain.bytes_per_rank
    inside, between = planned.placement.bytes_by_level([2])
    assert planned.bytes_by_level == {"inside hosts": 4 * inside, "between hosts": 4 * between}
    assert between <= plain.placement.bytes_by_level([2])[1]
    for vector in run_threads(4, lambda group: quantum.simulate(circuit, group).state.vector()):
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-12)


def test_the_cache_tells_hosts_apart() -> None:
    circuit = generators.qft(12)

    def placed(**options: int) -> int:
        before = _core.circuit_cache_counters()[0]
        plan(circuit, 8, **options)
        return _core.circuit_cache_counters()[0] - before

    assert [placed(), placed(ranks_per_host=2), placed(ranks_per_host=4)] == [1, 1, 1]
    assert placed(ranks_per_host=2) == 0
    # These do not change the placement.
    assert placed(ranks_per_host=1) == placed(ranks_per_host=0) == placed(ranks_per_host=16) == 0
    assert (
        plan(circuit, 8, ranks_per_host=2).placement.bytes_by_level([2])[1]
        <= plan(circuit, 8).placement.bytes_by_level([2])[1]
    )


def test_irregular_hosts_have_no_levels() -> None:
    circuit = generators.qft(12)
    assert plan(circuit, 4, ranks_per_node=3).bytes_by_level == {}
    assert plan(circuit, 4, ranks_per_host=0).bytes_by_level == {}
    for wrong in (3, -2):
        with pytest.raises(
            BadInput, match=f"a number of ranks per host that is a power of two, or 0, found {wrong}"
        ):
            plan(circuit, 4, ranks_per_host=wrong)


def plan_of_command(file: Path, *options: str) -> dict:
    out = file.with_suffix(".json")
    assert main(["plan", str(file), *options, "--json", str(out)]) == 0
    return json.loads(out.read_text())


def test_the_command_shows_bytes_by_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(24).save(str(file), 3)
    half = (16 << 24) // 2
    assert plan_of_command(file, "-n", "4")["bytes_by_level"] == {"inside hosts": half, "between hosts": 0}
    capsys.readouterr()
    found = plan_of_command(file, "-n", "4", "--hosts", "2")
    assert found["bytes_by_level"] == {"inside hosts": half, "between hosts": 0}
    printed = capsys.readouterr().out
    assert "bytes inside hosts" in printed
    assert "bytes between hosts" in printed
    assert plan_of_command(file, "-n", "4", "--per-host", "2")["bytes_by_level"] == found["bytes_by_level"]
    assert plan_of_command(file, "-n", "4", "--hosts", "4")["bytes_by_level"] == {
        "inside hosts": 0,
        "between hosts": half,
    }
    noisy = plan_of_command(file, "-n", "4", "--hosts", "2", "--density")
    assert sum(noisy["bytes_by_level"].values()) == 4 * noisy["bytes_per_rank"]
    capsys.readouterr()
    for wrong, words in (
        (["--hosts", "3"], "expected --hosts to be a power of two of at most 4 ranks, found 3"),
        (["--hosts", "8"], "of at most 4 ranks, found 8"),
        (["--hosts", "2", "--per-host", "2"], "leave one of them out"),
    ):
        assert main(["plan", str(file), "-n", "4", *wrong]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def test_levels_of_a_machine_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for circuit in (generators.qft(12), generators.random_circuit(12, depth=12)):
        planned = plan(circuit, 16, ranks_per_host=4).bytes_by_level
        predicted = predict_circuit(circuit, "perlmutter", 16)
        assert predicted.bytes_by_level == {
            "node": planned["inside hosts"],
            "system": planned["between hosts"],
        }

    file = tmp_path / "qft.qasm"
    generators.qft(30).save(str(file), 3)
    on_nodes = plan_of_command(file, "-n", "16", "--machine", "perlmutter")
    planned = plan(generators.qft(30), 16, ranks_per_host=4).bytes_by_level
    assert on_nodes["bytes_by_level"] == {"node": planned["inside hosts"], "system": planned["between hosts"]}
    assert plan_of_command(file, "-n", "16", "--machine", "perlmutter", "--hosts", "4") == on_nodes
    assert load_machine("perlmutter").levels[0].extents == (4,)
    capsys.readouterr()
    assert main(["plan", str(file), "-n", "16", "--machine", "perlmutter", "--hosts", "2"]) == 2
    assert "16 ranks of perlmutter are on 1 or 4 or 16 hosts, found 2" in capsys.readouterr().err
