"""The options of simulations of circuits, and their seeds."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop import _core
from onehop.arguments import require_seed
from onehop.error import Mismatch, WrongType
from onehop.group import Group
from onehop.options import LARGEST_SEED, LARGEST_SHOTS, Options, option
from onehop.quantum.precision import PRECISIONS


class Duration(float):
    """Seconds, which a text gives as 90, 30s, 10m or 2h."""

    rule = "as a time above 0 such as 30s, 10m or 2h"

    def __new__(cls, text: str | float) -> Duration:
        """Read a text; raise ValueError for one that is no duration."""
        text = str(text)
        number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m", "h") else (text, "s")
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
        if not 0 < seconds < float("inf"):
            raise ValueError(text)
        return super().__new__(cls, seconds)


class ByteCount(int):
    """Bytes, which a text gives as 512MiB or 2GiB."""

    rule = "as a size such as 512MiB or 2GiB"

    def __new__(cls, text: str | int) -> ByteCount:
        """Read a text; raise ValueError for one that is no size."""
        text = str(text)
        number, unit = (text[:-3], text[-3:]) if text.endswith("iB") else (text, "")
        bytes_given = float(number) * {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
        if not 0 <= bytes_given < 2**62:
            raise ValueError(text)
        return super().__new__(cls, int(bytes_given))


METHODS = ("auto", "statevector", "clifford")


@dataclass(kw_only=True)
class SimulationOptions(Options):
    """The options of a simulation; `simulate` documents them."""

    title = "Simulation"

    shots: int = option(0, "Number of shots; 0: no sampling.", low=0, high=LARGEST_SHOTS)
    seed: int | None = option(
        None,
        "Seed of the shots. The same seed gives the same shots on any number of ranks.",
        low=0,
        high=LARGEST_SEED,
    )
    precision: str = option(
        "double",
        "Precision of an amplitude: double (16 bytes) or single (8 bytes), or a codec that keeps it in fewer: fp16 or "
        "bf16 (4 bytes), q8 (2.125) or q6 (1.625).",
        choices=PRECISIONS,
    )
    method: str = option(
        "auto",
        "Simulate on a state vector, or Clifford circuits with stim (extra clifford); auto: with stim if it is "
        "installed and the state would have more than 20 qubits. The shots are the same.",
        choices=METHODS,
    )
    checkpoint: str | Path | None = option(
        None,
        "Save progress to FILE periodically and on SIGUSR1 or SIGTERM. If FILE exists, resume from it.",
        kind=str,
        metavar="FILE",
        writes="checkpoint",
    )
    every: float = option(
        600.0,
        "Time between checkpoints, for example 30s, 10m or 2h.",
        "--save-every",
        kind=Duration,
        metavar="TIME",
        default="10m",
    )
    state_folder: str | Path | None = option(
        None,
        "Keep the state in a file in FOLDER, which is gone after the run, and a part of it in memory. For one rank; a "
        "checkpoint must be in FOLDER, too.",
        kind=str,
        metavar="FOLDER",
    )
    state_memory: int = option(
        0, "Memory for that part.", kind=ByteCount, metavar="SIZE", default="half of what is available"
    )
    device: str = option(
        "cpu",
        "Where the state is: cpu, or on cards, cuda or hip, of which the ranks of a host take one after the other; "
        "cuda:1 is a certain one. processor runs the kernels of cards on this processor, as a test.",
        metavar="DEVICE",
    )
    profile: bool = option(False, "Show the time of each pass and exchange (`onehop docs engine`).")
    observables: Sequence[Any] = ()
    threads: int = 0
    staging: int = 0
    search_seconds: float = 1
    progress: Callable[[int, int, int, int], None] | None = None

    @property
    def needs_state(self) -> bool:
        """Whether the run needs a state vector, whatever the circuit."""
        kept = self.checkpoint is not None or self.state_folder is not None
        return kept or self.profile or self.device != "cpu"


def core_options(**values: Any) -> _core.ProgramOptions:
    """Return options for the library; the others have their defaults."""
    options = _core.ProgramOptions()
    try:
        for name, value in values.items():
            setattr(options, name, value)
    except WrongType as error:
        raise WrongType(str(error).removeprefix("ProgramOptions.").replace("arg to be ", "")) from None
    return options


def common_seed(seed: int | None, group: Group) -> int:
    """Return the seed, or if it is None a random one of 48 bits, the same on every rank. Collective if it is None."""
    if seed is None:
        found = group.allgather(secrets.token_bytes(6))
        if any(len(one) != 6 for one in found):
            raise Mismatch("expected the same seed on every rank, found one on some ranks only")
        return int.from_bytes(found[0], "little")
    return require_seed(seed)
