"""What docs/design/security.md says about another user of the machine, tried as that user while ranks are at work."""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onehop.launch import agreement
from onehop.launch.environment import Launched
from open_sockets import descriptors, internet_sockets
from ranks import PATIENCE, Ranks

NOBODY = 65534
LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_OPEN, PIDFD_GETFD, PROCESS_VM_READV, PTRACE_ATTACH = 434, 438, 310, 16

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

# Ranks that exchange until a file appears; each then prints whether every byte is right.
WORK = """
    import os, time, numpy as np, onehop
    group = onehop.Group.world()
    print("process", os.getpid(), flush=True)
    schedule = onehop.halo(extents=(8 * group.size, 8), grid=(group.size, 1))
    field = np.full((10, 10), float(group.rank))
    plan = onehop.Plan(schedule, group, [field])
    print("at work", flush=True)
    until = time.monotonic() + 120  # nobody writes the file if pytest has been killed
    while not onehop.allreduce(
        group, np.array([os.path.exists("stop") or time.monotonic() > until], np.int32)
    )[0]:
        plan.run()
    below = (group.rank - 1) % group.size
    assert (field[0, 1:-1] == below).all() and (field[1:-1, 1:-1] == group.rank).all()
    print("done", flush=True)
"""


def as_other_user(attack: Callable[[], Any]) -> Any:
    """Return what a function returns in a child process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, json.dumps(attack()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    assert data, "the attack ended without an answer"
    return json.loads(data)


def refused(action: Callable[[], Any]) -> bool:
    """Whether the system refuses an action for lack of permission."""
    try:
        action()
    except PermissionError:
        return True
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES)
    return False


def checked(result: int) -> int:
    """Raise the error of a system call."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "a system call")
    return result


def system_call(number: int, *arguments: Any) -> int:
    """Make a system call; its numbers have 64 bits."""
    return checked(
        LIBC.syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in (number, *arguments)))
    )


def read_memory(pid: int) -> None:
    """Read from the beginning of a process's memory map with process_vm_readv; any address is refused or not mapped."""
    room = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(room), 8)
    remote = (ctypes.c_size_t * 2)(4096, 8)
    system_call(PROCESS_VM_READV, pid, local, 1, remote, 1, 0)


