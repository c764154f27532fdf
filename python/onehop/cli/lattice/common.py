"""Options and notes that the lattice commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions, console
from onehop.lattice import Plaquettes
from onehop.lattice.phases import PHASES
from onehop.options import LARGEST_INT, Options, argument, option

GAUGE_FILE = "Gauge field file: MILC 5, NERSC, ILDG, SciDAC or openQCD."
_BITS = {None: None, "single": 32, "double": 64}


@dataclass(kw_only=True)
class ExtentOptions(Options):
    """The extents of a lattice that must be given."""

    extent: tuple[int, ...] = option(
        ..., "Number of sites in each direction (1 to 4 directions).", high=LARGEST_INT
    )


@dataclass(kw_only=True)
class GaugeOptions(GridOptions, RanksOptions, JsonOptions):
    """The options of commands that read a gauge field."""

    file: str = argument("FILE", GAUGE_FILE)
    tolerance: float = option(1e-4, "Largest allowed deviation of a link from SU(3).", above=0)


@dataclass(kw_only=True)
class FileOptions(Options):
    """How a gauge field is written."""

    title = "Files that are written"

    file_format: str | None = option(
        None,
        "Output format.",
        "--format",
        choices=("nersc", "ildg", "milc"),
        default="by the file name, .lime means ILDG",
    )
    precision: str | None = option(
        None,
        "Precision of the numbers in the file.",
        choices=("double", "single"),
        default="double, or single for MILC",
    )
    overwrite: bool = option(False, "Overwrite an existing file.")

    def how(self) -> dict[str, Any]:
        """Return the keywords of `write_gauge` and `check_gauge_target`."""
        return {
            "file_format": self.file_format,
            "precision": _BITS[self.precision],
            "overwrite": self.overwrite,
        }


def averages(plaquettes: Plaquettes, link_trace: float) -> dict[str, float]:
    """Return the averages of a gauge field under their names in reports."""
    named = {
        "plaquette": plaquettes.all,
        "plaquette_space": plaquettes.space,
        "plaquette_time": plaquettes.time,
    }
    return named | {"link_trace": link_trace}


def phases_option(default: str | None, text: str, **accepted: Any) -> Any:
    """Make the field of the staggered phases."""
    return option(
        default,
        f"{text} Order of directions: x, y, z, t (standard) or t, x, y, z (MILC).",
        "--phases",
        choices=PHASES,
        **accepted,
    )


def boundary_option(text: str) -> Any:
    """Make the field of the boundary in time."""
    return option("antiperiodic", text, choices=("antiperiodic", "periodic"))


def say_unverified(file: str, has_checksum: bool, json_target: str | None) -> None:
    """Print, on rank 0, that a file has no checksum, so that not every damage to it would be noticed."""
    if not has_checksum:
        console(json_target).print(f"{file}: the file has no checksum, so its numbers are not verified")
