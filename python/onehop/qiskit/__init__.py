"""Qiskit's interfaces to the simulator: `OnehopBackend`, `SamplerV2`, `EstimatorV2`."""

try:
    import qiskit  # noqa: F401
except ImportError as error:
    raise ImportError("onehop.qiskit needs Qiskit: `pip install qiskit`") from error

from onehop.qiskit.backend import OnehopBackend
from onehop.qiskit.job import DoneJob, OnehopJob
from onehop.qiskit.primitives import EstimatorV2, SamplerV2

__all__ = ["DoneJob", "EstimatorV2", "OnehopBackend", "OnehopJob", "SamplerV2"]
