"""Periodic lattices that are split over ranks: their geometry, SU(3) gauge fields, their files, staggered quarks."""

from onehop.lattice import smearing
from onehop.lattice.files import GaugeFile, read_gauge, write_gauge
from onehop.lattice.flow import Flow, FlowPoint, field_strength, gradient_flow, polyakov_loop
from onehop.lattice.gauge import Gauge, Plaquettes, thermalize
from onehop.lattice.geometry import Geometry
from onehop.lattice.hmc import Hmc, hybrid_monte_carlo
from onehop.lattice.staggered import Staggered, StaggeredSolve

__all__ = [
    "Flow",
    "FlowPoint",
    "Gauge",
    "GaugeFile",
    "Geometry",
    "Hmc",
    "Plaquettes",
    "Staggered",
    "StaggeredSolve",
    "field_strength",
    "gradient_flow",
    "hybrid_monte_carlo",
    "polyakov_loop",
    "read_gauge",
    "smearing",
    "thermalize",
    "write_gauge",
]
