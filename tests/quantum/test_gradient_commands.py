"""Gradients in `onehop quantum run` and `plan`, and the benchmarks of gradients and bindings with other simulators."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gradient_checks import exact, random_sum
from onehop import quantum
from onehop.cli import main
from onehop.quantum import Circuit, Parameter, gradients, parameter_shift
from onehop_bench.gradients import hardware_efficient, strongly_entangling
from onehop_bench.reference_simulators import GRADIENT_SIMULATORS, GradientSimulator, find_simulators
from ranks import Ranks

QASM = """OPENQASM 3.0;
include "stdgates.inc";
input float theta;
input float phi;
qubit[3] q;
h q[0];
rx(2*theta) q[0];
cx q[0], q[1];
ry(phi + 0.5) q[1];
crz(theta) q[1], q[2];
rx(phi) q[2];
"""


@pytest.mark.parametrize("number", [1, 2])
def test_the_command(number: int, ranks: Ranks, tmp_path: Any) -> None:
    file = tmp_path / "circuit.qasm"
    file.write_text(QASM)
    words = [file, "--observable", "X1 + 0.5*Z2", "--bind", "theta=0.3", "--bind", "phi=1.2"]
    done = ranks.onehop("run", *words, "--gradient", "--shots", 0, "--json", "-n", number, status=0)
    report = json.loads(done.stdout)
    circuit = quantum.parse_qasm(QASM)
    expected = parameter_shift(circuit, {"theta": 0.3, "phi": 1.2}, ["X1 + 0.5*Z2"], exact)
    found = report["gradients"]["X1 + 0.5*Z2"]
    for name, value in expected.by_name().items():
        assert found[name] == pytest.approx(value[0], abs=1e-12)
    assert report["gradient_method"] == "adjoint"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gradient", "--observable", "Z0"], "parameter 'phi' has no value"),
        (["--bind", "theta=1", "--bind", "phi=x"], "expected NAME=NUMBER"),
        (["--bind", "theta=1", "--bind", "phi=1", "--bind", "psi=1"], "there is no parameter 'psi'"),
        (["--gradient", "--bind", "theta=1", "--bind", "phi=1"], "at least one --observable"),
        (["--gradient", "--shots", "5", "--observable", "Z0"], "expected no shots, because its derivatives"),
        (["--reproducible", "--bind", "theta=1", "--bind", "phi=1"], "expected --gradient and a circuit"),
        (
            ["--gradient", "--reproducible", "--noise", "bit_flip=0.1", "--observable", "Z0"],
            "without --noise",
        ),
        (["--gradient", "--reproducible", "-n", "16", "--observable", "Z0"], "at most 8 ranks, found 16"),
        (["--gradient", "--bind", "theta=1", "--bind", "phi=1", "--observable", "(0+1j)*Z0"], "Hermitian"),
    ],
)
def test_wrong_options(words: list[str], message: str, tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "circuit.qasm"
    file.write_text(QASM)
    assert main(["run", str(file), *words]) == 2
    found = " ".join(capsys.readouterr().err.split())
    assert message in found
    assert "Traceback" not in found


def test_the_plan(tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "circuit.qasm"
    file.write_text(QASM)
    reports = []
    for more in ([], ["--gradient"]):
        assert main(["plan", str(file), *more, "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[1]["memory_per_rank"] == 3 * reports[0]["memory_per_rank"] == 3 * 16 * 8
    assert reports[1]["states"] == 3


def test_the_benchmark(capsys: Any) -> None:
    assert main(["bench", "gradients", "--quick", "--qubits", "10", "--peers", "none", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["terms"] for row in rows] == [1, 1000]
    for row in rows:
        assert (row["qubits"], row["parameters"], row["peers"]) == (10, 300, {})
        assert min(row["forward_s"], row["gradient_s"], row["backward_multiply_adds"]) > 0


@pytest.mark.parametrize("name", GRADIENT_SIMULATORS)
def test_other_simulators_agree(name: str) -> None:
    found, missing = find_simulators([name], 1, GradientSimulator)
    if missing:
        pytest.skip(missing[0])
    draw = np.random.default_rng(9)
    gates = strongly_entangling(5, 2)
    angles = iter(draw.normal(size=30).tolist())
    bound = [(kind, which, next(angles) if turns else None) for kind, which, turns in gates]
    circuit = Circuit(5)
    for place, (kind, which, turns) in enumerate(gates):
        circuit.gate(kind, which, [Parameter(f"p{place}")] if turns else [])
    values = [angle for *_, angle in bound if angle is not None]
    observable = random_sum(draw, 5, 6)
    terms = [(one.coefficient.real, list(one.paulis)) for one in observable]
    try:
        found[0].prepare(bound, terms, 5, "double")
        theirs = found[0].differentiate(0)[1]
    finally:
        found[0].close()
    ours = gradients(circuit, values, [observable]).derivatives[0]
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-10)


def test_the_benchmark_of_bindings(capsys: Any) -> None:
    assert main(["bench", "bindings", "--quick", "--qubits", "4,5", "--peers", "none", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["qubits"], row["parameters"], row["bindings"]) for row in rows] == [(4, 40, 20), (5, 50, 20)]
    assert min(row["run_s"] for row in rows) > 0
    assert main(["bench", "bindings", "--bindings", "0", "--peers", "none"]) == 2
    assert "--bindings as a whole number from 1 to 2^31-1, found '0'" in capsys.readouterr().err


@pytest.mark.parametrize("name", GRADIENT_SIMULATORS)
def test_other_simulators_agree_on_many_bindings(name: str) -> None:
    """Two circuits one after the other, so that nothing of the first one is left."""
    found, missing = find_simulators([name], 1, GradientSimulator)
    if missing:
        pytest.skip(missing[0])
    try:
        for qubits in (3, 4):
            gates = hardware_efficient(qubits, 2)
            circuit, count = Circuit(qubits), 0
            for kind, which, turns in gates:
                circuit.gate(kind, which, [Parameter(f"p{count}")] if turns else [])
                count += turns
            values = np.random.default_rng(qubits).normal(size=(5, count))
            first = iter(values[0].tolist())
            bound = [(kind, which, next(first) if turns else None) for kind, which, turns in gates]
            found[0].prepare(bound, [(1.0, [(0, "Z")])], qubits, "double")
            ours = quantum.compile(circuit).run_many(values, ["Z0"])[:, 0]
            np.testing.assert_allclose(found[0].evaluate(values, 0)[1], ours, rtol=0, atol=1e-10)
    finally:
        found[0].close()
