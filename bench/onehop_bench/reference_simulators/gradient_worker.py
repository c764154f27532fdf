"""A process that differentiates with one reference simulator: `python gradient_worker.py NAME THREADS`.

It needs only that simulator and NumPy. Each line of stdin is a request in JSON:

    {"do": "load", "gates": [[name, qubits, angle or null], ...], "terms": [[weight, [[qubit, letter], ...]], ...],
     "qubits": n, "precision": "double"}
        is answered by {"settings": ["default"]}
    {"do": "run", "setting": "default", "seconds": s, "indices": []}
        computes the derivatives of the expectation value by all angles repeatedly for s seconds, at least once, and is
        answered by {"seconds": [...], "derivatives": [...]}
    {"do": "many", "rows": [[angle, ...], ...], "seconds": s}
        computes the expectation value for every row of angles, binding included, likewise, and is answered by
        {"seconds": [...], "values": [...]}

The gates are "rx", "ry", "rz" with an angle, and "cx". Each simulator uses its adjoint method. Making its circuit does
not count.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from answering import answer_requests, version_of  # beside this script


class Lightning:
    """pennylane-lightning through PennyLane's device, without a QNode."""

    precisions = ("single", "double")
    device = "lightning.qubit"
    package = "pennylane-lightning"

    def __init__(self, threads: int) -> None:
        import pennylane as qml
        from pennylane.devices import ExecutionConfig

        self.qml = qml
        self.config = ExecutionConfig(gradient_method="adjoint")
        self.version = version_of(self.package)
        qml.device(self.device, wires=1)

    def load(self, gates: list[Any], terms: list[Any], qubits: int, precision: str) -> None:
        qml = self.qml
        kinds = {"rx": qml.RX, "ry": qml.RY, "rz": qml.RZ}
        letters = {"X": qml.X, "Y": qml.Y, "Z": qml.Z}
        operations = [
            qml.CNOT(wires=which) if angle is None else kinds[name](angle, wires=which[0])
            for name, which, angle in gates
        ]
        strings = [qml.prod(*[letters[x](q) for q, x in one]) if one else qml.Identity(0) for _, one in terms]
        observable = qml.Hamiltonian([weight for weight, _ in terms], strings)
        single = precision == "single"
        self.simulator = qml.device(
            self.device, wires=qubits, c_dtype=np.complex64 if single else np.complex128
        )
        count = sum(angle is not None for *_, angle in gates)
        self.tape = qml.tape.QuantumScript(
            operations, [qml.expval(observable)], trainable_params=list(range(count))
        )

    def derivatives(self) -> np.ndarray:
        return np.array([float(one) for one in self.simulator.compute_derivatives(self.tape, self.config)])

    def values(self, rows: np.ndarray) -> np.ndarray:
        places = list(range(rows.shape[1]))
        tapes = [self.tape.bind_new_parameters(row, places) for row in rows.tolist()]
        return np.array(self.simulator.execute(tapes), float)


class Kokkos(Lightning):
    """pennylane-lightning-kokkos."""

    device = "lightning.kokkos"
    package = "pennylane-lightning-kokkos"


class Qulacs:
    """qulacs' backpropagation, in double precision only."""

    precisions = ("double",)

    def __init__(self, threads: int) -> None:
        import qulacs

        self.qulacs = qulacs
        self.version = version_of("qulacs")

    def load(self, gates: list[Any], terms: list[Any], qubits: int, precision: str) -> None:
        """Build the simulator's circuit. Its angles have the opposite sign."""
        circuit = self.qulacs.ParametricQuantumCircuit(qubits)
        for name, which, angle in gates:
            if angle is None:
                circuit.add_CNOT_gate(*which)
            else:
                getattr(circuit, f"add_parametric_{name.upper()}_gate")(which[0], -angle)
        self.circuit = circuit
        self.observable = self.qulacs.Observable(qubits)
        for weight, one in terms:
            self.observable.add_operator(weight, " ".join(f"{x} {q}" for q, x in one))

    def derivatives(self) -> np.ndarray:
        return -np.array(self.circuit.backprop(self.observable))

    def values(self, rows: np.ndarray) -> np.ndarray:
        state = self.qulacs.QuantumState(self.circuit.get_qubit_count())
        found = []
        for row in rows.tolist():
            for place, angle in enumerate(row):
                self.circuit.set_parameter(place, -angle)
            state.set_zero_state()
            self.circuit.update_quantum_state(state)
            found.append(self.observable.get_expectation_value(state))
        return np.array(found)


class Prism:
    """prism-q, in double precision only."""

    precisions = ("double",)

    def __init__(self, threads: int) -> None:
        import prism_q

        self.prism = prism_q
        self.version = version_of("prism-q")

    def load(self, gates: list[Any], terms: list[Any], qubits: int, precision: str) -> None:
        builder = self.prism.CircuitBuilder(qubits)
        slot = 0
        for name, which, angle in gates:
            if angle is None:
                builder.cx(*which)
            else:
                getattr(builder, name)(angle, which[0]).param(slot)
                slot += 1
        self.circuit, self.links = builder.build(), builder.parameter_links()
        vars(self).pop("prepared", None)
        self.terms = [(weight, [(q, x) for q, x in one]) for weight, one in terms]

    def derivatives(self) -> np.ndarray:
        return np.asarray(self.prism.simulate(self.circuit).expectation_gradient(self.terms, self.links)[1])

    def values(self, rows: np.ndarray) -> np.ndarray:
        if not hasattr(self, "prepared"):
            parameters = self.prism.Parameters(rows.shape[1])
            for instruction, slot in self.links:
                parameters.link(instruction, slot)
            self.prepared = self.prism.PreparedCircuit(self.circuit, parameters)
        found = self.prepared.expectation_values_many(rows, [string for _, string in self.terms])
        return np.asarray(found) @ np.array([weight for weight, _ in self.terms])


PEERS = {"lightning.qubit": Lightning, "lightning.kokkos": Kokkos, "qulacs": Qulacs, "prism-q": Prism}


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request."""
    if request["do"] == "load":
        peer.load(request["gates"], request["terms"], request["qubits"], request["precision"])
        return {"settings": ["default"]}
    if request["do"] == "many":
        rows = np.array(request["rows"], float)
        times, found = timed(lambda: peer.values(rows), request["seconds"])
        return {"seconds": times, "values": found.tolist()}
    times, found = timed(peer.derivatives, request["seconds"])
    return {"seconds": times, "derivatives": found.tolist()}


def timed(work: Any, seconds: float) -> tuple[list[float], np.ndarray]:
    """Work repeatedly for some seconds, at least once; return the times and the last result."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while not times or time.perf_counter() < until:
        begin = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - begin)
    return times, found


if __name__ == "__main__":
    answer_requests(PEERS, answer)
