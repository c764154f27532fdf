"""Options and notes that the lattice commands share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions, console
from onehop.lattice import Gauge, GaugeFile, Plaquettes, Staggered
from onehop.lattice.conventions import CONVENTIONS
from onehop.lattice.files.parsing import ACCEPTED
from onehop.lattice.flow import FLOW_ACTIONS
from onehop.lattice.phases import PHASES
from onehop.lattice.smearing import PROJECTIONS, hisq_links
from onehop.options import LARGEST_INT, Options, argument, option

GAUGE_FILE = "Gauge field file: MILC, NERSC, ILDG, SciDAC, openQCD, or raw links with --extent."
_BITS = {None: None, "single": 32, "double": 64}


@dataclass(kw_only=True)
class ReadOptions(Options):
    """How a gauge field is read."""

    title = "Files that are read"

    extent: tuple[int, ...] | None = option(
        None,
        "Extents of a file that does not give them: raw links, or ILDG without its format record.",
        high=LARGEST_INT,
        length=4,
    )
    accept_checksum: bool = option(
        False,
        "Read links whose checksum is wrong. Every report of them, and of what is made from them, says so.",
    )

    def reading(self) -> dict[str, Any]:
        """Return the keywords of `read_gauge` that these options give."""
        return {"extents": self.extent, "accept_checksum": self.accept_checksum}


@dataclass(kw_only=True)
class GaugeOptions(ReadOptions, GridOptions, RanksOptions, JsonOptions):
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


def convention_option(text: str) -> Any:
    """Make the field of the program whose conventions are meant."""
    return option("onehop", text, choices=tuple(CONVENTIONS))


def flow_action_option() -> Any:
    """Make the field of the action that a gradient flow follows."""
    return option("wilson", "Action whose gradient the flow follows.", choices=FLOW_ACTIONS)


def naik_epsilon_option() -> Any:
    """Make the field of the correction of Naik's weight."""
    return option(0.0, "Naik epsilon (hisq only).")


def projection_option() -> Any:
    """Make the field of the group to which HISQ projects."""
    return option(
        "u3", "Group to which HISQ projects the links of its first level (hisq only).", choices=PROJECTIONS
    )


def staggered_operator(gauge: Gauge, action: str, options: Any, **signs: Any) -> Staggered:
    """Return the operator of an action with `u0`, `naik_epsilon` and `projection` of the options. Collective."""
    if action == "hisq" and options.projection != "u3":
        made = hisq_links(gauge, naik_epsilon=options.naik_epsilon, projection=options.projection)
        return Staggered.of_fat_links(gauge, made, **signs)
    return Staggered(gauge, action, u0=options.u0, naik_epsilon=options.naik_epsilon, **signs)


def boundary_option(text: str) -> Any:
    """Make the field of the boundary in time."""
    return option("antiperiodic", text, choices=("antiperiodic", "periodic"))


def say_unverified(file: str, has_checksum: bool, json_target: str | None) -> None:
    """Print, on rank 0, that a file has no checksum, so that not every damage to it would be noticed."""
    if not has_checksum:
        console(json_target).print(f"{file}: the file has no checksum, so its numbers are not verified")


def say_about(found: GaugeFile, json_target: str | None) -> None:
    """Print, on rank 0, that the links of a file are not verified, or that their wrong checksum was accepted."""
    say_unverified(found.path, found.has_checksum or bool(found.accepted), json_target)
    for wrong in found.accepted:
        console(json_target).print(f"{found.path}: a wrong checksum was accepted: {wrong}")


def note_of(found: GaugeFile) -> str:
    """Return the note with which links from a file are written, so that a wrong checksum stays known."""
    return f"{ACCEPTED}{'; '.join(found.accepted)}" if found.accepted else ""


def file_rows(found: GaugeFile) -> Iterator[tuple[str, str]]:
    """Yield the averages and the checksums of a file, and whether its header has them, as rows of a table."""
    words = {
        "plaquette": "plaquette",
        "plaquette_space": "spatial plaquette",
        "plaquette_time": "plaquette in time",
        "link_trace": "link trace",
    }
    for name, value in averages(found.plaquettes, found.link_trace).items():
        yield name.replace("_", " "), f"{value:.9g}{'  verified' if words[name] in found.verified else ''}"
    for name, number in found.checksums.items():
        yield (
            name,
            f"{number:08x}  {'verified' if name in found.verified else 'computed, absent in the file'}",
        )
    if not found.checksums:
        yield "checksum", "absent in the file"
    yield "SHA-256 of the links", found.sha256


def report_of(file: GaugeFile) -> dict[str, Any]:
    """Return the part of the JSON report that describes the file."""
    accepted = {"accepted_checksums": list(file.accepted)} if file.accepted else {}
    return {
        "file": file.path,
        "format": file.format,
        "extent": list(file.extents),
        "precision": file.precision,
        "boundary": file.boundary,
        **averages(file.plaquettes, file.link_trace),
        "checksums": {name: f"{value:08x}" for name, value in file.checksums.items()},
        "verified": list(file.verified),
        **accepted,
        "sha256": file.sha256,
    }
