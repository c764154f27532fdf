"""Lattice QCD on a grid of ranks: geometry, SU(3) gauge fields and their files, staggered and Wilson quarks."""

from onehop.error import explain_public
from onehop.lattice import conventions, mesons, smearing
from onehop.lattice.deflation import deflated_solve
from onehop.lattice.eigen import Eigenvectors, lowest_eigenvectors
from onehop.lattice.eigenvectors import read_eigenvectors, write_eigenvectors
from onehop.lattice.field import Field
from onehop.lattice.files import (
    GaugeFile,
    read_gauge,
    read_links,
    read_propagator,
    read_vectors,
    write_gauge,
    write_propagator,
    write_vectors,
)
from onehop.lattice.fixing import FixedGauge, fix_gauge
from onehop.lattice.flow import (
    Flow,
    FlowPoint,
    field_strength,
    gradient_flow,
    improved_charge,
    polyakov_loop,
    wilson_loops,
)
from onehop.lattice.gauge import Gauge, Plaquettes, thermalize
from onehop.lattice.geometry import Geometry
from onehop.lattice.hmc import Hmc, hybrid_monte_carlo
from onehop.lattice.operators import QuarkSolve
from onehop.lattice.staggered import Staggered
from onehop.lattice.wilson import Wilson, clover_blocks, clover_leaves, wilson_kappa
from onehop.refusals import make_collective

StaggeredSolve = WilsonSolve = QuarkSolve  # the former names

__all__ = [
    "Eigenvectors",
    "Field",
    "FixedGauge",
    "Flow",
    "FlowPoint",
    "Gauge",
    "GaugeFile",
    "Geometry",
    "Hmc",
    "Plaquettes",
    "QuarkSolve",
    "Staggered",
    "Wilson",
    "clover_blocks",
    "clover_leaves",
    "conventions",
    "deflated_solve",
    "field_strength",
    "fix_gauge",
    "gradient_flow",
    "hybrid_monte_carlo",
    "improved_charge",
    "lowest_eigenvectors",
    "mesons",
    "polyakov_loop",
    "read_eigenvectors",
    "read_gauge",
    "read_links",
    "read_propagator",
    "read_vectors",
    "smearing",
    "thermalize",
    "wilson_kappa",
    "wilson_loops",
    "write_eigenvectors",
    "write_gauge",
    "write_propagator",
    "write_vectors",
]

explain_public(globals())
make_collective(globals(), __all__, but=["Field", "Geometry"])
