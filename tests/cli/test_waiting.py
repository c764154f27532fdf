"""Long calls of the library end within two seconds after Ctrl-C."""

import os
import signal
import time

import pytest

from onehop.cli.waiting import waiting
from ranks import Ranks

# As in a call of the library, Python handles no signal meanwhile.
PROGRAM = """
import hashlib, os, signal, threading
from onehop.cli.waiting import waiting
with waiting("computing"):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000_000)
"""


def test_a_call_that_goes_on_is_left(ranks: Ranks) -> None:
    begin = time.monotonic()
    done = ranks.run_python("-c", PROGRAM)
    assert (done.returncode, done.stderr) == (130, "onehop: interrupted\n")
    assert time.monotonic() - begin < 10


def test_a_call_that_ends_raises() -> None:
    def interrupted() -> None:
        with waiting("computing"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert signal.set_wakeup_fd(-1) == -1
