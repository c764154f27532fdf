"""Spack recipe of the Python package; see packaging/README.md."""

from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyOnehop(PythonPackage):
    """Moves data between the ranks of a distributed simulation in one hop: Python and command."""

    # The repository in which this recipe lies.
    git = f"file://{Path(__file__).resolve().parents[6]}"

    license("Apache-2.0")

    version("0.2.0", tag="v0.2.0")

    variant("mpi", default=False, description="Install mpi4py and an MPI, to compare with")
    variant("quantum", default=True, description="Read Qiskit circuits, states and Hamiltonians")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-nanobind@2.4:3", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("py-numpy@1.23:", type=("build", "run"))
    depends_on("py-tomli@2:", type=("build", "run"), when="^python@:3.10")
    depends_on("py-h5py@3.8:", type="run", when="+quantum")
    depends_on("py-mpi4py@4:", type="run", when="+mpi")
    depends_on("mpi", type="run", when="+mpi")
