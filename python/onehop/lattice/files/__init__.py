"""Gauge fields in files: MILC version 5, NERSC, ILDG and SciDAC (LIME), openQCD."""

from onehop.lattice.files.read import GaugeFile, read_gauge, read_note
from onehop.lattice.files.write import FORMATS, write_gauge

__all__ = ["FORMATS", "GaugeFile", "read_gauge", "read_note", "write_gauge"]
