"""The PennyLane device `onehop.qubit`."""

from onehop.pennylane.device import OnehopQubit

__all__ = ["OnehopQubit"]
