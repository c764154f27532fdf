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


# The same in `onehop run`, of which one step may be minutes of passes over a large state.
RUN = """
import hashlib, os, signal, sys, threading
from onehop.cli import main
from onehop.cli.quantum import run
def simulate(*_, **__):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000_000)
    except KeyboardInterrupt:
        sys.exit("the step has gone on to its end")
run.simulate = simulate
sys.exit(main(["run", sys.argv[1]]))
"""


def test_a_step_of_a_circuit_is_left(ranks: Ranks) -> None:
    file = ranks.folder / "one.qasm"
    file.write_text('OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[1];\nry(0.3) q[0];\n')
    done = ranks.run_python("-c", RUN, file)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (130, ["onehop: interrupted"])


def test_a_call_that_ends_raises() -> None:
    def interrupted() -> None:
        with waiting("computing"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert signal.set_wakeup_fd(-1) == -1
