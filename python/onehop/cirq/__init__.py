"""Cirq's simulator interfaces on the state vectors of onehop: `OnehopSimulator`."""

try:
    import cirq  # noqa: F401
except ImportError as error:
    raise ImportError("onehop.cirq needs Cirq: `pip install cirq-core`") from error

from onehop.cirq.simulator import OnehopSimulator

__all__ = ["OnehopSimulator"]
