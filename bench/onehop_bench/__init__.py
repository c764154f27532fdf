"""Benchmarks: onehop, plain MPI and the speed of light take turns of a few milliseconds in one run.

C++ measures (`bench/`); this package defines the cases and turns samples into tables, JSON and plots.
"""

from onehop_bench.result import Bench, Row, Samples, make_row
from onehop_bench.sizes import parse_sizes

__all__ = ["Bench", "Row", "Samples", "make_row", "parse_sizes"]
