"""`OnehopBackend`: the simulator as a Qiskit backend."""

from __future__ import annotations

import secrets
import uuid
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from qiskit import QuantumCircuit
from qiskit.providers import BackendV2, Options
from qiskit.result import Result
from qiskit.result.models import ExperimentResult, ExperimentResultData
from qiskit.transpiler import Target

from onehop._core import __version__
from onehop.error import BadInput
from onehop.qiskit.job import OnehopJob
from onehop.qiskit.target import largest_state, make_target
from onehop.quantum.io.from_qiskit import from_qiskit
from onehop.quantum.run.executor import Executor, find_executor
from onehop.quantum.run.task import Outcome, Task

__all__ = ["OnehopBackend"]

_OPTIONS = ("shots", "seed_simulator", "memory", "precision")


class OnehopBackend(BackendV2):
    """A state-vector simulator whose state may be split over ranks.

    Inside a launch (`onehop launch`, or `mpiexec` with mpi4py loaded), `run` is collective: every rank calls it with
    the same circuits, and every rank gets the same result.

    Parameters
    ----------
    ranks : int, optional
        Number of ranks, a power of two. Outside a launch, so many processes start on this machine with the first run,
        and end with this process. Inside a launch, leave it out. Default: this process alone, or the launch.
    precision : str
        "double" or "single".
    seed : int, optional
        Seed of the shots for runs without `seed_simulator`. Default: a random seed for each run.

    Raises
    ------
    BadInput
        The number of ranks is no power of two or not that of the launch, or there is no such precision.

    Examples
    --------
    >>> from qiskit import QuantumCircuit
    >>> from onehop.qiskit import OnehopBackend
    >>> bell = QuantumCircuit(2)
    >>> _ = bell.h(0), bell.cx(0, 1), bell.measure_all()
    >>> counts = OnehopBackend().run(bell, shots=100, seed_simulator=1).result().get_counts()
    """

    def __init__(
        self, ranks: int | None = None, *, precision: str = "double", seed: int | None = None
    ) -> None:
        if ranks is not None and (ranks < 1 or ranks & (ranks - 1)):
            raise BadInput(f"expected a number of ranks that is a power of two, found {ranks}")
        super().__init__(
            name="onehop_simulator",
            description="State-vector simulator whose amplitudes cross between ranks at most once",
            backend_version=__version__,
        )
        _check_precision(precision)
        self.set_options(precision=precision, seed_simulator=seed)
        self.executor: Executor = find_executor(ranks)

    @classmethod
    def _default_options(cls) -> Options:
        return Options(shots=1024, seed_simulator=None, memory=False, precision="double")

    @cached_property
    def target(self) -> Target:
        """Target for Qiskit's transpiler: all named gates between all qubits that fit into this machine's memory."""
        return make_target(
            self.executor.agree(largest_state(8 if self.options.precision == "single" else 16))
        )

    @property
    def max_circuits(self) -> None:
        """None: a run may have any number of circuits."""
        return

    def run(self, run_input: QuantumCircuit | Sequence[QuantumCircuit], **options: Any) -> OnehopJob:
        """Simulate circuits. Collective inside a launch.

        Parameters
        ----------
        run_input : QuantumCircuit or sequence of QuantumCircuit
            Circuits with classical bits and without unbound parameters. They need no transpilation.
        **options
            `shots`; `seed_simulator` (circuit k of a list takes this plus k); `memory` (whether to keep the outcome of
            each shot); `precision`. Other options cause a warning.

        Returns
        -------
        OnehopJob
            A job that is done. Counts in its result have hexadecimal keys in Qiskit's order of bits.

        Raises
        ------
        BadInput
            A circuit cannot be simulated or has no classical bits, or an option is invalid.
        """
        circuits = [run_input] if isinstance(run_input, QuantumCircuit) else list(run_input)
        chosen = self._chosen(options)
        for circuit in circuits:
            if not isinstance(circuit, QuantumCircuit):
                raise BadInput(f"expected a Qiskit QuantumCircuit, found {type(circuit).__name__}")
            if circuit.num_clbits == 0:
                raise BadInput(
                    f"circuit {circuit.name} has no classical bits, so it has no counts; add measurements "
                    "(`measure_all`), or use `EstimatorV2` for expectation values"
                )
        outcomes, seeds = self.run_circuits(circuits, **chosen)
        experiments = [
            _experiment(circuit, outcome, seed, chosen["shots"], keep=chosen["memory"])
            for circuit, outcome, seed in zip(circuits, outcomes, seeds, strict=True)
        ]
        job_id = self.executor.agree(str(uuid.uuid4()))
        result = Result(
            backend_name=self.name,
            backend_version=self.backend_version,
            job_id=job_id,
            success=True,
            results=experiments,
            status="COMPLETED",
            time_taken=sum(outcome.seconds for outcome in outcomes),
        )
        return OnehopJob(self, job_id, result)

    def run_circuits(
        self,
        circuits: Sequence[QuantumCircuit],
        *,
        shots: int = 0,
        seed_simulator: int | None = None,
        precision: str | None = None,
        observables: Sequence[Sequence[Any]] | None = None,
        **_rest: Any,
    ) -> tuple[list[Outcome], list[int]]:
        """Run circuits on the executor. Collective inside a launch.

        Parameters
        ----------
        circuits : sequence of QuantumCircuit
            Circuits to run.
        shots : int
            Number of shots of each circuit.
        seed_simulator : int, optional
            Seed of the first circuit; circuit k takes this plus k. Default: a random seed.
        precision : str, optional
            "double" or "single". Default: that of the backend.
        observables : sequence of sequences, optional
            Observables of each circuit.

        Returns
        -------
        list of Outcome, list of int
            Outcome and seed of each circuit.
        """
        seed = self.executor.agree(secrets.randbits(32)) if seed_simulator is None else int(seed_simulator)
        sums = observables or [()] * len(circuits)
        converted = [from_qiskit(circuit) for circuit in circuits]
        for one in converted:
            one.require_bound()
        tasks = [
            Task(
                one,
                shots,
                seed + k,
                tuple(sums[k]),
                precision or self.options.precision,
            )
            for k, one in enumerate(converted)
        ]
        return self.executor.run(tasks), [task.seed for task in tasks]

    def _chosen(self, options: dict[str, Any]) -> dict[str, Any]:
        for name in options:
            if name not in _OPTIONS:
                warnings.warn(f"onehop_simulator has no option {name} and ignores it", stacklevel=3)
        given = {name: value for name, value in options.items() if name in _OPTIONS and value is not None}
        chosen = {**{name: getattr(self.options, name) for name in _OPTIONS}, **given}
        if not isinstance(chosen["shots"], int) or chosen["shots"] < 1:
            raise BadInput(f"expected at least 1 shot, found {chosen['shots']!r}")
        _check_precision(chosen["precision"])
        return chosen


def _check_precision(precision: str) -> None:
    if precision not in ("single", "double"):
        raise BadInput(f"expected precision single or double, found {precision!r}")


def _experiment(
    circuit: QuantumCircuit, outcome: Outcome, seed: int, shots: int, *, keep: bool
) -> ExperimentResult:
    names = [hex(value) for value in outcome.values]
    memory = [names[place] for place in outcome.of_shot] if keep else None
    return ExperimentResult(
        shots=shots,
        success=True,
        data=ExperimentResultData(
            counts={name: int(number) for name, number in zip(names, outcome.counts, strict=True)},
            memory=memory,
        ),
        status="DONE",
        seed=seed,
        header={
            "name": circuit.name,
            "n_qubits": circuit.num_qubits,
            "memory_slots": circuit.num_clbits,
            "creg_sizes": [[register.name, register.size] for register in circuit.cregs],
            "qreg_sizes": [[register.name, register.size] for register in circuit.qregs],
            "global_phase": float(circuit.global_phase),
            "metadata": circuit.metadata or {},
        },
        time_taken=max(outcome.seconds, 1e-9),
        ranks=outcome.ranks,
        bytes_moved=outcome.bytes_moved,
    )
