"""The built-in launcher, which starts ranks on this machine and leaves no process, memory or file behind."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onehop import _core
from onehop.error import BadInput, Error, WrongType
from onehop.exit_code import FAILURE
from onehop.launch.cores import available_cores, share_cores, why_not_bound
from onehop.launch.environment import RESTARTED
from onehop.launch.interpreter import python_module
from onehop.launch.options import LaunchOptions
from onehop.launch.refusal import reason_of, remedy_of
from onehop.launch.sandbox import refused_to_launcher, refused_to_ranks
from onehop.launch.supervisor import Rank, Supervisor
from onehop.launch.watchdog import Watchdog
from onehop.output import open_new
from onehop.place import find_place
from onehop.text import counted

if TYPE_CHECKING:
    from onehop._keywords import LaunchKeywords, Unpack

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Output(str, enum.Enum):
    """Treatment of the output of the ranks."""

    PREFIX = "prefix"
    """Whole lines, each after "[rank] "."""
    RANK0 = "rank0"
    """The output of rank 0, unchanged. If another rank fails, the end of its stderr."""
    RAW = "raw"
    """Unchanged, straight to the terminal."""


@dataclass(frozen=True)
class RankStart:
    """What one rank runs: its command line, more variables, and its cores (None: as the options say)."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    cores: set[int] | None = None


# Each rank is a process; more would fill the process table.
MAX_RANKS = 1024


def _here() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a folder that no longer exists"


def command_of(program: str, arguments: Sequence[str] = (), *, module: bool = False) -> list[str]:
    """The command line of a rank: a .py file and a module run with this Python, anything else by itself.

    Raises
    ------
    BadInput
        There is no such program.
    """
    if module:
        if program.partition(".")[0] == "onehop":
            return python_module(program, *arguments)
        return [sys.executable, "-m", program, *arguments]
    if program.endswith(".py"):
        if not Path(program).is_file():
            raise BadInput(f"expected a program, found no file {program} in {_here()}; check the path")
        return [sys.executable, program, *arguments]
    if Path(program).is_dir():
        raise BadInput(f"expected a program, a .py file, or -m and a module, found the folder {program}")
    if shutil.which(program) is None:
        remedy = (
            "make it executable (chmod +x)" if Path(program).is_file() else "check the name, or give its path"
        )
        raise BadInput(f"cannot run {program!r}: no executable of this name was found; {remedy}")
    return [program, *arguments]


def _prepare(launcher: int, cores: set[int] | None) -> None:
    """Run between fork and exec: make a process group, die with the launcher, and bind to the cores."""
    try:
        os.setpgid(0, 0)
    except OSError as error:  # Python would pass on only that something failed here
        os.write(
            2,
            f"onehop: a rank cannot make a process group (setpgid: {error.strerror}), by which the launcher ends it; "
            "allow setpgid in this sandbox, or start the ranks with another launcher\n".encode(),
        )
        os._exit(FAILURE)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if (parent := os.getppid()) >= 0 and parent != launcher:  # negative: a sandbox refuses getppid
        os._exit(1)
    if cores is not None:
        with contextlib.suppress(OSError):  # such as for a core that has gone offline since
            os.sched_setaffinity(0, cores)


def _cores_of_ranks(ranks: int, cores_each: int) -> list[set[int]] | None:
    """The cores of each rank; None if there are too few, or if the system lets no process choose its cores."""
    cores = share_cores(ranks, cores_each)
    if cores is not None and (reason := why_not_bound(set().union(*cores))):
        print(
            f"onehop: the ranks are not bound to cores, which this system refuses (sched_setaffinity: {reason}); they "
            "run on any core, and their times vary more (--no-bind: without this line)",
            file=sys.stderr,
            flush=True,
        )
        return None
    return cores


def _streams(rank: int, output: Output, stdout: int, file: int | None) -> dict[str, int | None]:
    """Return the standard streams of a rank; None stands for the stream of the launcher."""
    typed = rank == 0 and os.isatty(0)
    stdin = (subprocess.PIPE if typed else None) if rank == 0 else subprocess.DEVNULL
    if file is not None:
        return {"stdin": stdin, "stdout": file, "stderr": file}
    if output == Output.RAW or (output == Output.RANK0 and rank == 0):
        return {"stdin": stdin, "stdout": None if stdout == 1 else stdout, "stderr": None}
    if output == Output.RANK0:
        return {"stdin": stdin, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def _open_files(folder: str, ranks: int, stack: contextlib.ExitStack) -> list[tuple[Path, int]]:
    """Make the file of each rank in a folder, which is made if there is none. The stack closes them."""
    found = []
    try:
        for rank in range(ranks):
            file = Path(folder) / f"rank-{rank}.txt"
            with find_place(file, make_parents=True) as place:
                number = open_new(place)
            stack.callback(os.close, number)
            found.append((file, number))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"cannot write the output of the ranks to the folder '{folder}': {reason}; name another --output-dir"
        ) from error
    return found


