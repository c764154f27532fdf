"""A process that reads out states with one reference simulator: `python readout_worker.py NAME THREADS`.

It needs only that simulator and NumPy. Each line of stdin is a request in JSON:

    {"do": "load", "gates": [...], "qubits": n, "precision": "double", "strings": [[[qubit, letter], ...], ...]}
        is answered by {"settings": [names]}
    {"do": "sampling", "shots": m, "seconds": s}
        applies the gates to |0...0> and samples all qubits repeatedly for s seconds, at least once, and is answered by
        {"seconds": [...], "values": [the share of ones of each qubit]}
    {"do": "pauli", "seconds": s}
        applies the gates and computes the expectation value of every string likewise

The gates are those of `worker.py`, and run in the first setting there. Each simulator has outcomes in its own form:
numbers, bits or counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import worker  # beside this script
from answering import answer_requests

Reading = tuple[float, Any]
"""Seconds, and what was read."""


def shares(outcomes: Any, qubits: int, counts: Sequence[int] | None = None) -> np.ndarray:
    """The share of ones of each qubit, from outcomes as numbers, of which `counts` says how often each occurred."""
    numbers = np.asarray(outcomes, np.uint64)
    return np.array(
        [np.average(numbers >> np.uint64(q) & np.uint64(1), weights=counts) for q in range(qubits)]
    )


class Aer(worker.Aer):
    """qiskit-aer, which reports its own time and has outcomes as counts."""

    def _run(self, circuit: Any, shots: int) -> Any:
        result = self.simulator("fusion 5").run(circuit, shots=shots).result()
        if not result.success:
            raise RuntimeError(result.status)
        return result

    def sampling(self, shots: int) -> Reading:
        circuit = self.circuit.copy()
        circuit.measure_all()
        result = self._run(circuit, shots)
        counts = result.data(0)["counts"]
        numbers = [int(outcome, 16) for outcome in counts]
        return result.results[0].time_taken, shares(numbers, circuit.num_qubits, list(counts.values()))

    def pauli(self) -> Reading:
        from qiskit.quantum_info import Pauli

        circuit = self.circuit.copy()
        for number, string in enumerate(self.strings):
            letters = Pauli("".join(letter for _, letter in reversed(string)))
            circuit.save_expectation_value(letters, [qubit for qubit, _ in string], label=str(number))
        result = self._run(circuit, 1)
        return result.results[0].time_taken, [result.data(0)[str(i)] for i in range(len(self.strings))]


class Qsim(worker.Qsim):
    """qsimcirq through the functions that its simulator calls, whose outcomes are numbers."""

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        settings = super().load(gates, qubits, precision)
        self.qubits = qubits
        self.options = self.qsimcirq.QSimOptions(cpu_threads=self.threads, max_fused_gate_size=3).as_dict()
        self.options.update(c=self.circuit, s=1)
        return settings

    def sampling(self, shots: int) -> Reading:
        begin = time.perf_counter()
        outcomes = self.module.qsim_sample_final(self.options, shots)
        return time.perf_counter() - begin, shares(outcomes, self.qubits)

    def pauli(self) -> Reading:
        from qsimcirq import qsim, qsim_circuit

        cirq, lines = self.cirq, self.cirq.LineQubit.range(self.qubits)
        letters = {"X": cirq.X, "Y": cirq.Y, "Z": cirq.Z}
        places = {line: qubit for qubit, line in enumerate(lines)}
        sums = []
        for string in self.strings:
            one = qsim.OpString()
            one.weight = 1
            for qubit, letter in string:
                qsim_circuit.add_op_to_opstring(letters[letter](lines[qubit]), places, one)
            sums.append(([one], len(string)))
        begin = time.perf_counter()
        values = self.module.qsim_simulate_expectation_values(self.options, sums, 0)
        return time.perf_counter() - begin, np.real(values).tolist()


class _OnState:
    """A simulator with states: the circuit runs on one that was made before."""

    def _timed(self: Any, read: Callable[[Any], Any]) -> Reading:
        state = self.start()
        self.reset(state)
        begin = time.perf_counter()
        self.apply(state, self.setting)
        found = read(state)
        return time.perf_counter() - begin, found


class Qulacs(_OnState, worker.Qulacs):
    """qulacs, whose outcomes are numbers."""

    setting = "no fusion"

    def sampling(self, shots: int) -> Reading:
        taken, outcomes = self._timed(lambda state: state.sampling(shots))
        return taken, shares(outcomes, self.qubits)

    def pauli(self) -> Reading:
        observables = []
        for string in self.strings:
            one = self.qulacs.Observable(self.qubits)
            one.add_operator(1.0, " ".join(f"{letter} {qubit}" for qubit, letter in string))
            observables.append(one)
        return self._timed(lambda state: [one.get_expectation_value(state) for one in observables])


class _Lightning(_OnState):
    """The measurements of pennylane-lightning, whose outcomes are bits."""

    setting = "default"

    def sampling(self: Any, shots: int) -> Reading:
        taken, bits = self._timed(
            lambda state: self._measurements(state).generate_samples(self.qubits, shots)
        )
        return taken, bits.mean(axis=0)[::-1]

    def _measurements(self: Any, state: Any) -> Any:
        return getattr(self.ops, f"Measurements{self._kind()}")(state)

    def _kind(self: Any) -> str:
        return "C64" if self.precision == "single" else "C128"

    def pauli(self: Any) -> Reading:
        named, product = (
            getattr(self.ops.observables, f"{x}Obs{self._kind()}") for x in ("Named", "TensorProd")
        )
        observables = [
            product([named(f"Pauli{letter}", [self.qubits - 1 - qubit]) for qubit, letter in string])
            for string in self.strings
        ]

        def values(state: Any) -> list[float]:
            measurements = self._measurements(state)
            return [measurements.expval(one) for one in observables]

        return self._timed(values)


class Lightning(_Lightning, worker.Lightning):
    """pennylane-lightning."""


class Kokkos(_Lightning, worker.Kokkos):
    """pennylane-lightning-kokkos."""


class Prism(worker.Prism):
    """prism-q, whose outcomes are counts of texts."""

    def load(self, gates: list[Any], qubits: int, precision: str) -> list[str]:
        self.qubits = qubits
        settings = super().load(gates, qubits, precision)
        self.measured = self.builder.measure_all().build()
        return settings

    def sampling(self, shots: int) -> Reading:
        begin = time.perf_counter()
        counts = self.prism.simulate(self.measured).sample_counts(shots).counts()
        taken = time.perf_counter() - begin
        numbers = [int(outcome[::-1], 2) for outcome in counts]
        return taken, shares(numbers, self.qubits, list(counts.values()))

    def pauli(self) -> Reading:
        strings = [[(qubit, letter) for qubit, letter in string] for string in self.strings]
        begin = time.perf_counter()
        values = self.prism.simulate(self.circuit).expectation_values(strings)
        return time.perf_counter() - begin, list(values)


PEERS = {
    "qiskit-aer": Aer,
    "qsim": Qsim,
    "qulacs": Qulacs,
    "lightning.qubit": Lightning,
    "lightning.kokkos": Kokkos,
    "prism-q": Prism,
}


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request."""
    if request["do"] == "load":
        peer.strings = request["strings"]
        return {"settings": peer.load(request["gates"], request["qubits"], request["precision"])}
    times: list[float] = []
    until = time.perf_counter() + request["seconds"]
    while not times or time.perf_counter() < until:
        taken, found = peer.sampling(request["shots"]) if request["do"] == "sampling" else peer.pauli()
        times.append(taken)
    return {"seconds": times, "values": np.asarray(found, float).tolist()}


if __name__ == "__main__":
    answer_requests(PEERS, answer)
