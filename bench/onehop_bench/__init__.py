"""Benchmarks: onehop, plain MPI and bare code take turns of a few milliseconds in one run.

C++ measures (`bench/native`); this package defines the cases and turns samples into tables, JSON and plots.
"""

from onehop_bench.options import parse_sizes
from onehop_bench.result import Bench, Row, Samples, make_row

__all__ = ["Bench", "Row", "Samples", "make_row", "parse_sizes"]
