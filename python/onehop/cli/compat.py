"""`onehop compat`: what programs need that are built against a drop-in interface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onehop
from onehop.cli.common import JsonOptions, console, write_json
from onehop.error import Error
from onehop.options import option


@dataclass(kw_only=True)
class Qmp(JsonOptions):
    prefix: bool = option(False, "Print the folder, for builds that ask where QMP is installed.")
    cflags: bool = option(False, "Print the options of compilers.")
    libs: bool = option(False, "Print the options of linkers.")


def qmp(options: Qmp) -> None:
    """Say how to compile and link a program that calls QMP.

    The folder is laid out as QMP's own installation, with qmp-config, and QMPConfig.cmake for find_package(QMP).
    """
    folder = qmp_folder()
    found = {
        "prefix": str(folder),
        "cflags": f"-I{folder}/include",
        "libs": f"-L{folder}/lib -Wl,-rpath,{folder}/lib -lonehop_qmp",
    }
    asked = [text for name, text in found.items() if getattr(options, name)]
    if asked and options.json != "-":
        print(" ".join(asked))
    elif not asked:
        console(options.json).print(
            f"QMP is in {folder}\ncompile with   {found['cflags']}\nlink with      {found['libs']}\n"
            f"CMake          -DQMP_DIR={folder}/lib/cmake/QMP\nautotools      {folder}/bin/qmp-config"
        )
    write_json(options.json, found)


def qmp_folder() -> Path:
    """Return the folder with QMP: that of the installed package, or that of a build in a checkout."""
    package = Path(onehop.__file__).resolve().parent
    builds = package.parents[1] / "build"
    places = [package / "qmp", builds / "release/qmp", builds / "cpp/qmp"]
    for place in places:
        if (place / "lib/libonehop_qmp.so").exists():
            return place
    raise Error(
        f"expected the library of QMP in {', '.join(map(str, places))}, found none; in a checkout, "
        "`cmake --preset cpp && cmake --build --preset cpp -j` builds it"
    )
