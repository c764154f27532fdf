"""Files of lattice fields: gauge fields as MILC version 5, NERSC, ILDG, SciDAC or openQCD; colour vectors as SciDAC."""

from onehop.lattice.files.read import GaugeFile, read_gauge, read_note
from onehop.lattice.files.scidac import read_links, read_vectors, write_vectors
from onehop.lattice.files.write import FORMATS, check_gauge_target, check_target, write_gauge

__all__ = [
    "FORMATS",
    "GaugeFile",
    "check_gauge_target",
    "check_target",
    "read_gauge",
    "read_links",
    "read_note",
    "read_vectors",
    "write_gauge",
    "write_vectors",
]
