"""`onehop quantum qedc` on a stand-in for the QED-C suite: imports, choice of a backend, use of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onehop import BadInput
from ranks import Ranks

pytest.importorskip("qiskit")

EXECUTE = """
from qiskit import QuantumCircuit, transpile

backend = "the suite's own"
noise = "a model"


def set_execution_target(backend_id="qasm_simulator", provider_module_name=None, provider_name=None,
                         provider_backend=None, hub=None, group=None, project=None, exec_options=None, context=None):
    global backend
    if provider_backend is not None:
        backend = provider_backend
    else:
        raise RuntimeError(f"asked a cloud for {backend_id}")


def execute(circuits, shots):
    assert "simulator" in backend.name and not backend.name.endswith("qasm_simulator")
    warm = QuantumCircuit(2, 2)
    warm.h(0), warm.cx(0, 1), warm.measure([0, 1], [0, 1])
    backend.run([warm, warm], shots=100).result()
    job = backend.run(transpile(circuits, backend), shots=shots)
    result = job.result()
    job.job_id(), job.status()
    times = [one["time_taken"] for one in result.to_dict()["results"]]
    assert all(time > 0 for time in times)
    assert result.results[0].header["creg_sizes"][0][1] == result.results[0].header["memory_slots"]
    return result.get_counts()
"""
SCRIPT = """
import argparse, sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "lib"))
from qiskit_ibm_runtime import Estimator
import execute as ex
from qiskit import QuantumCircuit

parser = argparse.ArgumentParser()
parser.add_argument("-min", type=int)
parser.add_argument("-b", default=None)
arguments = parser.parse_args()
if __name__ == "__main__":
    ex.set_execution_target(arguments.b, provider_backend=None, hub="ibm-q")
    circuit = QuantumCircuit(arguments.min, arguments.min)
    circuit.x(0)
    circuit.measure(range(arguments.min), range(arguments.min))
    print("COUNTS", ex.execute([circuit, circuit], 25))
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "suite" / "lib").mkdir(parents=True)
    (tmp_path / "suite" / "lib" / "execute.py").write_text(EXECUTE)
    (tmp_path / "suite" / "benchmark.py").write_text(SCRIPT)
    return tmp_path / "suite" / "benchmark.py"


def test_runs_on_the_given_ranks(suite: Path, ranks: Ranks) -> None:
    report = ranks.folder / "q.json"
    options = ("-n", 2, "--seed", 1, "--json", report)
    done = ranks.onehop("quantum", "qedc", suite, *options, "--", *["-min", "3", "-b", "elsewhere"], status=0)
    assert done.stdout.count("COUNTS [{'001': 25}, {'001': 25}]") == 1
    found = json.loads(report.read_text())
    assert (found["ranks"], found["circuits"]) == (2, 4)
    assert found["arguments"] == ["-min", "3", "-b", "elsewhere"]


def test_bad_input_is_refused(suite: Path, ranks: Ranks) -> None:
    done = ranks.onehop("quantum", "qedc", "none.py", "-n", 2, status=2)
    assert "there is no benchmark none.py" in done.stderr
    suite.write_text("import a_package_that_is_not_there\n")
    done = ranks.onehop("quantum", "qedc", suite, status=2)
    assert "pip install a-package-that-is-not-there" in done.stderr


def test_a_file_that_is_no_script_is_bad_input(tmp_path: Path) -> None:
    from onehop.qedc import run_benchmark

    file = tmp_path / "bell.qasm"
    file.write_text('OPENQASM 2.0;\ninclude "qelib1.inc";\n')
    with pytest.raises(BadInput, match=r"bell\.qasm:1: expected a Python script"):
        run_benchmark(file, [], object())
