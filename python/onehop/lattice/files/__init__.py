"""Files of lattice fields: gauge fields as MILC version 5, NERSC, ILDG, SciDAC or openQCD; vectors as SciDAC."""

from onehop.lattice.files.propagators import read_propagator, write_propagator
from onehop.lattice.files.read import GaugeFile, read_gauge, read_note
from onehop.lattice.files.scidac import (
    links_have_checksum,
    read_links,
    read_vectors,
    vectors_have_checksum,
    write_vectors,
)
from onehop.lattice.files.write import (
    FORMATS,
    check_gauge_target,
    check_target,
    require_memory_to_write,
    write_gauge,
)

__all__ = [
    "FORMATS",
    "GaugeFile",
    "check_gauge_target",
    "check_target",
    "links_have_checksum",
    "read_gauge",
    "read_links",
    "read_note",
    "read_propagator",
    "read_vectors",
    "require_memory_to_write",
    "vectors_have_checksum",
    "write_gauge",
    "write_propagator",
    "write_vectors",
]
