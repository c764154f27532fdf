"""GHEX, the halo exchange library of ETH Zurich, as a candidate where it is installed (`pip install ghex mpi4py`).

It is called through its Python interface, as "onehop from Python" is, and uses the same MPI as the other candidates.
It also fills edges and corners, so that it moves a little more data where more than one dimension is periodic.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onehop.group import Group
from onehop.schedule import halo_block


def ghex_version() -> str | None:
    """The version of GHEX that is installed; None if there is none."""
    try:
        return importlib.metadata.version("ghex")
    except importlib.metadata.PackageNotFoundError:
        return None


def ghex_halo(group: Group, layout: Mapping[str, Any], array: np.ndarray) -> Callable[[], Any]:
    """Prepare an exchange of the ghosts of `array`, which is in C order; the result runs it.

    Collective over MPI_COMM_WORLD, whose ranks must be the group's. `layout` is the arguments of `halo`, the width one
    number.
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

    # The default argument keeps objects alive to which the C++ objects only refer.
    def run(_alive: Any = (context, domain, generator, pattern, field, array)) -> None:
        communication.exchange(buffers).wait()

    return run
