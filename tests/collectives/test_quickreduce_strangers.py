"""Other processes at the socket of QuickReduce, and handles and messages that are wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from onehop import BadInput, Mismatch, PeerLost, Timeout, quickreduce, rendezvous, serialization
from ranks import PATIENCE, Ranks

NOBODY = 65534


# A rank that prints its handle, reads those of all ranks, and sums.
RANK = """
    import json, sys
    import numpy as np
    import onehop.quickreduce as qr
    rank = int(sys.argv[1])
    qr.init(2, rank)
    print(qr.get_comm_handle().hex(), flush=True)
    handles = [bytes.fromhex(one) for one in json.loads(sys.stdin.readline())]
    qr.set_comm_handles(handles)
    print(qr.allreduce(1, np.full(5, 1.0 + rank)).tolist(), flush=True)
"""


def _start(ranks: Ranks, rank: int) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    program = ranks.script(RANK)
    return subprocess.Popen(
        [sys.executable, program, str(rank)],
        env={**ranks.environment, "ONEHOP_TIMEOUT": "30"},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


def _address_and_key(handle: str) -> tuple[str, bytes]:
    message = serialization.decode(bytes.fromhex(handle), "quickreduce")
    return message.get("address", str), message.bytes_of(0)


@contextlib.contextmanager
def _another_user(do: Callable[[Callable[[bytes], object]], None]) -> Iterator[IO[bytes]]:
    """Run a function in a process of another user, which reports the outcome through a pipe."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            do(lambda said: os.write(writing, said))
            code = 0
        os._exit(code)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb", buffering=0) as stream:
            yield stream
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    assert os.waitpid(child, 0)[1] == 0


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@contextlib.contextmanager
def _strays(address: str, said: bytes, count: int = 3) -> Iterator[list[socket.socket]]:
    """Connections to rank 0 that are not from ranks, and stay open."""
    lines = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for line in lines:
        line.connect(address)
        if said:
            line.sendall(said)
    yield lines
    for line in lines:
        line.close()


def _sums_are_right(rank_0: subprocess.Popen[str], rank_1: subprocess.Popen[str], handles: str) -> None:
    for process in (rank_0, rank_1):
        process.stdin.write(handles + "\n")
        process.stdin.flush()
    for process in (rank_0, rank_1):
        out, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert json.loads(out) == [3.0] * 5


def _both(ranks: Ranks) -> tuple[subprocess.Popen[str], subprocess.Popen[str], str]:
    processes = [_start(ranks, rank) for rank in (0, 1)]
    handles = [process.stdout.readline().strip() for process in processes]
    return *processes, json.dumps(handles)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\0\1",
        b"\xff" * 4,
        b"x" * 1000,
        "key",
        "key and rank 0",
        "key and a rank beyond",
        "key and a pickle",
    ],
    ids=lambda said: said if isinstance(said, str) else f"{len(said)} bytes",
)
def test_stray_calls_of_the_same_user_do_not_stop_rank_0(ranks: Ranks, said: bytes | str) -> None:
    rank_0, rank_1, handles = _both(ranks)
    address, key = _address_and_key(json.loads(handles)[0])
    rest = {
        "key": b"",
        "key and rank 0": b"\0\0\0\0",
        "key and a rank beyond": b"\xff\0\0\0",
        "key and a pickle": b"cos\nsystem\n(S'true'\ntR.",
    }
    with _strays(address, said if isinstance(said, bytes) else key + rest[said]):
        _sums_are_right(rank_0, rank_1, handles)


def test_a_second_caller_with_a_ranks_number_is_hung_up_on() -> None:
    listener = rendezvous.Listener("test", 3)
    both = (1, os.getpid())
    lines = [rendezvous.call(listener.address, listener.key, *both) for _ in range(2)]
    other = rendezvous.call(listener.address, listener.key, 2, os.getpid())
    found = listener.accept([os.getpid()] * 3)
    assert sorted(found) == [1, 2]
    found[1].send(b"welcome", 5)
    found[2].send(b"you too", 5)
    assert (lines[0].receive(5), other.receive(5)) == (b"welcome", b"you too")
    with pytest.raises(PeerLost):
        lines[1].receive(5)


