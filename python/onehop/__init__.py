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

from onehop._core import __version__
from onehop.error import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop.exit_code import install_excepthook

if TYPE_CHECKING:
    from onehop.channel import Channels, Receiver, Sender
    from onehop.collectives import allreduce, barrier, broadcast, reduce_scatter
    from onehop.group import Group
    from onehop.permutation import permute_bits, permute_bits_one_swap_at_a_time
    from onehop.plan import Plan, PlanCounters
    from onehop.poisson import Poisson, PoissonResult
    from onehop.schedule import (
        ArraySpec,
        Count,
        HaloBlock,
        PairCount,
        Place,
        RankCount,
        Round,
        Schedule,
        Slice,
        Transfer,
        Violation,
        allgather,
        count,
        halo,
        halo_block,
        merge,
        verify,
        verify_or_throw,
    )

__all__ = [
    "ArraySpec",
    "BadInput",
    "Channels",
    "Count",
    "Error",
    "Group",
    "HaloBlock",
    "Mismatch",
    "PairCount",
    "PeerLost",
    "Place",
    "Plan",
    "PlanCounters",
    "Poisson",
    "PoissonResult",
    "RankCount",
    "Receiver",
    "Round",
    "Schedule",
    "Sender",
    "Slice",
    "Timeout",
    "Transfer",
    "Violation",
    "__version__",
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "count",
    "halo",
    "halo_block",
    "merge",
    "permute_bits",
    "permute_bits_one_swap_at_a_time",
    "reduce_scatter",
    "verify",
    "verify_or_throw",
]

# The modules of the names that are imported when they are first used.
_NAMES = {
    "channel": ("Channels", "Receiver", "Sender"),
    "collectives": ("allreduce", "barrier", "broadcast", "reduce_scatter"),
    "group": ("Group",),
    "permutation": ("permute_bits", "permute_bits_one_swap_at_a_time"),
    "plan": ("Plan", "PlanCounters"),
    "poisson": ("Poisson", "PoissonResult"),
    "schedule": (
        *("ArraySpec", "Count", "HaloBlock", "PairCount", "Place", "RankCount", "Round", "Schedule", "Slice"),
        *(
            "Transfer",
            "Violation",
            "allgather",
            "count",
            "halo",
            "halo_block",
            "merge",
            "verify",
            "verify_or_throw",
        ),
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
# All modules of the package, which are also imported when they are first used.
_MODULES = (
    *(
        "arguments",
        "array_memory",
        "call_errors",
        "channel",
        "cirq",
        "cli",
        "codec",
        "collectives",
        "compression_speed",
        "cores",
        "doctor",
    ),
    *(
        "error",
        "exit_code",
        "figure",
        "group",
        "halo_options",
        "json_file",
        "lattice",
        "launch",
        "links",
        "lossless",
        "machine",
        "options",
        "output",
    ),
    *(
        "pennylane",
        "permutation",
        "place",
        "plan",
        "point_to_point",
        "poisson",
        "poisson_options",
        "predict",
        "pytket",
        "qedc",
    ),
    *(
        "qiskit",
        "quantum",
        "quickreduce",
        "rail_lists",
        "rank_map",
        "rendezvous",
        "schedule",
        "serialization",
    ),
    *("status", "store", "text", "time_limit", "topology", "torch", "tour", "tour_lattice", "tune"),
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"onehop.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'onehop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"onehop.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


install_excepthook()
