"""Jobs that are done: the simulator answers before `run` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qiskit.primitives import BasePrimitiveJob
from qiskit.providers import JobStatus, JobV1

if TYPE_CHECKING:
    from qiskit.providers import BackendV2
    from qiskit.result import Result

__all__ = ["DoneJob", "OnehopJob"]


class OnehopJob(JobV1):
    """A job of `OnehopBackend.run`. It is done when `run` returns, since all ranks of a launch run it together."""

    def __init__(self, backend: BackendV2, job_id: str, result: Result) -> None:
        super().__init__(backend, job_id)
        self._result = result

    def submit(self) -> None:
        """Nothing is left to do."""

    def result(self) -> Result:
        """What came of it."""
        return self._result

    def status(self) -> JobStatus:
        """Done."""
        return JobStatus.DONE

    def cancel(self) -> bool:
        """It is too late for that."""
        return False


class DoneJob(BasePrimitiveJob[Any, JobStatus]):
    """A job of `SamplerV2.run` or `EstimatorV2.run`, done as well."""

    def __init__(self, job_id: str, result: Any) -> None:
        super().__init__(job_id)
        self._result = result

    def result(self) -> Any:
        """What came of it."""
        return self._result

    def status(self) -> JobStatus:
        """Done."""
        return JobStatus.DONE

    def done(self) -> bool:
        """Yes."""
        return True

    def running(self) -> bool:
        """No longer."""
        return False

    def cancelled(self) -> bool:
        """No."""
        return False

    def in_final_state(self) -> bool:
        """Yes."""
        return True

    def cancel(self) -> bool:
        """It is too late for that."""
        return False
