"""GHEX, the halo exchange library of ETH Zurich, as a candidate where it is installed (`pip install ghex mpi4py`).

It is called through its Python interface, as "onehop from Python" is, and uses the same MPI as the other candidates.
It fills edges and corners too: where more than one dimension is periodic it moves a little more than the others.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onehop.group import Group
from onehop.schedule import halo_block


def ghex_version() -> str | None:
    """The version that is installed, None without one."""
    try:
        return importlib.metadata.version("ghex")
    except importlib.metadata.PackageNotFoundError:
        return None


def ghex_halo(group: Group, layout: Mapping[str, Any], array: np.ndarray) -> Callable[[], Any]:
    """What exchanges the ghosts of `array`, prepared. Collective over MPI_COMM_WORLD, whose ranks must be the group's.

    Parameters
    ----------
    group : Group
        The ranks.
    layout : mapping
        What `halo` takes; its width is one number.
    array : np.ndarray
        This rank's part with its ghosts, C order.
    """
    from ghex.context import make_context
    from ghex.structured.cartesian_sets import ProductSet, UnitRange
    from ghex.structured.regular import (
        DomainDescriptor,
        HaloGenerator,
        make_communication_object,
        make_field_descriptor,
        make_pattern,
    )
    from mpi4py import MPI

    block, width = halo_block(**layout, rank=group.rank), layout["width"]
    everything = ProductSet(*(UnitRange(0, extent) for extent in layout["extents"]))
    owned = ProductSet(
        *(UnitRange(start, start + extent) for start, extent in zip(block.start, block.extents, strict=True))
    )
    context = make_context(MPI.COMM_WORLD)
    domain = DomainDescriptor(group.rank, owned)
    generator = HaloGenerator(everything, (width,) * array.ndim, tuple(layout["periodic"]))
    pattern = make_pattern(context, generator, [domain])
    field = make_field_descriptor(domain, array, (width,) * array.ndim, array.shape)
    communication = make_communication_object(context)
    buffers = [pattern(field)]

    # The default keeps what the C++ objects of the others only refer to.
    def run(_alive: Any = (context, domain, generator, pattern, field, array)) -> None:
        communication.exchange(buffers).wait()

    return run
