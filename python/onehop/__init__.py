"""onehop moves data between the ranks of a distributed simulation in one hop.

Importing the package is quick: a name of `__all__`, or a module such as `onehop.quantum`, is imported when it is first
used.
"""

from __future__ import annotations

# First, so that no later import comes from the current folder, and Ctrl-C meanwhile ends the command quietly.
from onehop import _current_folder, _interrupt  # noqa: F401

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

try:
    from onehop._core import __version__
except ModuleNotFoundError as missing:
    if missing.name != "onehop._core":
        raise
    remedy = "run `make build` in the checkout, or install onehop by pip with this Python"
    raise ImportError(f"onehop's extension is not built for this Python: {remedy}") from None
from onehop.error import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop.exit_code import install_excepthook

if TYPE_CHECKING:
    from onehop.array_movement import allgather as allgather
    from onehop.array_movement import alltoall as alltoall
    from onehop.array_movement import broadcast as broadcast
    from onehop.array_movement import gather as gather
    from onehop.array_movement import scatter as scatter
    from onehop.channel import Channels as Channels
    from onehop.channel import Receiver as Receiver
    from onehop.channel import Sender as Sender
    from onehop.collectives import allreduce as allreduce
    from onehop.collectives import barrier as barrier
    from onehop.collectives import reduce as reduce
    from onehop.collectives import reduce_scatter as reduce_scatter
    from onehop.collectives import scan as scan
    from onehop.group import Group as Group
    from onehop.messages import isend as isend
    from onehop.messages import receive as receive
    from onehop.messages import send as send
    from onehop.permutation import *  # noqa: F403
    from onehop.plan import *  # noqa: F403
    from onehop.poisson import Poisson as Poisson
    from onehop.poisson import PoissonResult as PoissonResult
    from onehop.schedule import *  # noqa: F403

# The names that are imported when they are first used, by their modules.
_NAMES = {
    "channel": ["Channels", "Receiver", "Sender"],
    "array_movement": ["allgather", "alltoall", "broadcast", "gather", "scatter"],
    "collectives": ["allreduce", "barrier", "reduce", "reduce_scatter", "scan"],
    "messages": ["isend", "receive", "send"],
    "group": ["Group"],
    "permutation": ["permute_bits", "permute_bits_one_swap_at_a_time"],
    "plan": ["Plan", "PlanCounters"],
    "poisson": ["Poisson", "PoissonResult"],
    "schedule": [
        *("ArraySpec", "Count", "HaloBlock", "PairCount", "Place", "RankCount", "Round", "Schedule", "Slice"),
        *("Transfer", "Violation", "count", "halo", "halo_block", "merge", "verify"),
        "verify_or_throw",
    ],
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
# The public modules, which are imported in the same way.
_MODULES = (
    *("channel", "cirq", "codec", "collectives", "device", "error", "group", "lattice", "launch", "lossless"),
    *("machine", "messages", "patterns", "pennylane", "permutation", "plan", "poisson", "predict", "pytket"),
    *("qiskit", "quantum", "quickreduce", "schedule", "topology", "torch"),
)

__all__ = ["BadInput", "Error", "Mismatch", "PeerLost", "Timeout", "__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"onehop.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'onehop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"onehop.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


install_excepthook()
