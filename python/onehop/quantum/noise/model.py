"""`NoiseModel`, which says which channel follows which gate, and the warning about gates that none follows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from onehop.arguments import instance, items, whole_numbers
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Operation, gate_names
from onehop.quantum.noise.channel import Channel, channel, check_probability, depolarizing
from onehop.text import counted, shortened

__all__ = ["NoiseModel"]

#: Names of gates without noise, and the qubits of the first of each.
Without = Mapping[str, Sequence[int]]


def warn_without(
    found: Without, remedy: str = "add a channel after these gates, or one without `gates` after all"
) -> None:
    """Warn about gates without noise, at the line that called onehop: one text that names each of them once."""
    if not found:
        return
    gates = ", ".join(f"{name} on {', '.join(map(str, qubits))}" for name, qubits in found.items())
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("onehop."):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"expected noise after every gate of a run with a noise model, found none after {gates}; {remedy}",
        stacklevel=level,
    )


@dataclass
class _Rule:
    """A channel, and the gates and qubits that it follows; None: all."""

    channel: Channel
    joint: float | None  # parameter of a depolarizing channel on all qubits of a gate
    gates: frozenset[str] | None
    qubits: frozenset[int] | None

    def on(self, qubits: int) -> Channel:
        """Return the channel after a gate on so many qubits."""
        return self.channel if self.joint is None else _depolarizing(self.joint, qubits)


_depolarizing = cache(depolarizing)


class NoiseModel:
    """The channels that follow each gate, and the readout errors of measurements.

    Examples
    --------
    >>> noise = NoiseModel().add("depolarizing", 0.01, gates=["cx"]).add("amplitude_damping", 0.002).readout(0.02)
    """

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._readout: list[tuple[float, float, frozenset[int] | None]] = []

    def check_names(self, circuit: Circuit) -> None:
        """Check the gate names of the rules against a circuit.

        Raises
        ------
        BadInput
            A rule names a gate that is neither in the circuit nor known to `gate`.
        """
        present = {
            operation.name
            for operation in instance(circuit, Circuit, "circuit").operations
            if operation.is_gate
        }
        known = present.union(name for name, _, _ in gate_names())
        for rule in self._rules:
            for name in sorted((rule.gates or frozenset()) - known, key=str):
                raise BadInput(
                    f"noise after gate {name!r}: there is no such gate; this circuit has {', '.join(sorted(present))}"
                )

    def add(
        self,
        what: str | Channel,
        *parameters: Any,
        gates: Sequence[str] | None = None,
        qubits: Sequence[int] | None = None,
    ) -> NoiseModel:
        """Add a channel after gates; return the model.

        Parameters
        ----------
        what : str or Channel
            Name of a channel, or a channel. `depolarizing` by name acts jointly on all qubits of the gate; other
            channels on one qubit act on each qubit of the gate separately.
        *parameters
            Parameters of a named channel.
        gates : sequence of str, optional
            Names of the gates that the channel follows. Default: all gates.
        qubits : sequence of int, optional
            Restrict the channel to gates all of whose qubits are in this list.

        Raises
        ------
        BadInput
            As for `channel`; `gates` is one text.
        """
        if isinstance(gates, str):
            raise BadInput(f"gates: expected a list of names, found the text {gates!r}; write [{gates!r}]")
        made = channel(what, *parameters) if isinstance(what, str) else what
        if not isinstance(made, Channel):
            raise BadInput(
                f"expected the name of a channel or a Channel, found {type(what).__name__}; "
                "Channel(matrices) makes one of Kraus operators"
            )
        is_joint = made is not what and made.name == "depolarizing" and len(parameters) == 1
        names = None if gates is None else frozenset(items(gates, "gates"))
        self._rules.append(_Rule(made, float(parameters[0]) if is_joint else None, names, _set_of(qubits)))
        return self

    def readout(
        self, one_for_zero: float, zero_for_one: float | None = None, *, qubits: Sequence[int] | None = None
    ) -> NoiseModel:
        """Set the readout errors of measurements; return the model.

        Parameters
        ----------
        one_for_zero : float
            Probability to read 1 for a 0.
        zero_for_one : float, optional
            Probability to read 0 for a 1. Default: the same.
        qubits : sequence of int, optional
            Qubits that the errors apply to. Default: all qubits. The last call for a qubit counts.

        Raises
        ------
        BadInput
            A probability is outside [0, 1].
        """
        other = one_for_zero if zero_for_one is None else zero_for_one
        probabilities = check_probability("readout", one_for_zero), check_probability("readout", other)
        self._readout.append((*probabilities, _set_of(qubits)))
        return self

    def after(self, operation: Operation) -> list[tuple[Channel, list[int]]]:
        """Return the channels that follow an operation, with the qubits of each.

        Raises
        ------
        BadInput
            A channel on several qubits follows a gate on another number of qubits.
        """
        if not instance(operation, Operation, "operation").is_gate:
            return []
        touched = [*operation.controls, *operation.targets]
        found = []
        for rule in self._rules:
            if rule.gates is not None and operation.name not in rule.gates:
                continue
            if not touched or (rule.qubits is not None and not rule.qubits.issuperset(touched)):
                continue
            one = rule.on(len(touched))
            if one.qubits == len(touched):
                found.append((one, touched))
            elif one.qubits == 1:
                found.extend((one, [qubit]) for qubit in touched)
            else:
                raise BadInput(
                    f"a channel on {counted(one.qubits, 'qubit')} ({one.name}) cannot follow {operation.name} on "
                    f"{len(touched)}"
                )
        return found

    def without(self, circuit: Circuit) -> dict[str, list[int]]:
        """Return the names of the gates of a circuit that no channel follows, and the qubits of the first of each.

        A model without channels has none of them: it is about measurements.
        """
        found: dict[str, list[int]] = {}
        if any(rule.gates is None and rule.qubits is None for rule in self._rules) or not self._rules:
            return found
        for operation in circuit.operations:
            touched = [*operation.controls, *operation.targets]
            if operation.is_gate and touched and operation.name not in found and not self.after(operation):
                found[operation.name] = touched
        return found

    def on(self, qubits: Sequence[int]) -> NoiseModel:
        """Return the model for a part of its qubits, of which qubit k is qubits[k] here."""
        places = {qubit: place for place, qubit in enumerate(whole_numbers(qubits, "qubits"))}

        def here(some: frozenset[int] | None) -> frozenset[int] | None:
            return None if some is None else frozenset(places[one] for one in some if one in places)

        result = NoiseModel()
        result._rules = [replace(rule, qubits=here(rule.qubits)) for rule in self._rules]
        result._readout = [(zero, one, here(some)) for zero, one, some in self._readout]
        return result

    def misread(self, qubit: int) -> tuple[float, float]:
        """Return the probabilities to read 1 for 0 and 0 for 1 on a qubit."""
        for zero, one, qubits in reversed(self._readout):
            if qubits is None or qubit in qubits:
                return zero, one
        return 0.0, 0.0

    def __repr__(self) -> str:
        parts = [
            rule.channel.name + (f" after {', '.join(sorted(rule.gates))}" if rule.gates is not None else "")
            for rule in self._rules
        ]
        parts += ["readout"] * bool(self._readout)
        return f"<NoiseModel: {shortened('; '.join(parts) or 'no noise', 200)}>"

    @classmethod
    def parse(cls, text: str) -> NoiseModel:
        """Parse a model such as `depolarizing=0.01:cx,cz; amplitude_damping=0.002; readout=0.02,0.03`.

        Raises
        ------
        BadInput
            A part is not of the form NAME=NUMBERS or NAME=NUMBERS:GATES, a name is unknown, or a number is out of
            range.
        """
        model = cls()
        parts = [part.strip() for part in instance(text, str, "text").split(";") if part.strip()]
        if not parts:
            raise BadInput(f"expected noise as NAME=NUMBERS or NAME=NUMBERS:GATES, found {text!r}")
        for part in parts:
            name, equals, rest = part.partition("=")
            numbers, _, gates = rest.partition(":")
            try:
                values = [float(number) for number in numbers.split(",")]
            except ValueError:
                values = []
            if not equals or not values:
                raise BadInput(f"expected noise as NAME=NUMBERS or NAME=NUMBERS:GATES, found '{part}'")
            if name.strip() == "readout" and len(values) <= 2:
                model.readout(*values)
            elif name.strip() == "thermal_relaxation" and 3 <= len(values) <= 4:
                model.add("thermal_relaxation", *values, gates=_names(gates))
            elif len(values) > 1 or name.strip() in ("pauli", "thermal_relaxation"):
                if name.strip() != "pauli" or len(values) != 3:
                    raise BadInput(
                        f"'{part}': expected one number, two for readout, three for pauli, or three or four for "
                        "thermal_relaxation"
                    )
                weights = dict(zip("XYZ", values, strict=True))
                model.add("pauli", weights, gates=_names(gates))
            else:
                model.add(name.strip(), values[0], gates=_names(gates))
        return model


def _set_of(qubits: Sequence[int] | None) -> frozenset[int] | None:
    return None if qubits is None else frozenset(whole_numbers(qubits, "qubits"))


def _names(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",")] if text.strip() else None
