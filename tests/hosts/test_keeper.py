"""The server of an emulated host runs commands of its own user only."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from onehop.hosts import keeper

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
    assert keeper._is_own_user(connection) is (user == 0)
    connection.close()
    listener.close()
    assert os.waitpid(child, 0)[1] == 0
