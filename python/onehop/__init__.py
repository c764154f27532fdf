"""onehop moves data between the ranks of a distributed simulation in one hop."""

from onehop import _current_folder  # noqa: F401, first, so that no later import comes from the current folder
from onehop._core import __version__
from onehop.channel import Channels, Receiver, Sender
from onehop.collectives import allreduce, barrier, broadcast, reduce_scatter
from onehop.error import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop.exit_code import install_excepthook
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

install_excepthook()