def take_descriptor(pid: int, number: int) -> None:
    """Duplicate a descriptor of another process."""
    process = system_call(PIDFD_OPEN, pid, 0)
    try:
        os.close(system_call(PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)


def attempts(pid: int, shared: list[int]) -> dict[str, Callable[[], Any]]:
    """Return all ways to the memory of a process and to its life."""
    place = Path(f"/proc/{pid}")
    found: dict[str, Callable[[], Any]] = {
        "list its descriptors": lambda: list((place / "fd").iterdir()),
        "read its memory": lambda: (place / "mem").open("rb").close(),
        "read its map": lambda: (place / "maps").read_text(),
        "read its environment": lambda: (place / "environ").read_bytes(),
        "reach its folder": lambda: list((place / "cwd").iterdir()),
        "reach its mapped files": lambda: list((place / "map_files").iterdir()),
        "copy its memory": lambda: read_memory(pid),
        "trace it": lambda: checked(LIBC.ptrace(PTRACE_ATTACH, pid, None, None)),
        "interrupt it": lambda: os.kill(pid, signal.SIGINT),
        "kill it": lambda: os.kill(pid, signal.SIGKILL),
    }
    for number in shared:
        found[f"open its shared memory {number}"] = lambda number=number: os.open(
            place / f"fd/{number}", os.O_RDWR
        )
        found[f"take its shared memory {number}"] = lambda number=number: take_descriptor(pid, number)
    return found


def shared_memory(pid: int) -> list[int]:
    """Return the descriptors of the shared memory of a process."""
    return [number for number, name in descriptors(pid).items() if "memfd:onehop" in name]


def test_no_way_leads_to_the_memory_of_a_run(ranks: Ranks) -> None:
    process = ranks.start(3, WORK)
    assert process.stdout is not None
    pids, working = [process.pid], 0
    while working < 3:
        line = process.stdout.readline()
        assert line, "the launch ended"
        if " process " in line:
            pids.append(int(line.split()[-1]))
        working += line.endswith("at work\n")
    shared = {pid: shared_memory(pid) for pid in pids}
    assert all(shared.values()), "the launcher and each rank have shared memory"
    with socket.create_server(("127.0.0.1", 0)):
        assert internet_sockets(os.getpid())
    assert {pid: internet_sockets(pid) for pid in pids} == {pid: [] for pid in pids}
    # This test can fail: what the other user tries works for this one.
    for name, action in attempts(pids[1], shared[pids[1]]).items():
        assert name in ("interrupt it", "kill it", "trace it", "copy its memory") or not refused(action), name

    def attack() -> list[str]:
        return [
            f"{name} ({pid})"
            for pid in pids
            for name, action in attempts(pid, shared[pid]).items()
            if not refused(action)
        ]

    assert as_other_user(attack) == []
    (ranks.folder / "stop").touch()
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert output.count("done") == 3


def test_control_memory_of_another_user_is_not_joined(ranks: Ranks) -> None:
    """The environment names memory of a process of somebody else: it is refused, though root could open it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        file = os.memfd_create("onehop", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, 1 << 20)
        os.write(writing, str(file).encode())
        time.sleep(120)  # it is killed before, unless pytest is
        os._exit(0)
    try:
        number = int(os.read(reading, 20))
        ranks.environment |= {
            "ONEHOP_CONTROL": f"/proc/{child}/fd/{number}",
            "ONEHOP_RANK": "0",
            "ONEHOP_RANKS": "2",
            "ONEHOP_LAUNCHER_PID": str(child),
        }
        program = ranks.script("import onehop; onehop.Group.world()")
        done = ranks.run_python(program)
        assert done.returncode != 0
        assert f"user {NOBODY}" in done.stderr, done.stderr
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_a_stranger_takes_no_place_among_ranks_that_agree_on_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """He neither learns the digest nor makes another rank repeat the message."""
    name = f"\0onehop-test-{os.getpid()}"
    monkeypatch.setattr(agreement, "_name", lambda launched: name)
    launched = Launched("onehop launch", 0, 2)
    said: list[str] = []
    first = threading.Thread(
        target=agreement.say_once, args=(launched, "wrong", lambda: said.append("first"))
    )
    first.start()

    def ask() -> int:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(ConnectionRefusedError):
                line.connect(name)
                return len(line.recv(100))
        return -1

    assert as_other_user(ask) == 0
    agreement.say_once(launched, "wrong", lambda: said.append("second"))
    first.join()
    assert said == ["first"]


def test_a_rank_that_has_claimed_the_message_and_does_not_listen_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may stop a rank between any two of its steps; the others then print nothing."""
    name = f"\0onehop-test-{os.getpid()}-slow"
    monkeypatch.setattr(agreement, "_name", lambda launched: name)
    monkeypatch.setattr(agreement, "REACHABLE", 1.0)
    said: list[str] = []
    second = threading.Thread(
        target=agreement.say_once,
        args=(Launched("onehop launch", 1, 2), "wrong", lambda: said.append("second")),
    )
    with socket.socket(socket.AF_UNIX) as claim:
        claim.bind(name)
        second.start()
        time.sleep(0.3)
        claim.listen(2)
        connection, _ = claim.accept()
        time.sleep(1.5)  # it prints, which takes longer than it is reachable afterwards
        with connection:
            connection.sendall(hashlib.sha256(b"wrong").digest())
        second.join()
    assert said == []


def test_a_rank_that_ends_without_an_answer_stops_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"\0onehop-test-{os.getpid()}-gone"
    monkeypatch.setattr(agreement, "_name", lambda launched: name)
    said: list[str] = []

    def say() -> None:
        said.append("first")
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect(name)
        third.start()

    third = threading.Thread(
        target=agreement.say_once,
        args=(Launched("onehop launch", 2, 3), "wrong", lambda: said.append("third")),
    )
    agreement.say_once(Launched("onehop launch", 0, 3), "wrong", say)
    third.join()
    assert said == ["first"]
