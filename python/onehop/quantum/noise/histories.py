"""Noisy circuits without measurements inside, also with resets: prepared for the trajectories of the C++ library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.noisy_run import RESET, ChannelStep, Item
from onehop.quantum.noise.trajectories import READ_EVENT, counts_of, outcome_bits, split_last
from onehop.quantum.observables import PauliSum
from onehop.quantum.random_numbers import uniform
from onehop.quantum.state import core_sum, real_where_real
from onehop.quantum.steps import Apply, Step

__all__ = ["Histories", "has_gates_only"]


def has_gates_only(
    circuit: Circuit, items: Sequence[Item | Step] | None = None, *, resets: bool = False
) -> bool:
    """Whether a circuit has only gates and channels without conditions, and measurements at its end.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    items : sequence of Item, optional
        Its operations and steps. Default: its operations.
    resets : bool
        Whether it may also have resets, which are channels.
    """
    kept, _ = split_last(
        circuit.operations if items is None else items,
        circuit.qubits,
        circuit.clbits + circuit.hidden_clbits,
    )
    return all(
        not item.condition
        and (
            item.is_gate or (resets and item.kind == "reset")
            if isinstance(item, Operation)
            else isinstance(item, (ChannelStep, Apply))
        )
        for item in kept
    )


@dataclass
class Histories:
    """Trajectories of a circuit, grouped by the Kraus operators that they drew.

    Attributes
    ----------
    core : _core.TrajectoryResult
        Result of the library.
    bits : array of uint8, shape (shots, clbits)
        Classical bits of each shot.
    """

    core: _core.TrajectoryResult
    bits: NDArray[np.uint8]
    circuit: Circuit
    sums: Sequence[PauliSum]

    @classmethod
    def of(
        cls,
        circuit: Circuit,
        noise: NoiseModel,
        group: Group,
        *,
        trajectories: int,
        shots: int,
        seed: int,
        precision: str,
        sums: Sequence[PauliSum],
        threads: int,
        memory: int,
        items: Sequence[Item] | None = None,
    ) -> Histories:
        """Run the trajectories of a circuit for which `has_gates_only` holds, also with resets. Collective."""
        operations, last = split_last(
            circuit.operations if items is None else items, circuit.qubits, circuit.clbits
        )
        width, measured = outcome_bits(circuit, last, items)
        gates = Circuit(circuit.qubits, width)
        channels: dict[int, tuple[int, Channel]] = {}
        uses = []
        for operation in operations:
            if isinstance(operation, Operation) and operation.is_gate:
                gates.add(operation)
                following = noise.after(operation)
            else:
                following = (
                    [(operation.channel, operation.qubits)]
                    if isinstance(operation, ChannelStep)
                    else [(RESET, [qubit]) for qubit in operation.targets]
                )
                if not len(gates):  # a channel follows a gate
                    gates.add(Operation("global_phase", "gphase", []))
            for one, qubits in following:
                number = channels.setdefault(id(one), (len(channels), one))[0]
                uses.append((len(gates) - 1, number, list(qubits)))
        core = _core.simulate_trajectories(
            gates,
            [_numbers(one) for _, one in channels.values()],
            uses,
            measured,
            group,
            trajectories=trajectories,
            shots=shots,
            seed=seed,
            precision=precision,
            observables=[core_sum(one) for one in sums],
            threads=threads,
            memory=memory,
        )
        bits = np.zeros((shots, width), np.uint8)
        for bit, qubit in measured:
            read = (core.outcomes[:, bit // 64] >> np.uint64(bit % 64) & np.uint64(1)).astype(np.uint8)
            zero, one = noise.misread(qubit)
            if zero > 0 or one > 0:
                numbers = uniform(seed, np.arange(shots), READ_EVENT + bit)
                read ^= (numbers < np.where(read, one, zero)).astype(np.uint8)
            bits[:, bit] = read
        return cls(core, bits, circuit, sums)

    @property
    def runs(self) -> int:
        """Number of histories."""
        return len(self.core.counts)

    def averages(self) -> tuple[list[float | complex], list[float]]:
        """Return the average of each observable over the trajectories, and the standard errors."""
        counts = np.array(self.core.counts, float)
        weights = counts / counts.sum()
        values = self.core.values
        average = weights @ values
        errors = np.sqrt(weights @ np.abs(values - average) ** 2 / max(counts.sum() - 1, 1))
        return real_where_real(self.sums, average.tolist()), errors.tolist()

    def counts(self) -> dict[str, int]:
        """Return the number of shots with each outcome; bits as in `Result.counts`."""
        return counts_of(self.bits, self.circuit.registers)


def _numbers(channel: Channel) -> tuple[Any, Any]:
    probabilities = [] if channel.probabilities is None else channel.probabilities.tolist()
    return [matrix.reshape(-1).tolist() for matrix in channel.kraus], probabilities
