"""Spack recipe of the C++ library; see packaging/README.md."""

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Onehop(CMakePackage):
    """Moves data between the ranks of a distributed simulation in one hop."""

    # The repository in which this recipe lies.
    git = f"file://{Path(__file__).resolve().parents[6]}"

    license("Apache-2.0")

    version("0.2.0", tag="v0.2.0")

    variant("compat", default=True, description="Build QMP, qspi, QuEST, rdma_comlib interfaces")

    depends_on("c", type="build", when="+compat")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")

    conflicts("%gcc@:11", msg="onehop needs C++20: g++ 12 or newer")
    conflicts("%clang@:14", msg="onehop needs C++20: clang++ 15 or newer")

    def cmake_args(self):
        """Return the settings: the library alone, without tests and Python."""
        return [
            self.define("ONEHOP_PYTHON", False),
            self.define("ONEHOP_TESTS", False),
            self.define("ONEHOP_CCACHE", False),
            self.define_from_variant("ONEHOP_COMPAT", "compat"),
        ]
