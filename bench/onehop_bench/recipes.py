"""The benchmarks that `make bench` runs, and the file in results/ that each of them fills.

Together they take about 15 minutes on two cores. Circuits are compared with the three reference simulators that have
been fastest, because the others take much longer; states of 24 and 26 qubits and blocks of 24^4 sites in a solve
are left out.
"""

from __future__ import annotations

import shlex
from pathlib import Path

__all__ = ["RECIPES", "command_text", "recipe"]

RECIPES = {
    "pingpong": "pingpong -n 2",
    "channel": "channel -n 2",
    "halo": "halo -n 2",
    "poisson": "poisson -n 2",
    "ring-4": "ring -n 4",
    "ring-8": "ring -n 8",
    "allreduce": "allreduce -n 2 --sizes 8,64,512,4K,16K,64K,256K,1M,4M,16M",
    "allreduce-4": "allreduce -n 4 --sizes 8,64,512,4K,16K,64K,256K,1M,4M,16M",
    "allreduce-codecs": "allreduce -n 2 --codecs raw,fp16,q8,q4 --sizes 32K,64K,128K,256K,512K,1M,2M,4M,16M",
    "codec": "codec",
    "permutation": "permutation -n 2 --qubits 22,24",
    "qspi": "qspi -n 2",
    "su3": "su3",
    "dslash": "dslash -n 2",
    "wilson": "wilson -n 2 --threads 1 --local --lattices 8x8x8x8,12x12x12x12,16x16x16x16 "
    "--variants single,double,half",
    "smearing": "smearing -n 2",
    "measurements": "measurements",
    "solver": "solver -n 2 --blocks 8x8x8x8,12x12x12x12,16x16x16x16 --seconds 40",
    "scaling": "scaling -n 4 --seconds 40",
    "circuits": "circuits --qubits 22 --peers prism-q,qsim,qulacs --seconds 90",
}
"""The name of a result, and the arguments of `onehop bench` that make it."""

_QUICK = {  # instead of the defaults of --quick, which are too long or too large on purpose
    "dslash": "dslash -n 2 --blocks 4x4x4x4,8x8x8x8",
    "wilson": "wilson -n 2 --threads 1 --local --lattices 4x4x4x4,8x8x8x8 --variants single,double,half",
    "smearing": "smearing -n 2 --blocks 4x4x4x4,8x8x8x8",
    "measurements": "measurements --blocks 4x4x4x8",
    "solver": "solver -n 2 --blocks 4x4x4x4,8x8x8x8",
    "permutation": "permutation -n 2 --qubits 12,14",
    "circuits": "circuits --qubits 10 --peers prism-q,qsim,qulacs",
    "scaling": "scaling -n 4 --qubits 12",
}


def recipe(name: str, folder: Path, *, quick: bool = False) -> list[str]:
    """The arguments of `onehop` that fill a result's file in `folder`."""
    text = _QUICK.get(name, RECIPES[name]) + " --quick" if quick else RECIPES[name]
    return ["bench", *shlex.split(text), "--json", str(folder / f"{name}.json")]


def command_text(name: str, folder: Path, *, quick: bool = False) -> str:
    """The command line that fills a result's file, for people."""
    return shlex.join(["onehop", *recipe(name, folder, quick=quick)])
