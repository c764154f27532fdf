"""Predicted times of circuits, against sums by hand."""

import json
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import load_machine
from onehop.predict import predict_circuit
from onehop.quantum import Circuit, generators, plan, simulate
from predicted_machines import two_hosts


def test_one_rank_takes_its_passes() -> None:
    circuit = generators.qft(20)
    found = predict_circuit(circuit, two_hosts(), 1)
    passes = int(plan(circuit, 1).passes)
    assert found.passes == passes > 0
    assert found.bytes_per_pass == 2 * 16 << 20
    assert found.predicted_seconds == pytest.approx(passes * 32 * 2**20 / 1e9, rel=1e-12)
    assert found.exchange_seconds == 0
    assert found.bytes_by_level == {"host": 0, "cluster": 0}
    assert found.bound == "memory bandwidth"


@pytest.mark.parametrize(("precision", "size"), [("double", 16), ("single", 8)])
def test_exchanges_cross_levels(precision: str, size: int) -> None:
    # One qubit after the other is on the two bits of the rank number, so that all kinds of exchanges occur.
    circuit = generators.random_circuit(12, depth=12)
    found = predict_circuit(circuit, two_hosts(), 4, precision)
    share = size << 10
    host = cluster = 0
    seconds = 0.0
    for stage in found.stages:
        if stage.rank_bits == (0,):
            host += 4 * share // 2
            seconds += 1e-6 + share / 2 / 1e8
        elif stage.rank_bits == (1,):
            # Both ranks of a host share its link.
            cluster += 4 * share // 2
            seconds += 1e-5 + 2 * (share / 2) / 1e7
        elif stage.rank_bits == (0, 1):
            # A quarter of the share to each other rank; the link of the host carries four such messages.
            host += 4 * share // 4
            cluster += 2 * 4 * share // 4
            seconds += 1e-5 + 4 * (share / 4) / 1e7
    assert host > 0
    assert cluster > 0
    assert found.bytes_by_level == {"host": host, "cluster": cluster}
    assert found.exchange_seconds == pytest.approx(seconds, rel=1e-6)
    assert found.predicted_seconds == pytest.approx(found.pass_seconds + seconds, rel=1e-6)
    assert found.pass_seconds == pytest.approx(found.passes * 2 * share / 1e9)
    assert found.exchanges == plan(circuit, 4, precision).exchanges
    assert found.bound == "links of level cluster"


def test_multiply_adds_limit_passes() -> None:
    circuit = generators.random_circuit(20, depth=12)
    groups = [group for stage in plan(circuit, 1).placement.groups() for group in stage]
    fewest = min(group["multiply_adds"] for group in groups)
    most = max(group["multiply_adds"] for group in groups)
    assert 0 < fewest < most
    # With this rate some passes take longer than their memory traffic, and some do not.
    memory = 2 * 16 * 2**20 / 1e9
    rate = (fewest + most) / 2 * 2**20 / memory
    found = predict_circuit(circuit, two_hosts(multiply_adds=rate))
    times = [max(memory, group["multiply_adds"] * 2**20 / rate) for group in groups]
    assert found.pass_seconds == pytest.approx(sum(times))
    assert found.arithmetic_seconds == pytest.approx(sum(one for one in times if one > memory))
    assert 0 < found.arithmetic_seconds < found.pass_seconds
    assert found.counts_arithmetic
    # The file does not give the rate in single precision.
    single = predict_circuit(circuit, two_hosts(multiply_adds=rate), precision="single")
    assert not single.counts_arithmetic
    assert single.pass_seconds == pytest.approx(single.passes * memory / 2)
    slow = predict_circuit(circuit, two_hosts(multiply_adds=rate / 1000))
    assert slow.bound == "multiply-adds"