def _start(rank: int, start: RankStart, environment: dict[str, str], streams: dict[str, int | None]) -> Rank:
    launcher = os.getpid()
    process = subprocess.Popen(
        start.command,
        env={
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            **environment,
            **start.environment,
            "ONEHOP_RANK": str(rank),
        },
        preexec_fn=lambda: _prepare(launcher, start.cores),
        **streams,
    )
    return Rank(rank, process)


def _add_torch_variables(environment: dict[str, str], ranks: int) -> None:
    """Set what `init_process_group` of torch reads, as torchrun does; values that are set stay."""
    import socket

    own = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
    if "MASTER_PORT" not in environment:
        with contextlib.suppress(OSError), socket.socket() as free:  # a sandbox may refuse sockets
            free.bind(("127.0.0.1", 0))
            own["MASTER_PORT"] = str(free.getsockname()[1])
    for name, value in own.items():
        environment.setdefault(name, value)


def check_ranks(ranks: int) -> None:
    """Raise BadInput unless so many ranks can be started on one machine."""
    if ranks < 1:
        raise BadInput(f"expected at least 1 rank, found {ranks}")
    if ranks > MAX_RANKS:
        raise BadInput(
            f"expected at most {MAX_RANKS} ranks on one machine, found {ranks}; "
            "`onehop schedule` counts and verifies for any number of ranks without starting them"
        )


def _check(ranks: int, cores_each: int, bind: bool) -> None:
    check_ranks(ranks)
    if cores_each < 1:
        raise BadInput(f"expected at least 1 core per rank, found {cores_each}")
    available = len(available_cores())
    if bind and cores_each > 1 and ranks * cores_each > available:
        raise BadInput(
            f"expected {counted(ranks * cores_each, 'core')} for {counted(ranks, 'rank')} with "
            f"{counted(cores_each, 'core')} each, "
            f"found {available}; ask for fewer, or let the ranks share them (--no-bind)"
        )


def _not_run(command: Sequence[str], ranks: int, error: OSError | subprocess.SubprocessError) -> Error:
    """Return the error of a launch to which the system refused something."""
    remedy = remedy_of(error)
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        if call := refused_to_launcher():
            remedy = f"a sandbox refuses the launcher {call}; allow it, or use another launcher (mpiexec)"
        elif error.errno != errno.EACCES:  # which is rather about the program itself
            remedy = (
                "a sandbox refuses the launcher a system call (ONEHOP_TRACEBACK=1 shows which); allow it, or use "
                "another launcher (mpiexec)"
            )
    why = f"{reason_of(error)}; {remedy}" if remedy else error
    return Error(f"could not run {command[0]!r} on {counted(ranks, 'rank')}: {why}")


def _trace_file(file: str) -> str:
    """Return the path of a trace without links, from which an older one is removed."""
    try:
        with find_place(file) as place:
            found = place.stat()
            if found is not None and not stat.S_ISREG(found.st_mode):
                raise BadInput(f"cannot write the trace {file}: it is no regular file; give another name")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place.name, dir_fd=place.folder)
            return str(place.path())
    except OSError as error:
        raise BadInput(f"cannot write the trace {file}: {reason_of(error)}") from error


def _end_trace(file: str) -> None:
    """Make the trace of a launch, unless its last rank has, as when a rank was killed. Errors end no launch."""
    try:
        found = _core.merge_trace(file, False)
    except Error as error:
        print(f"onehop: {error}", file=sys.stderr)
        return
    if not found and not Path(file).exists():
        print(
            f"onehop: no rank has written a trace to {file}: none has made a group, or none could write",
            file=sys.stderr,
        )


def _whole_command(starts: Sequence[RankStart]) -> list[str]:
    """The command line of the ranks: different ones one after the other, with a colon between them."""
    different = [tuple(start.command) for start in starts]
    first, *others = dict.fromkeys(different)
    return [*first, *(word for each in others for word in (":", *each))]