@as_root
@pytest.mark.parametrize("with_key", [False, True])
def test_another_user_is_no_rank_whatever_it_knows(with_key: bool) -> None:
    listener = rendezvous.Listener("test", 2)

    def attack(tell: Callable[[bytes], object]) -> None:
        said = listener.key + b"\1\0\0\0" if with_key else b"\0\1"
        with _strays(listener.address, said, 1) as lines:
            tell(b"!")  # called before any rank
            lines[0].settimeout(30)
            with contextlib.suppress(ConnectionError):
                tell(b"heard " + lines[0].recv(100))

    def rank_1() -> None:
        line = rendezvous.call(listener.address, listener.key, 1, os.getpid())
        found.append(line.receive(30))

    found: list[bytes] = []
    with _another_user(attack) as said:
        assert said.read(1) == b"!"
        thread = threading.Thread(target=rank_1)
        thread.start()
        listener.accept([os.getpid()] * 2)[1].send(b"secret", 30)
        thread.join()
        assert found == [b"secret"]
        assert said.read() in (b"", b"heard ")


@as_root
def test_another_user_in_the_place_of_rank_0_is_told_nothing(ranks: Ranks) -> None:
    rank_1 = _start(ranks, 1)
    address, key = "\0onehop-test-" + os.urandom(8).hex(), b"k" * rendezvous.KEY_BYTES
    fields = {"size": 2, "rank": 0, "pid": os.getpid(), "address": address}
    lie = serialization.encode("quickreduce", fields, [key]).hex()
    handles = json.dumps([lie, rank_1.stdout.readline().strip()])

    def listen(tell: Callable[[bytes], object]) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            listener.settimeout(30)
            tell(b"!")
            line, _ = listener.accept()
            tell(b"heard " + line.recv(100))

    with _another_user(listen) as said:
        assert said.read(1) == b"!"
        rank_1.stdin.write(handles + "\n")
        rank_1.stdin.flush()
        assert said.read() == b"heard "
    _, errors = rank_1.communicate(timeout=PATIENCE)
    assert "PeerLost: rank 0" in errors
    assert "another user" in errors


def test_rank_0_does_not_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.5")
    listener = rendezvous.Listener("test", 2)
    with _strays(listener.address, b"\0\1"), pytest.raises(Timeout, match=r"rank 1 .* 0.5 s"):
        listener.accept([os.getpid()] * 2)


def test_a_rank_does_not_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.5")
    with socket.socket(socket.AF_UNIX) as full:
        full.bind("")
        full.listen(0)
        address = "\0" + full.getsockname()[1:].decode()
        with _strays(address, b"", 1), pytest.raises(PeerLost, match="does not answer"):
            rendezvous.call(address, b"k" * rendezvous.KEY_BYTES, 1, os.getpid())


def test_a_message_of_a_rank_that_is_too_long_or_truncated() -> None:
    here, there = socket.socketpair()
    line = rendezvous.Line(here, 1)
    there.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(Mismatch, match="at most"):
        line.receive(5)
    there.sendall(b"\x10\0\0\0half")
    there.close()
    with pytest.raises(PeerLost):
        line.receive(5)
    here.close()


def _handle(**changed: object) -> bytes:
    fields = {"size": 1, "rank": 0, "pid": os.getpid(), "address": "\0here"}
    key = changed.pop("key", b"k" * rendezvous.KEY_BYTES)
    return serialization.encode("quickreduce", {**fields, **changed}, [key])


@pytest.mark.parametrize(
    "handle",
    [
        b"cos\nsystem\n(S'touch unpickled'\ntR.",
        b"",
        "text",
        None,
        _handle()[:-1],
        _handle(key=b"short"),
        _handle(size=0),
        _handle(rank=-1),
        _handle(rank="0"),
        _handle(pid=0),
        _handle(pid=2**70),
        _handle(address=3),
    ],
)
def test_handles_that_are_none(handle: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quickreduce.init(1, 0)
    with pytest.raises(BadInput, match="get_comm_handle"):
        quickreduce.set_comm_handles([handle])
    assert not (tmp_path / "unpickled").exists()
    quickreduce._current.clear()
