"""Reference simulator in NumPy, which follows all outcomes of measurements."""

from dataclasses import dataclass, field

import numpy as np

import brute_force
from onehop.quantum import Circuit, Condition


@dataclass
class Branch:
    """A state (not normalised), and the measured bits that lead to it."""

    state: np.ndarray
    bits: dict[int, int] = field(default_factory=dict)

    def holds(self, condition: Condition) -> bool:
        """Whether a condition is fulfilled."""
        if not condition.clbits:
            return True
        number = sum(self.bits.get(bit, 0) << k for k, bit in enumerate(condition.clbits))
        return (number == condition.value) != condition.negated


def _project(branch: Branch, qubit: int, value: int) -> np.ndarray:
    index = np.arange(len(branch.state))
    return np.where(index >> qubit & 1 == value, branch.state, 0)


def _measured(branch: Branch, qubit: int, clbit: int) -> list[Branch]:
    made = [Branch(_project(branch, qubit, value), {**branch.bits, clbit: value}) for value in (0, 1)]
    return [one for one in made if np.vdot(one.state, one.state).real > 1e-14]


def _reset(branch: Branch, qubit: int) -> list[Branch]:
    index = np.arange(len(branch.state))
    down = np.where(index >> qubit & 1 == 0, branch.state[index | 1 << qubit], 0)
    made = [Branch(one, dict(branch.bits)) for one in (_project(branch, qubit, 0), down)]
    return [one for one in made if np.vdot(one.state, one.state).real > 1e-14]


def branches(circuit: Circuit, least: float = 1e-14) -> list[Branch]:
    """Return the branches of a circuit, one for each sequence of outcomes of a higher probability than `least`."""
    circuit.validate()
    operations = circuit.operations
    marks = {one.index: place for place, one in enumerate(operations) if one.kind == "mark"}
    state = np.zeros(1 << circuit.qubits, complex)
    state[0] = 1
    found, open_ = [], [(Branch(state), 0)]
    while open_:
        branch, place = open_.pop()
        if place == len(operations):
            found.append(branch)
            continue
        operation, place = operations[place], place + 1
        ways = [branch]
        if least > 1e-14 and operation.kind == "jump" and np.vdot(branch.state, branch.state).real < least:
            continue
        if operation.kind == "assign":
            branch.bits[operation.clbits[0]] = int(branch.holds(operation.condition))
        elif branch.holds(operation.condition) and operation.kind == "jump":
            place = marks[operation.index]
        elif branch.holds(operation.condition) and operation.kind in ("measure", "reset"):
            for k, qubit in enumerate(operation.targets):
                ways = [
                    new
                    for one in ways
                    for new in (
                        _measured(one, qubit, operation.clbits[k])
                        if operation.kind == "measure"
                        else _reset(one, qubit)
                    )
                ]
        elif branch.holds(operation.condition) and operation.kind not in ("barrier", "mark"):
            branch.state = brute_force.apply(branch.state, operation)
        open_ += [(one, place) for one in ways]
    return found


def final_state(circuit: Circuit) -> np.ndarray:
    """The state of a circuit that measures nothing."""
    (only,) = branches(circuit)
    return only.state


def distribution(circuit: Circuit, least: float = 1e-14) -> dict[int, float]:
    """The probability of each value of the classical bits, the hidden ones left out; `least` as for `branches`."""
    found: dict[int, float] = {}
    for branch in branches(circuit, least):
        key = sum(value << bit for bit, value in branch.bits.items() if bit < circuit.clbits)
        found[key] = found.get(key, 0.0) + float(np.vdot(branch.state, branch.state).real)
    return found
