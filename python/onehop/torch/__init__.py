"""onehop for PyTorch: a `torch.distributed` backend, and a hook that compresses the gradients of any backend.

The backend "onehop" is for tensors in CPU memory. Torch finds it once onehop is installed; importing this module
registers it as well:

    torch.distributed.init_process_group("onehop")

Any launcher of torch works, such as torchrun. The ranks connect through torch's store.
"""

try:
    import torch.distributed  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "onehop.torch needs PyTorch with torch.distributed, which onehop does not install: `pip install torch` "
        f"({missing})"
    ) from missing

from onehop.torch.compressed import compressed_allreduce
from onehop.torch.gradients import CompressionState, compression_hook
from onehop.torch.monitored_barrier import monitored_barrier
from onehop.torch.process_group import ProcessGroup, create_process_group
from onehop.torch.sharded import CompressedReduceScatter
from onehop.torch.store import group_from_process_group, group_from_store
from onehop_torch import register

__all__ = [
    "CompressedReduceScatter",
    "CompressionState",
    "ProcessGroup",
    "compressed_allreduce",
    "compression_hook",
    "create_process_group",
    "group_from_process_group",
    "group_from_store",
    "monitored_barrier",
]

register()
