"""`SamplerV2` and `EstimatorV2`: Qiskit's primitives on the simulator."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.primitives import (
    BaseEstimatorV2,
    BaseSamplerV2,
    BitArray,
    DataBin,
    PrimitiveResult,
    PubResult,
    SamplerPubResult,
)
from qiskit.primitives.containers import EstimatorPubLike, SamplerPubLike
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.primitives.containers.sampler_pub import SamplerPub
from qiskit.quantum_info import SparsePauliOp

from onehop.arguments import require_seed
from onehop.error import BadInput
from onehop.qiskit.active import with_measurements
from onehop.qiskit.backend import OnehopBackend
from onehop.qiskit.bindings import require_finite
from onehop.qiskit.job import DoneJob
from onehop.quantum.observables import PauliSum
from onehop.quantum.run.task import Outcome

__all__ = ["EstimatorV2", "SamplerV2"]


class SamplerV2(BaseSamplerV2):
    """Qiskit's sampler on the simulator. Collective inside a launch, as the backend.

    Parameters
    ----------
    backend : OnehopBackend, optional
        Backend that runs the circuits. Default: a new one.
    default_shots : int
        Number of shots where neither `run` nor the circuit's tuple gives one.
    seed : int, optional
        Seed of the shots. Default: a random seed for each run.
    """

    def __init__(
        self, backend: OnehopBackend | None = None, *, default_shots: int = 1024, seed: int | None = None
    ) -> None:
        self.backend = backend or OnehopBackend()
        self.default_shots = default_shots
        self.seed = None if seed is None else require_seed(seed)

    def run(self, pubs: Iterable[SamplerPubLike], *, shots: int | None = None) -> DoneJob:
        """Sample circuits; return a job that is done.

        Parameters
        ----------
        pubs : iterable
            Circuits, or tuples of a circuit, its parameters' values and a number of shots.
        shots : int, optional
            Number of shots where a tuple gives none. Default: `default_shots`.

        Returns
        -------
        DoneJob
            A job whose result has a `BitArray` for each classical register of each circuit, and `meas` with all qubits
            for a circuit without classical bits.
        """
        coerced = [SamplerPub.coerce(pub, self.default_shots if shots is None else shots) for pub in pubs]
        noisy = self.backend.options.noise_model is not None
        results = [
            self._one(
                SamplerPub(with_measurements(pub.circuit, noisy=noisy), pub.parameter_values, pub.shots),
                1000 * k,
            )
            for k, pub in enumerate(coerced)
        ]
        job_id = self.backend.executor.agree(str(uuid.uuid4()))
        return DoneJob(job_id, PrimitiveResult(results, metadata={"version": 2}))

    def _one(self, pub: SamplerPub, offset: int) -> SamplerPubResult:
        require_finite(pub.circuit, pub.parameter_values)
        bound = np.asarray(pub.parameter_values.bind_all(pub.circuit), dtype=object)
        seed = None if self.seed is None else self.seed + offset
        outcomes = self.backend.run_circuits(list(bound.ravel()), shots=pub.shots, seed_simulator=seed)
        data = {}
        for register in pub.circuit.cregs:
            places = [pub.circuit.find_bit(bit).index for bit in register]
            rows = np.array([_packed(outcome, places) for outcome in outcomes], np.uint8)
            shape = (*bound.shape, pub.shots, -(-max(len(places), 1) // 8))
            data[register.name] = BitArray(rows.reshape(shape), len(places))
        times = sum(outcome.seconds for outcome in outcomes)
        return SamplerPubResult(
            DataBin(**data, shape=bound.shape),
            metadata={"shots": pub.shots, "circuit_metadata": pub.circuit.metadata, "time_taken": times},
        )


def _packed(outcome: Outcome, places: list[int]) -> NDArray[np.uint8]:
    """Pack the bits of a register into bytes, the most significant first; return a row for each shot."""
    width = -(-max(len(places), 1) // 8)
    numbers = [sum((value >> place & 1) << k for k, place in enumerate(places)) for value in outcome.values]
    rows = np.array([list(number.to_bytes(width, "big")) for number in numbers], np.uint8)
    return rows.reshape(-1, width)[np.asarray(outcome.of_shot, np.int64)]


class EstimatorV2(BaseEstimatorV2):
    """Qiskit's estimator on the simulator. Collective inside a launch, as the backend.

    Expectation values are exact unless a precision above 0 is given.

    Parameters
    ----------
    backend : OnehopBackend, optional
        Backend that runs the circuits. Default: a new one.
    default_precision : float
        Standard deviation of the normal noise that is added to each value, in place of shot noise; 0: none.
    seed : int, optional
        Seed of the noise, and of measurements inside circuits. Default: a random seed for each run.
    """

    def __init__(
        self,
        backend: OnehopBackend | None = None,
        *,
        default_precision: float = 0.0,
        seed: int | None = None,
    ) -> None:
        self.backend = backend or OnehopBackend()
        self.default_precision = default_precision
        self.seed = None if seed is None else require_seed(seed)

    def run(self, pubs: Iterable[EstimatorPubLike], *, precision: float | None = None) -> DoneJob:
        """Evaluate observables of circuits; return a job that is done.

        Parameters
        ----------
        pubs : iterable
            Tuples of a circuit, observables, and values of parameters.
        precision : float, optional
            Standard deviation of the added noise where a tuple gives none. Default: `default_precision`.

        Returns
        -------
        DoneJob
            A job whose result has the arrays `evs` and `stds` for each tuple.

        Raises
        ------
        BadInput
            An observable is no sum of Pauli strings; or a circuit cannot be simulated, or has measurements inside, or
            on a state vector resets or noise.
        """
        default = self.default_precision if precision is None else precision
        coerced = [EstimatorPub.coerce(pub, default) for pub in pubs]
        seed = (
            self.backend.executor.agree(np.random.SeedSequence().entropy) if self.seed is None else self.seed
        )
        results = [self._one(pub, np.random.default_rng([k, seed])) for k, pub in enumerate(coerced)]
        job_id = self.backend.executor.agree(str(uuid.uuid4()))
        return DoneJob(job_id, PrimitiveResult(results, metadata={"version": 2}))

    def _one(self, pub: EstimatorPub, random: np.random.Generator) -> PubResult:
        require_finite(pub.circuit, pub.parameter_values)
        bound = np.asarray(pub.parameter_values.bind_all(pub.circuit), dtype=object)
        circuits, observables = np.broadcast_arrays(bound, np.asarray(pub.observables))
        # Each circuit runs once, with all its observables.
        of_circuit: dict[int, tuple[QuantumCircuit, list[tuple[Any, ...]]]] = {}
        for index in np.ndindex(*circuits.shape):
            of_circuit.setdefault(id(circuits[index]), (circuits[index], []))[1].append(index)
        runs = list(of_circuit.values())
        sums = [[_pauli_sum(observables[index]) for index in indices] for _, indices in runs]
        outcomes = self.backend.run_circuits(
            [circuit for circuit, _ in runs],
            observables=sums,
            seed_simulator=int(random.integers(1 << 32)),
        )
        values = np.zeros(circuits.shape)
        for (_, indices), outcome in zip(runs, outcomes, strict=True):
            for index, value in zip(indices, outcome.expectations, strict=True):
                values[index] = np.real(value)
        if pub.precision:
            values = values + random.normal(0, pub.precision, circuits.shape)
        data = DataBin(evs=values, stds=np.full(circuits.shape, float(pub.precision)), shape=circuits.shape)
        times = sum(outcome.seconds for outcome in outcomes)
        return PubResult(
            data,
            metadata={
                "target_precision": pub.precision,
                "circuit_metadata": pub.circuit.metadata,
                "time_taken": times,
            },
        )


def _pauli_sum(observable: Any) -> PauliSum:
    labels = list(observable)
    if any(set(label) - set("IXYZ") for label in labels):
        raise BadInput(f"expected observables of Pauli strings (I, X, Y, Z), found {labels[0]!r}")
    return PauliSum.of(SparsePauliOp(labels, [observable[label] for label in labels]))
