"""Gauge fields in files: MILC version 5, NERSC, ILDG and SciDAC (LIME), openQCD."""

from onehop.lattice.files.read import GaugeFile, read_gauge
from onehop.lattice.files.write import FORMATS, write_gauge

__all__ = ["FORMATS", "GaugeFile", "read_gauge", "write_gauge"]
