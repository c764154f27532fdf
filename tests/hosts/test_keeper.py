"""The server of an emulated host runs commands of its own user only, and only a server of the user gets a command."""

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from onehop.error import Error
from onehop_bench.hosts import keeper, remote_shell
from onehop_bench.hosts.emulated import EmulatedHosts

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")
@pytest.mark.parametrize("user", [0, NOBODY])
def test_another_user_is_refused(user: int, tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    address = "\0onehop-test-" + tmp_path.name  # abstract, so that the other user can reach it at all
    listener.bind(address)
    listener.listen()
    child = os.fork()
    if child == 0:
        os.setuid(user)
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(address)
            caller.recv(1)  # until the other end is closed
        os._exit(0)
    connection = listener.accept()[0]
    if user == 0:
        remote_shell.check_user(connection)
    else:
        with pytest.raises(PermissionError, match=f"found one of user {user}"):
            remote_shell.check_user(connection)
    connection.close()
    listener.close()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")
def test_a_server_of_another_user_gets_nothing(tmp_path: Path) -> None:
    address = "\0onehop-test-" + tmp_path.name
    received = {user: _received(address + str(user), user) for user in (0, NOBODY)}
    assert received[0].startswith(b'["a host", ["true"]')
    assert received[NOBODY] == b""


def _received(address: str, user: int) -> bytes:
    """What a server of a user receives from `run`, which must raise an error if the user is not this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(user)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(address)
            listener.listen()
            os.write(writing, b"x")
            os.write(writing, listener.accept()[0].recv(100))  # and closes the connection
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    if user == os.geteuid():
        with pytest.raises(ConnectionError):
            remote_shell.run(address, "a host", ["true"])
    else:
        with pytest.raises(PermissionError, match=f"user {user}"):
            remote_shell.run(address, "a host", ["true"])
    with os.fdopen(reading, "rb") as stream:
        received = stream.read()
    os.waitpid(child, 0)
    return received


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")
def test_the_server_starts_nothing_for_another_user_and_names_no_host(tmp_path: Path) -> None:
    started = []

    def start(host: str, *_: object) -> subprocess.Popen[bytes]:
        started.append(host)
        if host == "gone":
            raise FileNotFoundError(host)
        return subprocess.Popen(["true"])

    address = "\0onehop-test-" + tmp_path.name
    with keeper.ShellServer(address, start) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(NOBODY)
                with socket.socket(socket.AF_UNIX) as caller:
                    caller.connect(address)
                    socket.send_fds(caller, [b'["stolen", ["true"], {}, "/"]\n'], [0, 1, 2])
                    caller.recv(64)  # until the other end is closed
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert remote_shell.run(address, "a host", ["true"]) == 0
        with pytest.raises(ConnectionError, match="it was never made, or has ended"):
            remote_shell.run(address, "gone", ["true"])
        server.shutdown()
    assert started == ["a host", "gone"]


def test_a_caller_that_says_nothing_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_PATIENCE", 0.1)
    silent, server = socket.socketpair()
    with silent, server, pytest.raises(TimeoutError):
        keeper.receive(server)


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")
@pytest.mark.parametrize(("owner", "permissions"), [(NOBODY, 0o755), (0, 0o777), (0, 0o1777), (0, 0o770)])
def test_no_script_is_written_into_a_folder_of_others(owner: int, permissions: int, tmp_path: Path) -> None:
    folder, precious = tmp_path / "folder", tmp_path / "precious"
    folder.mkdir()
    hosts = EmulatedHosts([], None, 1, folder)
    for mode in (0o700, 0o755):
        folder.chmod(mode)
        assert "remote_shell.py" in Path(hosts.remote_shell()).read_text()
        assert os.access(hosts.remote_shell(), os.X_OK)
    (folder / "ssh").unlink()
    folder.chmod(permissions)
    os.chown(folder, owner, owner)
    with pytest.raises(Error, match=f"expected that only user 0 may write to {folder}"):
        hosts.remote_shell()
    assert list(folder.iterdir()) == []
    os.chown(folder, 0, 0)
    folder.chmod(0o700)
    precious.write_text("mine")
    (folder / "ssh").symlink_to(precious)
    os.lchown(folder / "ssh", NOBODY, NOBODY)
    with pytest.raises(PermissionError, match=r"the link .*/ssh belongs to user 65534"):
        hosts.remote_shell()
    assert precious.read_text() == "mine"
