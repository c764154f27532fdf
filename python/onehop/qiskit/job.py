"""Qiskit jobs of the simulator, which are done when `run` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qiskit.primitives import BasePrimitiveJob
from qiskit.providers import JobStatus, JobV1

if TYPE_CHECKING:
    from qiskit.providers import BackendV2
    from qiskit.result import Result

__all__ = ["DoneJob", "OnehopJob"]


class _Done:
    """What jobs have in common that are done when `run` returns."""

    _result: Any

    def result(self) -> Any:
        """Return the result."""
        return self._result

    def status(self) -> JobStatus:
        """Return `JobStatus.DONE`."""
        return JobStatus.DONE

    def cancel(self) -> bool:
        """Return False: the job cannot be cancelled any more."""
        return False


class OnehopJob(_Done, JobV1):
    """A job of `OnehopBackend.run`. It is done when `run` returns, since all ranks of a launch run it together."""

    def __init__(self, backend: BackendV2, job_id: str, result: Result) -> None:
        super().__init__(backend, job_id)
        self._result = result

    def submit(self) -> None:
        """Do nothing: the job has run already."""


class DoneJob(_Done, BasePrimitiveJob[Any, JobStatus]):
    """A job of `SamplerV2.run` or `EstimatorV2.run`. It is done when `run` returns."""

    def __init__(self, job_id: str, result: Any) -> None:
        super().__init__(job_id)
        self._result = result

    def done(self) -> bool:
        """Return True: the job has run."""
        return True

    def running(self) -> bool:
        """Return False: the job has run."""
        return False

    def cancelled(self) -> bool:
        """Return False: the job was not cancelled."""
        return False

    def in_final_state(self) -> bool:
        """Return True: the status does not change any more."""
        return True
