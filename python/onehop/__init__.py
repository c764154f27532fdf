"""onehop moves data between the ranks of a distributed simulation in one hop."""

from onehop._core import __version__
from onehop.error import BadInput, Error, Mismatch, PeerLost, Timeout

__all__ = ["BadInput", "Error", "Mismatch", "PeerLost", "Timeout", "__version__"]
