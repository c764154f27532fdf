"""A process that runs one reference simulator: `python worker.py NAME THREADS`.

It needs only that simulator and NumPy, so that it runs in any environment that has them. Each line of stdin is a
request in JSON:

    {"do": "load", "gates": [...], "qubits": n, "precision": "double"}
        is answered by {"settings": [names]}
    {"do": "run", "setting": name, "seconds": s, "indices": [...]}
        applies it to |0...0> repeatedly for s seconds, at least once, and is answered by
        {"seconds": [...], "amplitudes": [[re, im], ...]}

Work that a simulator repeats in every run of its own kind of circuit counts (the fusion of gates in qiskit-aer and
qsim). Work that is done once does not (making that circuit; qulacs' optimizer), nor does making a state where it can be
measured separately.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import tempfile
import time
from typing import Any

import numpy as np
from answering import answer_requests, version_of  # beside this script

AMPLITUDES = {"single": np.complex64, "double": np.complex128}


def matrix_of(qubits: list[int], numbers: list[float]) -> np.ndarray:
    """The matrix of a gate, from the numbers of a request."""
    size = 1 << len(qubits)
    return np.array(numbers, np.float64).view(np.complex128).reshape(size, size)


class Aer:
    """qiskit-aer, which reports its own time."""

    precisions = ("single", "double")

    def __init__(self, threads: int) -> None:
        import qiskit
        import qiskit_aer
        from qiskit.circuit.library import MCPhaseGate, RXGate, RZZGate

        self.version = qiskit_aer.__version__
        self.threads = threads
        self.modules = qiskit, qiskit_aer
        self.special = {"rx": RXGate, "rzz": RZZGate, "mcz": MCPhaseGate}

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        qiskit = self.modules[0]
        self.precision = precision
        self.circuit = qiskit.QuantumCircuit(qubits)
        for name, which, numbers in gates:
            if name == "matrix":
                self.circuit.unitary(matrix_of(which, numbers), which)
            elif name == "mcz":
                self.circuit.append(self.special[name](math.pi, len(which) - 1), which)
            else:
                getattr(self.circuit, name)(*numbers, *which)
        return ["fusion 5", "fusion 4", "fusion 3", "fusion 2", "no fusion"]

    def simulator(self, setting: str) -> Any:
        fusion = setting.startswith("fusion")
        return self.modules[1].AerSimulator(
            method="statevector",
            precision=self.precision,
            max_parallel_threads=self.threads,
            max_parallel_experiments=1,
            fusion_enable=fusion,
            **({"fusion_max_qubit": int(setting.split()[1]), "fusion_threshold": 1} if fusion else {}),
        )

    def run(self, setting: str, indices: list[int]) -> tuple[float, np.ndarray]:
        asked = self.circuit.copy()
        asked.save_amplitudes(indices)
        result = self.simulator(setting).run(asked, shots=1).result()
        if not result.success:
            raise RuntimeError(result.status)
        return result.results[0].time_taken, np.asarray(result.data(0)["amplitudes"])


class Qsim:
    """qsimcirq in single precision only. It reports its own time, without making the state."""

    precisions = ("single",)

    def __init__(self, threads: int) -> None:
        import cirq
        import qsimcirq
        from qsimcirq import qsim_simulator

        self.version = qsimcirq.__version__
        self.threads = threads
        self.cirq, self.qsimcirq = cirq, qsimcirq
        self.module = qsim_simulator.QSimSimulator()._sim_module

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        cirq = self.cirq
        lines = cirq.LineQubit.range(qubits)
        on = lines[::-1]  # qsim's first qubit is the most significant
        make = {"h": cirq.H, "x": cirq.X, "cx": cirq.CNOT, "cz": cirq.CZ, "swap": cirq.SWAP}
        circuit = cirq.Circuit()
        for name, which, numbers in gates:
            if name == "matrix":
                # Its first qubit is the most significant one of the matrix, too.
                operation = cirq.MatrixGate(matrix_of(which, numbers))(*[on[q] for q in which[::-1]])
            elif name == "cp":
                operation = cirq.CZPowGate(exponent=numbers[0] / math.pi)(on[which[0]], on[which[1]])
            elif name == "rx":
                operation = cirq.rx(numbers[0])(on[which[0]])
            elif name == "rzz":
                exponent = numbers[0] / math.pi
                operation = cirq.ZZPowGate(exponent=exponent, global_shift=-0.5)(on[which[0]], on[which[1]])
            elif name == "mcz":
                operation = cirq.Z(on[which[0]]).controlled_by(*[on[q] for q in which[1:]])
            else:
                operation = make[name](*[on[q] for q in which])
            circuit.append(operation)
        translated = self.qsimcirq.QSimCircuit(circuit).translate_cirq_to_qsim(lines)
        self.circuit = translated[0] if isinstance(translated, tuple) else translated
        return [f"fusion {size}" for size in (3, 4, 2, 5)]

    def run(self, setting: str, indices: list[int]) -> tuple[float, np.ndarray]:
        options = self.qsimcirq.QSimOptions(
            cpu_threads=self.threads, max_fused_gate_size=int(setting.split()[1]), verbosity=2
        ).as_dict()
        options.update(c=self.circuit, s=1)
        with Printed() as printed:
            state = self.module.qsim_simulate_fullstate(options, 0)
        own = dict(re.findall(r"(fuse|simu) time is ([0-9.e+-]+) seconds", printed.text))
        if len(own) != 2:
            raise RuntimeError(f"expected qsim to print its times, found {printed.text!r}")
        return float(own["fuse"]) + float(own["simu"]), state.view(np.complex64)[indices]


class Qulacs:
    """qulacs, in double precision only."""

    precisions = ("double",)

    def __init__(self, threads: int) -> None:
        import qulacs

        self.version = getattr(qulacs, "__version__", "")
        self.qulacs = qulacs

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        self.qubits = qubits
        self.circuit = self.qulacs.QuantumCircuit(qubits)
        for one in gates:
            self._add(*one)
        self.made: dict[str, Any] = {}
        return ["no fusion", "fusion 2", "fusion 3", "fusion 4", "fusion 1"]

    def _add(self, name: str, which: list[int], numbers: list[float]) -> None:
        gate, circuit = self.qulacs.gate, self.circuit
        plain = {"h": gate.H, "x": gate.X, "cx": gate.CNOT, "cz": gate.CZ, "swap": gate.SWAP}
        if name in plain:
            circuit.add_gate(plain[name](*which))
        elif name == "matrix":
            circuit.add_gate(gate.DenseMatrix(which, matrix_of(which, numbers)))
        elif name == "rx":  # qulacs' angles have the opposite sign
            circuit.add_gate(gate.RX(which[0], -numbers[0]))
        elif name == "rzz":
            circuit.add_gate(gate.PauliRotation(which, [3, 3], -numbers[0]))
        else:
            angle = numbers[0] if name == "cp" else math.pi
            diagonal = gate.to_matrix_gate(gate.U1(which[0], angle))
            for control in which[1:]:
                diagonal.add_control_qubit(control, 1)
            circuit.add_gate(diagonal)

    def _made(self, setting: str) -> Any:
        if setting not in self.made:
            circuit = self.circuit.copy()
            if setting != "no fusion":
                from qulacs.circuit import QuantumCircuitOptimizer

                QuantumCircuitOptimizer().optimize(circuit, int(setting.split()[1]))
            self.made[setting] = circuit
        return self.made[setting]

    def start(self) -> Any:
        return self.qulacs.QuantumState(self.qubits)

    def reset(self, state: Any) -> None:
        state.set_zero_state()

    def apply(self, state: Any, setting: str) -> None:
        self._made(setting).update_quantum_state(state)

    def amplitudes(self, state: Any, indices: list[int]) -> np.ndarray:
        return np.array([state.get_amplitude(index) for index in indices])


class Lightning:
    """pennylane-lightning, through the functions that its devices call."""

    precisions = ("single", "double")
    module = "lightning_qubit_ops"
    package = "pennylane-lightning"
    names = {  # noqa: RUF012
        "h": "Hadamard",
        "x": "PauliX",
        "cx": "CNOT",
        "cz": "CZ",
        "cp": "ControlledPhaseShift",
        "swap": "SWAP",
        "rx": "RX",
        "rzz": "IsingZZ",
    }

    def __init__(self, threads: int) -> None:
        import importlib

        self.threads = threads
        self.version = version_of(self.package)
        self.ops = importlib.import_module(f"pennylane_lightning.{self.module}")

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        self.qubits, self.precision = qubits, precision
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        last = qubits - 1  # the first wire is the most significant
        for name, which, numbers in gates:
            wires = [last - q for q in which]
            if name == "matrix":
                matrix = np.ascontiguousarray(matrix_of(which, numbers), AMPLITUDES[precision])
                self.calls.append(("applyMatrix", (matrix, wires[::-1], False)))
            elif name == "mcz":
                self.calls.append(("PauliZ", (wires[1:], [True] * (len(wires) - 1), wires[:1], False, [])))
            else:
                self.calls.append((self.names[name], (wires, False, numbers)))
        return ["default"]

    def start(self) -> Any:
        kind = "C64" if self.precision == "single" else "C128"
        return getattr(self.ops, f"StateVector{kind}")(self.qubits)

    def reset(self, state: Any) -> None:
        state.resetStateVector()

    def apply(self, state: Any, setting: str) -> None:
        for name, arguments in self.calls:
            getattr(state, name)(*arguments)

    def amplitudes(self, state: Any, indices: list[int]) -> np.ndarray:
        whole = np.zeros(1 << self.qubits, AMPLITUDES[self.precision])
        state.getState(whole)
        return whole[indices]


class Kokkos(Lightning):
    """pennylane-lightning-kokkos."""

    module = "lightning_kokkos_ops"
    package = "pennylane-lightning-kokkos"

    def start(self) -> Any:
        kind = "C64" if self.precision == "single" else "C128"
        threads = self.ops.InitializationSettings().set_num_threads(self.threads)
        return getattr(self.ops, f"StateVector{kind}")(self.qubits, threads)

    def amplitudes(self, state: Any, indices: list[int]) -> np.ndarray:
        whole = np.zeros(1 << self.qubits, AMPLITUDES[self.precision])
        state.DeviceToHost(whole)
        return whole[indices]


class Prism:
    """prism-q, in double precision only. Its time includes the copy of the state, which no other call returns."""

    precisions = ("double",)

    def __init__(self, threads: int) -> None:
        import prism_q

        self.prism = prism_q
        self.version = version_of("prism-q")

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        builder = self.prism.CircuitBuilder(qubits)
        for name, which, numbers in gates:
            if name == "matrix":
                # Its first qubit is the most significant one of the matrix.
                builder.gate(self.prism.Gate.unitary(matrix_of(which, numbers)), which[::-1])
            elif name == "mcz":
                builder.mcu(np.diag([1, -1]).astype(complex), which[1:], which[0])
            else:
                getattr(builder, "cphase" if name == "cp" else name)(*numbers, *which)
        self.builder, self.circuit = builder, builder.build()
        return ["default"]

    def run(self, setting: str, indices: list[int]) -> tuple[float, np.ndarray]:
        begin = time.perf_counter()
        state = self.prism.simulate(self.circuit).state_vector()
        return time.perf_counter() - begin, state[indices]


class Printed:
    """A context that captures the output of C code in `text`."""

    def __enter__(self) -> Printed:
        self.libc = ctypes.CDLL(None)
        self.libc.fflush(None)
        self.file = tempfile.TemporaryFile()
        self.kept = os.dup(1)
        os.dup2(self.file.fileno(), 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.libc.fflush(None)
        os.dup2(self.kept, 1)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


PEERS = {
    "qiskit-aer": Aer,
    "qsim": Qsim,
    "qulacs": Qulacs,
    "lightning.qubit": Lightning,
    "lightning.kokkos": Kokkos,
    "prism-q": Prism,
}


def run_repeatedly(peer: Any, setting: str, seconds: float, indices: list[int]) -> tuple[list[float], Any]:
    """Run for some seconds, at least once. Return the times and the last amplitudes.

    A simulator with `start` runs on one state, so that only the circuit is timed, on memory that was written before.
    Others make a state for each run.
    """
    times: list[float] = []
    if not hasattr(peer, "start"):
        until = time.perf_counter() + seconds
        while not times or time.perf_counter() < until:
            taken, amplitudes = peer.run(setting, indices)
            times.append(taken)
        return times, amplitudes
    state = peer.start()
    peer.reset(state)
    until = time.perf_counter() + seconds
    while not times or time.perf_counter() < until:
        peer.reset(state)
        begin = time.perf_counter()
        peer.apply(state, setting)
        times.append(time.perf_counter() - begin)
    return times, peer.amplitudes(state, indices)


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request."""
    if request["do"] == "load":
        return {"settings": peer.load(request["gates"], request["qubits"], request["precision"])}
    times, amplitudes = run_repeatedly(peer, request["setting"], request["seconds"], request["indices"])
    numbers = np.asarray(amplitudes, np.complex128).tolist()
    return {"seconds": times, "amplitudes": [[number.real, number.imag] for number in numbers]}


if __name__ == "__main__":
    answer_requests(PEERS, answer)
