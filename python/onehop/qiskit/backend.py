"""`OnehopBackend`: the simulator as a Qiskit backend."""

from __future__ import annotations

import secrets
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qiskit import QuantumCircuit
from qiskit.circuit import Qubit
from qiskit.providers import BackendV2, Options
from qiskit.result import Result
from qiskit.transpiler import Target

from onehop._core import __version__
from onehop.arguments import require_seed, whole_number
from onehop.error import BadInput
from onehop.qiskit.active import active_qubits, with_measurements
from onehop.qiskit.bindings import bound_circuits
from onehop.qiskit.job import OnehopJob
from onehop.qiskit.noise import basis_of, read_noise
from onehop.qiskit.results import experiment_result
from onehop.qiskit.target import largest_state, make_target
from onehop.quantum.io.from_qiskit import program_from_qiskit
from onehop.quantum.run.executor import Executor, find_executor
from onehop.quantum.run.task import Outcome, Task
from onehop.quantum.steps import STATE_KINDS, Program, Save, require_certain
from onehop.text import counted

__all__ = ["OnehopBackend"]

_DEFAULTS = {
    "shots": 1024,
    "seed_simulator": None,
    "memory": False,
    "precision": "double",
    "device": "cpu",
    "method": "automatic",
    "noise_model": None,
}
_METHODS = ("automatic", "statevector", "density_matrix")
_LARGEST_DENSITY = 12  # qubits up to which "automatic" simulates noise on a density matrix


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
    device : str
        Where states are, as for `onehop.quantum.State`: "cpu", or on cards, "cuda" or "hip".
    seed : int, optional
        Seed of the shots for runs without `seed_simulator`. Default: a random seed for each run.
    method : str
        "statevector", "density_matrix", or "automatic": a density matrix for circuits of at most 12 qubits with noise
        and for those that set one, otherwise a state vector, with noise as trajectories, one for each shot.
    noise_model : NoiseModel of qiskit_aer.noise or of onehop.quantum, optional
        Noise of all runs. With one of qiskit-aer, `target` has the gates of its `basis_gates` only. Default: none.

    Raises
    ------
    BadInput
        The number of ranks is no power of two or not that of the launch, there is no such precision or method, or the
        noise model is none of qiskit-aer or onehop.

    Examples
    --------
    >>> from qiskit import QuantumCircuit
    >>> from onehop.qiskit import OnehopBackend
    >>> bell = QuantumCircuit(2)
    >>> _ = bell.h(0), bell.cx(0, 1), bell.measure_all()
    >>> counts = OnehopBackend().run(bell, shots=100, seed_simulator=1).result().get_counts()
    """

    def __init__(
        self,
        ranks: int | None = None,
        *,
        precision: str = "double",
        seed: int | None = None,
        method: str = "automatic",
        noise_model: Any = None,
        device: str = "cpu",
    ) -> None:
        if ranks is not None and (ranks < 1 or ranks & (ranks - 1)):
            raise BadInput(f"expected a number of ranks that is a power of two, found {ranks}")
        super().__init__(
            name="onehop_simulator",
            description="State-vector simulator whose amplitudes cross between ranks at most once",
            backend_version=__version__,
        )
        _check_choice("precision", precision, ("single", "double"))
        _check_choice("method", method, _METHODS)
        read_noise(noise_model)
        self.set_options(
            precision=precision, seed_simulator=seed, method=method, noise_model=noise_model, device=device
        )
        self.executor: Executor = find_executor(ranks)
        self._targets: dict[tuple[str, frozenset[str] | None], Target] = {}

    def __repr__(self) -> str:
        return f"<OnehopBackend: {counted(self.executor.size, 'rank')}, {self.options.precision}>"

    @classmethod
    def _default_options(cls) -> Options:
        return Options(**_DEFAULTS)

    @property
    def target(self) -> Target:
        """Target for Qiskit's transpiler: all named gates between all qubits that fit into this machine's memory.

        With a noise model of qiskit-aer it has the gates of the model's `basis_gates` only, so that transpiled circuits
        have gates with noise.
        """
        precision, basis = self.options.precision, basis_of(self.options.noise_model)
        if (precision, basis) not in self._targets:
            qubits = self.executor.agree(largest_state(8 if precision == "single" else 16))
            self._targets[precision, basis] = make_target(qubits, basis)
        return self._targets[precision, basis]

    @property
    def max_circuits(self) -> None:
        """None: a run may have any number of circuits."""
        return

    def run(
        self,
        run_input: QuantumCircuit | Sequence[QuantumCircuit],
        parameter_binds: Sequence[Mapping[Any, Any]] | None = None,
        **options: Any,
    ) -> OnehopJob:
        """Simulate circuits. Collective inside a launch.

        Parameters
        ----------
        run_input : QuantumCircuit or sequence of QuantumCircuit
            Circuits. They need no transpilation. In a circuit with neither classical bits nor instructions that save
            data, all qubits are measured at the end, as by `measure_all`.
        parameter_binds : sequence of mappings, optional
            For each circuit its parameters with a list of values each; the result has an experiment for each of the
            values. Default: the circuits have no parameters.
        **options
            `shots`; `seed_simulator` (circuit k of a list takes this plus k); `memory` (whether to keep the outcome of
            each shot); `precision`, `device`, `method` and `noise_model` as for the constructor. Other
            options cause a warning.

        Returns
        -------
        OnehopJob
            A job that is done. Counts in its result have hexadecimal keys in Qiskit's order of bits.

        Raises
        ------
        BadInput
            A circuit cannot be simulated, `parameter_binds` does not fit, or an option is invalid.
        """
        circuits = [run_input] if isinstance(run_input, QuantumCircuit) else list(run_input)
        for circuit in circuits:
            if not isinstance(circuit, QuantumCircuit):
                raise BadInput(f"expected a Qiskit QuantumCircuit, found {type(circuit).__name__}")
        chosen = self._chosen(options)
        noisy = chosen["noise_model"] is not None
        circuits = [with_measurements(one, noisy=noisy) for one in bound_circuits(circuits, parameter_binds)]
        keep = chosen.pop("memory")
        tasks = self._tasks(circuits, **chosen)
        outcomes = self.executor.run(tasks)
        job_id = self.executor.agree(str(uuid.uuid4()))
        result = Result(
            backend_name=self.name,
            backend_version=self.backend_version,
            job_id=job_id,
            success=True,
            results=[
                experiment_result(circuit, outcome, task, keep_memory=keep)
                for circuit, outcome, task in zip(circuits, outcomes, tasks, strict=True)
            ],
            status="COMPLETED",
            time_taken=sum(outcome.seconds for outcome in outcomes),
            metadata={"ranks": self.executor.size},
        )
        return OnehopJob(self, job_id, result)

    def run_circuits(
        self,
        circuits: Sequence[QuantumCircuit],
        *,
        shots: int = 0,
        seed_simulator: int | None = None,
        observables: Sequence[Sequence[Any]] | None = None,
    ) -> list[Outcome]:
        """Run circuits with the options of the backend. Collective inside a launch.

        Parameters
        ----------
        circuits : sequence of QuantumCircuit
            Circuits to run.
        shots : int
            Number of shots of each circuit.
        seed_simulator : int, optional
            Seed of the first circuit; circuit k takes this plus k. Default: a random seed.
        observables : sequence of sequences, optional
            Observables of each circuit.

        Returns
        -------
        list of Outcome
            Outcome of each circuit.
        """
        options = {
            name: getattr(self.options, name) for name in ("precision", "method", "noise_model", "device")
        }
        tasks = self._tasks(
            circuits, shots=shots, seed_simulator=seed_simulator, observables=observables, **options
        )
        outcomes = self.executor.run(tasks)
        return [
            replace(outcome, expectations=[float(one.groups[""][0]) for one in outcome.saved.values()])
            if task.program is not None and not task.observables
            else outcome
            for task, outcome in zip(tasks, outcomes, strict=True)
        ]

    def _tasks(
        self,
        circuits: Sequence[QuantumCircuit],
        *,
        shots: int,
        seed_simulator: int | None,
        precision: str,
        method: str,
        noise_model: Any,
        device: str,
        observables: Sequence[Sequence[Any]] | None = None,
    ) -> list[Task]:
        seed = (
            self.executor.agree(secrets.randbits(32))
            if seed_simulator is None
            else require_seed(seed_simulator, "seed_simulator")
        )
        noise = read_noise(noise_model)
        tasks = []
        for k, circuit in enumerate(circuits):
            prepared = circuit if circuit.num_qubits else circuit.copy()
            if not circuit.num_qubits:
                prepared.add_bits([Qubit()])  # on which nothing acts
            if noise is None:
                active = None if observables else active_qubits(prepared)
                program = program_from_qiskit(prepared, None, active)
            else:
                program = noise.program(prepared, keep_idle=bool(observables))
            program.circuit.require_bound()
            sums = tuple(observables[k]) if observables else ()
            how = _method_for(program, method)
            if sums:
                require_certain(program.circuit, mixed=how == "density_matrix")
            task = Task(program.circuit, shots, (seed + k) % (1 << 64), sums, precision, device=device)
            if not program.is_plain or how == "density_matrix":
                for number, one in enumerate(sums):
                    program.save(Save("expval", f"observable {number}", "average", observable=one), [])
                task = replace(task, program=program, method=how, observables=())
            tasks.append(task)
        if noise is not None and self.executor.rank == 0:
            noise.warn()
        return tasks

    def _chosen(self, options: dict[str, Any]) -> dict[str, Any]:
        for name in options:
            if name not in _DEFAULTS:
                warnings.warn(f"onehop_simulator has no option {name} and ignores it", stacklevel=3)
        given = {name: value for name, value in options.items() if name in _DEFAULTS and value is not None}
        chosen = {**{name: getattr(self.options, name) for name in _DEFAULTS}, **given}
        chosen["shots"] = whole_number(chosen["shots"], "shots", 1, 1 << 31)
        _check_choice("precision", chosen["precision"], ("single", "double"))
        _check_choice("method", chosen["method"], _METHODS)
        return chosen


def _check_choice(what: str, found: Any, allowed: Sequence[str]) -> None:
    if found not in allowed:
        raise BadInput(f"expected {what} {' or '.join(allowed)}, found {found!r}")


def _method_for(program: Program, asked: str) -> str:
    """Choose the method of a program."""
    if asked != "automatic":
        return asked
    if "set_density_matrix" in program.kinds:
        return "density_matrix"
    needs_vector = any(STATE_KINDS[save.kind] == "statevector" for save in program.saves)
    if "channel" in program.kinds and not needs_vector and program.circuit.qubits <= _LARGEST_DENSITY:
        return "density_matrix"
    return "statevector"
