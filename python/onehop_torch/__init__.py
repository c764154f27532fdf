"""Makes the backend "onehop" known to torch.distributed whenever torch is imported; does nothing where that cannot be.

A package of its own, because torch refuses to be imported when what an entry point names fails, or takes its time.
"""

from __future__ import annotations

from typing import Any


def _create(options: Any, _: Any) -> Any:
    from onehop.torch.process_group import create_process_group

    where = options.store, options.group_rank, options.group_size, options.timeout
    return create_process_group(*where, options.global_ranks_in_group)


def register() -> None:
    """Register the backend, if torch was built with torch.distributed."""
    try:
        import torch.distributed as dist

        if dist.is_available() and "onehop" not in dist.Backend.backend_list:
            dist.Backend.register_backend("onehop", _create, extended_api=True, devices=["cpu", "cuda"])
    except Exception:  # whatever it is, torch must come up
        return
