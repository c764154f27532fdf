"""Measure the costs of circuits besides their arithmetic: peak memory, and planning.

`tools/circuit_costs.py memory` runs each case of `onehop bench circuits` in its own process and compares the growth of
the process with the size of the state. `tools/circuit_costs.py planning` times placing 10,000 gates of each kind and
grouping them into passes, without running them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path

import numpy as np

from onehop import _core
from onehop.quantum.circuit import Circuit
from onehop.quantum.state import State
from onehop.quantum.two_qubit import haar_unitary
from onehop_bench.circuits_cases import CIRCUIT_CASES, make_gates, to_circuit

BYTES = {"double": 16, "single": 8}


def mebibytes(key: str) -> float:
    """Return an entry of /proc/self/status in MiB."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1024


def memory_of(case: str, qubits: int, precision: str) -> None:
    """Run a case, and print the growth of this process and the size of the state."""
    circuit = to_circuit(make_gates(case, qubits), qubits)
    before = mebibytes("VmRSS")
    State(qubits, precision=precision).run(circuit)
    grown = mebibytes("VmHWM") - before
    size = (BYTES[precision] << qubits) / 2**20
    print(
        f"{case:10} {qubits} {precision}: {grown:.0f} MiB for a state of {size:.0f}: {grown / size:.3f}",
        flush=True,
    )


def memory(qubits: int) -> None:
    """Measure every case in both precisions, each in its own process."""
    for precision in BYTES:
        for case in CIRCUIT_CASES:
            process = multiprocessing.get_context("spawn").Process(
                target=memory_of, args=(case, qubits, precision)
            )
            process.start()
            process.join()


def circuits(qubits: int, gates: int) -> dict[str, Circuit]:
    """Return one circuit of `gates` gates for each kind of gate."""
    random = np.random.default_rng(3)
    made = {}
    for case in CIRCUIT_CASES:
        some = make_gates(case, qubits)
        made[case] = to_circuit((some * (gates // len(some) + 1))[:gates], qubits)
    hop = np.eye(4, dtype=complex)
    hop[1:3, 1:3] = [[np.cos(0.4), -1j * np.sin(0.4)], [-1j * np.sin(0.4), np.cos(0.4)]]
    hop[3, 3] = np.exp(-0.3j)
    kinds = {
        "CX as a matrix": (np.eye(4)[[0, 3, 2, 1]], False),
        "fSim as a matrix": (hop, False),
        "CZ between one-qubit gates": (np.diag([1, 1, 1, -1]), True),
        "CP between one-qubit gates": (np.diag([1, 1, 1, np.exp(0.3j)]), True),
        "swap between one-qubit gates": (np.eye(4)[[0, 2, 1, 3]], True),
    }
    for name, (matrix, dressed) in kinds.items():
        circuit = Circuit(qubits)
        for _ in range(gates):
            first, second = (int(qubit) for qubit in random.permutation(qubits)[:2])
            around = [np.eye(4)] * 2
            if dressed:
                around = [np.kron(haar_unitary(2, random), haar_unitary(2, random)) for _ in range(2)]
            circuit.unitary(around[0] @ matrix @ around[1], [first, second])
        made[name] = circuit
    return made


def planning(qubits: int, gates: int = 10_000) -> None:
    """Print the best of five planning times in ms of CPU time of this thread, which other processes do not disturb."""
    for name, circuit in circuits(qubits, gates).items():
        for precision, each in BYTES.items():
            times = []
            for _ in range(5):
                begin = time.thread_time()
                passes = _core.place(circuit, 1, each, 1.0).passes()
                times.append(time.thread_time() - begin)
            print(f"{name:28} {precision}: {min(times) * 1e3:5.1f} ms, {passes:g} passes", flush=True)


def main() -> None:
    """Run the measurement that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measurement", choices=("memory", "planning"), help="The cost to measure.")
    parser.add_argument("--qubits", type=int, default=24, help="Number of qubits of the circuits.")
    options = parser.parse_args()
    {"memory": memory, "planning": planning}[options.measurement](options.qubits)


if __name__ == "__main__":
    main()
