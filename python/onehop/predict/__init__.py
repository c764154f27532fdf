"""Predicted times of whole computations on a machine: circuits, iterations of lattice solvers, lattice campaigns.

`predict_circuit` and `predict_solver` take memory traffic at the machine's bandwidth and messages through
`onehop.machine.simulate`. No state or field is allocated and no rank is started.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onehop.error import with_explained_errors

if TYPE_CHECKING:
    from onehop.predict.campaign import Campaign, CampaignPrediction, CampaignSeconds, predict_campaign
    from onehop.predict.circuit import CircuitPrediction, StagePrediction, predict_circuit
    from onehop.predict.lattice import SolverPrediction, predict_solver

__all__ = [
    "Campaign",
    "CampaignPrediction",
    "CampaignSeconds",
    "CircuitPrediction",
    "SolverPrediction",
    "StagePrediction",
    "predict_campaign",
    "predict_circuit",
    "predict_solver",
]

_PARTS = {
    "SolverPrediction": "lattice",
    "predict_solver": "lattice",
    **dict.fromkeys(("Campaign", "CampaignPrediction", "CampaignSeconds", "predict_campaign"), "campaign"),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is used: commands of lattices need not import circuits, nor the other way round."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    part = _PARTS.get(name, "circuit")
    found = getattr(importlib.import_module(f"{__name__}.{part}"), name)
    return found if isinstance(found, type) else with_explained_errors(found)
