"""`onehop quantum qedc`: run an unmodified benchmark of the QED-C suite on the simulator."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop._core import __version__
from onehop.cli.common import JsonOptions, RanksOptions, console, own_rank, write_json
from onehop.error import BadInput
from onehop.launch import current_launch
from onehop.options import LARGEST_SEED, argument, option
from onehop.text import seconds_text


@dataclass(kw_only=True)
class Qedc(RanksOptions, JsonOptions):
    file: str = argument("PATH", "Script of the suite, for example .../phase_estimation/pe_benchmark.py.")
    arguments: list[str] = argument("-- ARGS...", "Arguments of the script, for example -min 3 -max 8.", [])
    precision: str = option("double", "Precision of an amplitude.", choices=("double", "single"))
    seed: int | None = option(None, "Seed of the shots.", low=0, high=LARGEST_SEED)


def _backend(ranks: int | None, precision: str, seed: int | None) -> Any:
    """Return the backend of onehop. It starts its own ranks unless this process is part of a launch."""
    inside = current_launch()
    if inside is not None and inside.ranks > 1:
        # The suite detects several ranks by mpi4py being loaded.
        with contextlib.suppress(ImportError):
            importlib.import_module("mpi4py.MPI")
    try:
        from onehop.qiskit import OnehopBackend
    except ImportError as error:
        raise BadInput(str(error)) from error
    return OnehopBackend(ranks, precision=precision, seed=seed)


def qedc(options: Qedc) -> None:
    """Run an unmodified benchmark of the QED-C suite (SRI-International/QC-App-Oriented-Benchmarks).

    The suite chooses among backends that it knows by name; this command makes it use the simulator of onehop. The
    packages that the suite requires (qiskit-aer and others) must be installed. The script runs once, and its circuits
    run on -n ranks; under mpiexec the script runs on every rank.
    """
    if not Path(options.file).is_file():
        raise BadInput(f"there is no benchmark {options.file}; name a script of the suite")
    from onehop.qedc import run_benchmark

    backend = _backend(options.ranks, options.precision, options.seed)
    counted = _Counting(backend)
    silent = contextlib.redirect_stdout(io.StringIO()) if own_rank() != 0 else contextlib.nullcontext()
    if options.json == "-":
        silent = contextlib.redirect_stdout(sys.stderr)
    begin = time.perf_counter()
    with silent:
        run_benchmark(options.file, options.arguments, backend)
    report = {
        "version": __version__,
        "benchmark": options.file,
        "arguments": options.arguments,
        "ranks": backend.executor.size,
        "seconds": time.perf_counter() - begin,
        **counted.report(),
    }
    console(options.json).print(
        f"onehop: {counted.circuits} circuits on {backend.executor.size} ranks, "
        f"{seconds_text(counted.seconds)} of simulation"
    )
    write_json(options.json, report)


class _Counting:
    """Sums the circuits, seconds and bytes that a backend simulates."""

    def __init__(self, backend: Any) -> None:
        self.circuits = 0
        self.seconds = 0.0
        self.bytes_moved = 0
        run = backend.executor.run

        def counted(tasks: Any) -> Any:
            outcomes = run(tasks)
            self.circuits += len(outcomes)
            self.seconds += sum(one.seconds for one in outcomes)
            self.bytes_moved += sum(one.bytes_moved for one in outcomes)
            return outcomes

        backend.executor.run = counted

    def report(self) -> dict[str, Any]:
        """Return the sums for JSON."""
        return {
            "circuits": self.circuits,
            "simulated_seconds": self.seconds,
            "bytes_moved": self.bytes_moved,
        }
