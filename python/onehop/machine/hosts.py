"""The hosts of a job on a machine, and their network interfaces."""

from __future__ import annotations

import math

from onehop._core import Level, Machine
from onehop.error import BadInput

__all__ = ["host_level", "host_rails"]


def host_level(job: Machine) -> tuple[Level, int]:
    """Return the level that joins the hosts of a job, and the processors of a host.

    A host is a member of the outermost level with more than one member: of Mira, a node.
    """
    outer = max((number for number, one in enumerate(job.levels) if one.members > 1), default=0)
    return job.levels[outer], math.prod(one.members for one in job.levels[:outer])


def host_rails(level: Level) -> tuple[int, float]:
    """Return the number of interfaces or links of a host, and the bytes per second of each.

    Raise BadInput if the route of a message leaves no choice: a torus or a mesh whose members have no own interfaces.
    """
    if level.interfaces:
        return level.interfaces, level.injection.value / level.interfaces
    if level.routing in ("torus", "mesh"):
        raise BadInput(
            f"expected hosts with interfaces that a message can choose from, found a {level.routing} without any "
            f"(level {level.name}): there the route of a message determines its link"
        )
    if level.injection.value:
        return level.links, min(level.bandwidth.value, level.injection.value / level.links)
    return level.links, level.bandwidth.value
