"""The PennyLane device `onehop.qubit`."""

try:
    from onehop.pennylane.device import OnehopQubit
except ImportError as error:
    raise ImportError(f"onehop.pennylane needs PennyLane 0.45: `pip install pennylane` ({error})") from error

__all__ = ["OnehopQubit"]