def launch(
    ranks: int | Sequence[RankStart], command: Sequence[str] = (), **keywords: Unpack[LaunchKeywords]
) -> int:
    """Run `command` on `ranks` ranks of this machine and wait for them.

    The first rank that fails ends the launch: the others get SIGTERM, and two seconds later SIGKILL. Ctrl-C and SIGTERM
    are passed on, and SIGKILL follows as after a failure. SIGUSR1 and SIGUSR2 are passed on to the ranks.
    Whatever a rank leaves in its process group is killed when the rank ends.

    Parameters
    ----------
    ranks : int or sequence of RankStart
        Number of ranks, or what each rank runs.
    command : sequence of str
        The command line of each rank; see `command_of`.

    Other Parameters
    ----------------
    output : Output or str
        "prefix", "rank0" or "raw"; see `Output`.
    bind : bool
        Bind each rank to its own cores if there are enough.
    cores_each : int
        Cores per rank.
    grace : float, optional
        Seconds that the other ranks have to end by themselves after the first failure, before SIGTERM, and seconds
        from SIGTERM to SIGKILL. By default 0 and 2.
    output_dir : str, optional
        Folder of a file for the output of each rank, which then goes nowhere else.
    report : bool
        Print on stderr which rank failed. False: only if it is not rank 0, which prints its own error.
    environment : mapping of str to str, optional
        The environment of the ranks; by default this process's own.
    stdout : int
        File descriptor that receives the standard output of the ranks.
    trace : str, optional
        File that gets the time line of all ranks (`onehop.trace`).
    on_result : callable, optional
        Called at the end with the result of the launch.
    quiet : bool
        Print nothing if a signal ends the launch.

    Returns
    -------
    int
        The exit code: 0, that of the rank that failed (128 + the signal's number if a signal killed it), or 130 after
        Ctrl-C.

    Raises
    ------
    BadInput
        The number of ranks is below 1, there are too few cores for more than one core per rank, or no files can be
        made in the folder of the output.
    Error
        The ranks could not be started.
    """
    options = LaunchOptions.of("launch", keywords)
    if refused := refused_to_ranks():
        raise Error(
            f"cannot start ranks: the system refuses {refused}, which each of them needs; allow it in this sandbox"
        )
    if not isinstance(ranks, (int, list, tuple)):
        raise WrongType(
            f"launch: expected ranks to be a whole number, or a list of what each rank runs, found {ranks!r}"
        )
    number = ranks if isinstance(ranks, int) else len(ranks)
    _check(number, options.cores_each, options.bind)
    starts = [RankStart(command)] * number if isinstance(ranks, int) else list(ranks)
    output = Output(options.output)
    if options.bind and (cores := _cores_of_ranks(number, options.cores_each)):
        starts = [
            replace(start, cores=own) if start.cores is None else start
            for start, own in zip(starts, cores, strict=True)
        ]
    control = _core.create_control(number)
    environment = dict(os.environ if options.environment is None else options.environment)
    environment.update(
        ONEHOP_CONTROL=control.path, ONEHOP_RANKS=str(number), ONEHOP_LAUNCHER_PID=str(os.getpid())
    )
    with contextlib.suppress(OSError):
        environment["ONEHOP_LAUNCHER_SPACE"] = str(Path("/proc/self/ns/pid").stat().st_ino)
    if options.trace is not None:
        environment["ONEHOP_TRACE"] = _trace_file(options.trace)
    environment.pop("TORCHELASTIC_RUN_ID", None)  # a torchrun around this launch did not start these ranks
    if RESTARTED not in environment:  # a program of the user
        _add_torch_variables(environment, number)
    if output != Output.RAW:
        # Python would buffer its output to a pipe until the end.
        environment.setdefault("PYTHONUNBUFFERED", "1")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(control.close)
            files = [] if options.output_dir is None else _open_files(options.output_dir, number, stack)
            watchdog = Watchdog()
            stack.callback(watchdog.close)
            supervisor = Supervisor(
                watchdog,
                control.tell_ended,
                prefixed=output == Output.PREFIX,
                grace=options.grace,
                report=options.report,
                quiet=options.quiet,
                stdout=options.stdout,
            )
            stack.callback(supervisor.close)
            for rank, start in enumerate(starts):
                file, descriptor = files[rank] if files else (None, None)
                streams = _streams(rank, output, options.stdout, descriptor)
                supervisor.add(replace(_start(rank, start, environment, streams), file=file))
            code = supervisor.run()
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise  # the ranks ran, but their output did not fit on the disk
        raise _not_run(starts[0].command, number, error) from error
    if options.trace is not None:
        _end_trace(environment["ONEHOP_TRACE"])
    if options.on_result is not None:
        options.on_result(supervisor.result(_whole_command(starts), code))
    return code
