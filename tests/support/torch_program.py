"""Programs of torch ranks: what they begin with, and why a test of them is skipped."""

from __future__ import annotations

WITHOUT_TORCH = "there is no torch in this environment; `make setup-torch` brings one"

# Joins the ranks to a group of torch, with the store in the file that is the first argument. `raised` calls a function
# that must raise an error of a kind, and returns the error's text.
START = """
    import os, signal, sys, threading, time
    from datetime import timedelta
    from pathlib import Path
    from types import SimpleNamespace
    import torch
    import torch.distributed as dist
    import onehop.torch

    world = onehop.Group.world()
    rank, size = world.rank, world.size
    torch.set_num_threads(1)
    dist.init_process_group("onehop", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    group = dist.group.WORLD

    def raised(kind, call):
        try:
            call()
        except kind as error:
            return str(error)
        raise SystemExit(f"expected {kind.__name__}")
"""