def test_the_busier_rank_counts() -> None:
    # Qubits 0 and 1 stay on the rank number, as nothing acts on them but the first layer. Rank 0 has no work after it.
    circuit = Circuit(12)
    for qubit in range(12):
        circuit.h(qubit)
    for target in range(2, 12):
        circuit.crx(0.1, 0, target)
    plans = plan(circuit, 4)
    first, last = (sum(map(len, plans.placement.groups(rank))) for rank in (0, 3))
    found = predict_circuit(plans, two_hosts())
    assert found.passes == max(first, last)
    with pytest.raises(BadInput, match="rank below 4, found 4"):
        plans.placement.groups(4)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_cards_take_the_passes_of_their_engine(precision: str) -> None:
    circuit = generators.random_circuit(15, depth=12)
    ran = simulate(circuit, precision=precision, device="processor")
    assert predict_circuit(circuit, "h100", 1, precision).passes == ran.passes
    assert ran.passes > plan(circuit, 1, precision).passes  # tiles of a card are smaller


@pytest.mark.parametrize(("qubits", "ranks"), [(33, 1), (36, 8), (39, 64)])
@pytest.mark.parametrize("family", ["qft", "qpe", "tfim", "ghz"])
def test_large_states_are_never_allocated(
    family: str, qubits: int, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(1 << 40))  # so that `plan` has no qubits measured early
    program = (
        generators.evolution(generators.tfim((qubits,)), qubits, steps=2)
        if family == "tfim"
        else getattr(generators, family)(qubits)
    )
    found = predict_circuit(program, "genesis", ranks)
    per_pass = 2 * 16 * 2**33 / load_machine("genesis").memory_bandwidth.value
    assert found.pass_seconds == pytest.approx(found.passes * per_pass)
    assert (found.exchange_seconds > 0) == (ranks > 1)
    sent = plan(program, ranks, ranks_per_node=1).bytes_per_rank * ranks
    assert sum(found.bytes_by_level.values()) == sent


def test_bad_input() -> None:
    circuit = generators.qft(33)
    with pytest.raises(BadInput, match=r"expected a machine \(a100-nvlink.*genesis.*found 'genesi'"):
        predict_circuit(circuit, "genesi")
    with pytest.raises(BadInput, match=r"at most 8 ranks, one for each processor of mi300x, found 16"):
        predict_circuit(circuit, "mi300x", 16)
    with pytest.raises(BadInput, match=r"power of two"):
        predict_circuit(circuit, "genesis", 3)
    with pytest.raises(BadInput, match=r"at least 1 rank"):
        predict_circuit(circuit, "genesis", 0)
    with pytest.raises(
        BadInput,
        match=r"of 33 qubits on 1 rank does not fit: expected at most 40 GB .*perlmutter, found 137.*4 ranks or more",
    ):
        predict_circuit(circuit, "perlmutter")
    with pytest.raises(BadInput, match=r"fewer qubits or another precision"):
        predict_circuit(generators.qft(40), "mi300x", 8)


def test_the_command_writes_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(39).save(str(file), 3)
    out = tmp_path / "out.json"
    assert main(["plan", str(file), "-n", "64", "--machine", "genesis", "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    expected = predict_circuit(generators.qft(39), "genesis", 64)
    assert found["predicted_seconds"] == expected.predicted_seconds
    assert found["bytes_by_level"] == expected.bytes_by_level
    assert found["fits"] is True
    assert found["machine"] == "genesis"
    assert found["passes"] == expected.passes == found["choices"][0]["passes"]
    assert [one["precision"] for one in found["choices"]] == ["double", "single"]  # on devices
    printed = capsys.readouterr().out
    assert f"{expected.passes} passes" in printed
    for words in ("1 exchange", "predicted time", "bound", "only memory and messages count"):
        assert words in printed
    assert main(["plan", str(file), "-n", "64", "--machine", "nowhere"]) == 2
    assert "genesis-ib" in capsys.readouterr().err
    assert main(["plan", str(file), "-n", "64", "--machine", "genesis", "--per-host", "2"]) == 2
