"""The processes that run tasks for a notebook: signals of its kernel end or leave them without a word."""

from __future__ import annotations

import signal

import pytest

from onehop.quantum import Circuit
from onehop.quantum.run import executor as executors
from onehop.quantum.run.executor import ProcessExecutor
from onehop.quantum.run.task import Task


def measured(executor: ProcessExecutor, bit: int) -> list[int]:
    """Run a circuit that measures this bit with certainty."""
    circuit = Circuit(2, 2)
    if bit:
        circuit.x(0)
    return list(executor.run([Task(circuit.measure([0, 1], [0, 1]), shots=3)])[0].values)


def test_signals_of_the_kernel_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """A kernel sends SIGINT to all its processes when a cell is interrupted, and SIGTERM when it ends."""
    executor = ProcessExecutor(2)
    assert measured(executor, 1) == [1]
    process = executor._process
    assert process is not None
    process.send_signal(signal.SIGINT)
    assert measured(executor, 0) == [0]
    assert executor._process is process
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert measured(executor, 1) == [1]  # by new processes
    executor.close()
    assert capfd.readouterr().err == ""


def test_an_interrupted_call_leaves_no_answer_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = ProcessExecutor(1)
    assert measured(executor, 0) == [0]

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(executors, "read_framed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            measured(executor, 0)
    assert measured(executor, 1) == [1]
    executor.close()
