"""The predicted time, memory, traffic and files of a lattice campaign: generation, flow and solves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.lattice import Geometry
from onehop.machine import Machine
from onehop.machine.reader import machine_of
from onehop.predict.common import Speed, check_memory
from onehop.predict.lattice import predict_solver

LINK_BYTES = 576  # of a site, in double precision
_COLUMN_BYTES = {True: 48, False: 192}  # of a site, by whether the quarks are staggered
# Floating-point operations of a site, from products of two matrices (198) and sums (18): six staples of two products
# and a sum for each link; three SU(2) hits with a product and 150 more; an exponential of 1,500 and two products.
_STAPLES = 4 * 6 * (2 * 198 + 18)
_SWEEP_FLOPS = _STAPLES + 4 * 3 * (198 + 150)
_FLOW_FLOPS = 3 * (_STAPLES + 4 * (1500 + 2 * 198))
_PASSES = 8  # over all links, in a sweep or a stage of the flow


@dataclass(frozen=True)
class Campaign:
    """What a campaign does.

    Attributes
    ----------
    extents : tuple of int
        Extents of the lattice, x first.
    configurations : int
        Number of configurations that are kept and measured.
    sweeps : int
        Number of sweeps, heat bath and over-relaxation, of the whole generation.
    flow_steps : int
        Steps of the gradient flow on a configuration.
    columns : int
        Right-hand sides that are solved on a configuration; 0 without quarks.
    iterations : int
        Iterations of the solver for each.
    action : str
        The quark action.
    """

    extents: tuple[int, ...]
    configurations: int
    sweeps: int
    flow_steps: int = 0
    columns: int = 0
    iterations: int = 500
    action: str = "clover"


@dataclass
class CampaignPrediction:
    """What a campaign takes.

    Attributes
    ----------
    hours : dict
        Hours of each part: generation, flow, solves.
    memory_bytes, file_bytes : int
        Bytes of a rank, and of all configurations.
    bytes_by_level : dict
        Bytes that the solves send over each level of the machine.
    """

    machine: str
    ranks: int
    hours: dict[str, float]
    memory_bytes: int
    file_bytes: int
    bytes_by_level: dict[str, int] = field(default_factory=dict)

    @property
    def total_hours(self) -> float:
        """The hours of all parts."""
        return sum(self.hours.values())

    def to_dict(self) -> dict[str, Any]:
        """The prediction as an object for JSON."""
        return asdict(self) | {"total_hours": self.total_hours, "rank_hours": self.ranks * self.total_hours}


@dataclass(frozen=True)
class CampaignSeconds:
    """The seconds of a machine: of a site for a sweep and for a flow step, and of an iteration on the whole lattice."""

    machine: str
    sweep: float
    flow_step: float
    iteration: float


def predict_campaign(
    campaign: Campaign,
    machine: Machine | str | Path | CampaignSeconds,
    ranks: int = 1,
    grid: Sequence[int] | None = None,
) -> CampaignPrediction:
    """Predict hours, memory, traffic and files of a campaign, with one rank per processor.

    Parameters
    ----------
    machine : Machine, str, path or CampaignSeconds
        The machine, the name of an installed one, the path of a TOML file, or measured times.
    grid : sequence of int, optional
        Number of ranks in each direction, instead of `ranks`.

    Raises
    ------
    BadInput
        The lattice has not four directions, the grid does not divide it, or the machine is too small.
    """
    if len(campaign.extents) != 4:
        raise BadInput(f"expected a lattice of four extents, found {len(campaign.extents)}")
    ranks = math.prod(grid) if grid is not None else ranks
    geometry = Geometry(campaign.extents, grid, ranks=ranks)
    sites, block = math.prod(campaign.extents), math.prod(geometry.block)
    staggered = campaign.action not in ("wilson", "clover")
    columns = min(campaign.columns, 3 if staggered else 12)
    memory = block * (6 * LINK_BYTES + 3 * columns * _COLUMN_BYTES[staggered])
    levels: dict[str, int] = {}
    solves = campaign.configurations * campaign.columns * campaign.iterations
    if isinstance(machine, CampaignSeconds):
        each = machine
    else:
        described = machine_of(machine)
        check_memory(memory, described, "the campaign", "use more ranks")
        speed, iteration = Speed.of(described, "double"), 0.0
        if campaign.columns:
            found = predict_solver(campaign.extents, described, grid=geometry.grid, action=campaign.action)
            iteration = found.predicted_seconds
            levels = {level: moved * solves for level, moved in found.bytes_by_level.items()}
        passes = _PASSES * LINK_BYTES
        each = CampaignSeconds(
            described.name,
            speed.timed(passes, _SWEEP_FLOPS).seconds / ranks,
            speed.timed(3 * passes, _FLOW_FLOPS).seconds / ranks,
            iteration,
        )
    seconds = {
        "generation": campaign.sweeps * each.sweep * sites,
        "flow": campaign.configurations * campaign.flow_steps * each.flow_step * sites,
        "solves": solves * each.iteration,
    }
    hours = {part: one / 3600 for part, one in seconds.items() if one}
    return CampaignPrediction(
        each.machine, ranks, hours, memory, campaign.configurations * sites * LINK_BYTES, levels
    )
