"""Benchmarks: onehop, plain MPI and the bare limit in one run, in turn every few milliseconds.

The measuring is in C++ (`bench/`); here are the cases, and what becomes of the figures.
"""

from onehop.bench.result import Bench, Row, Samples, make_row
from onehop.bench.sizes import parse_sizes, size_text

__all__ = ["Bench", "Row", "Samples", "make_row", "parse_sizes", "size_text"]
