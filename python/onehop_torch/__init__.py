"""Makes the backend "onehop" known to torch.distributed whenever torch is imported; does nothing where that cannot be.

A package of its own, because torch refuses to be imported when what an entry point names fails, or takes its time.
"""

from __future__ import annotations

from typing import Any


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    from onehop.torch.process_group import create_process_group

    return create_process_group(store, rank, size, timeout)


def register() -> None:
    """Register the backend, if torch was built with torch.distributed."""
    try:
        import torch.distributed as dist

        if dist.is_available() and "onehop" not in dist.Backend.backend_list:
            dist.Backend.register_backend("onehop", _create, devices=["cpu"])
    except Exception:  # whatever it is, torch must come up
        return
