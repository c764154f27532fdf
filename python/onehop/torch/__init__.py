"""onehop for PyTorch: a `torch.distributed` backend, and a hook that compresses the gradients of any backend.

Importing this module (or installing onehop: torch then knows by itself) registers the backend "onehop" for tensors on
the processor:

    torch.distributed.init_process_group("onehop")

Started by torchrun or whatever else torch knows; ranks meet through torch's store.
"""

from onehop.torch.gradients import CompressionState, compressed_allreduce, group_from_process_group
from onehop.torch.process_group import ProcessGroup, create_process_group
from onehop.torch.store import group_from_store
from onehop_torch import register

__all__ = [
    "CompressionState",
    "ProcessGroup",
    "compressed_allreduce",
    "create_process_group",
    "group_from_process_group",
    "group_from_store",
]

register()
