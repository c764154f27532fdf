"""Periodic lattices that are split over ranks: their geometry, SU(3) gauge fields, their files, staggered quarks."""

from onehop.lattice import smearing
from onehop.lattice.files import GaugeFile, read_gauge, write_gauge
from onehop.lattice.gauge import Gauge, Plaquettes, thermalize
from onehop.lattice.geometry import Geometry
from onehop.lattice.staggered import Staggered, StaggeredSolve

__all__ = [
    "Gauge",
    "GaugeFile",
    "Geometry",
    "Plaquettes",
    "Staggered",
    "StaggeredSolve",
    "read_gauge",
    "smearing",
    "thermalize",
    "write_gauge",
]
