"""Supervise running ranks: forward their output, end all when one fails, and report which one failed."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from onehop.exit_code import PEER_LOST
from onehop.launch.output import Lines, Tail, write_all
from onehop.launch.result import LaunchResult, RankResult, signal_name
from onehop.launch.watchdog import Watchdog, kill_group

# Seconds after the first failure in which further failures are collected before the cause is decided. A rank that has
# lost its peer may end before the peer's own end is seen, and other ranks may fail for the same reason.
SETTLE = 0.1
SETTLE_PEER_LOST = 1.0
# Seconds from SIGTERM (SIGINT) to SIGKILL, unless the user says how long.
SIGKILL_AFTER = 2.0
# If only rank 0 prints: seconds for it to find the same error as the rank that has failed, and to print it.
SETTLE_RANK0 = 0.5

# Signals for the ranks, which may save a checkpoint.
_PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)


class Sink(Protocol):
    """Consumes the output of one stream of one rank."""

    def feed(self, data: bytes) -> None:
        """Consume the next bytes."""

    def close(self) -> None:
        """Finish after the last bytes."""


@dataclass
class Rank:
    """A rank that was started. Its process leads a process group of its own."""

    rank: int
    process: subprocess.Popen
    code: int | None = None  # exit code, negative for a signal; None while it runs
    stopped: bool = False  # whether the launcher told it to end
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    last_words: Tail | None = None
    file: Path | None = None  # of its output


def describe_end(rank: Rank) -> str:
    """Describe the end of a rank, for example "rank 2 failed with exit code 3"."""
    assert rank.code is not None
    if rank.code >= 0:
        return f"rank {rank.rank} failed with exit code {rank.code}"
    return f"rank {rank.rank} was killed by signal {-rank.code} ({signal_name(-rank.code)})"


def _has_ended(process: subprocess.Popen) -> bool:
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:  # a sandbox refuses waitid
        return process.poll() is not None


class Supervisor:
    """Owns the ranks from their start to the end of the launch."""

    def __init__(
        self,
        watchdog: Watchdog,
        tell_ended: Callable[[int], None],
        *,
        prefixed: bool,
        grace: float | None,
        report: bool,
        quiet: bool = False,
        stdout: int = 1,
    ) -> None:
        self._watchdog = watchdog
        self._tell_ended = (
            tell_ended  # tells the other ranks, which may wait for a rank that never joined them
        )
        self._prefixed = prefixed
        self._stdout = stdout
        self._grace = grace
        self._report = report
        self._quiet = quiet  # about signals
        self._ranks: list[Rank] = []
        self._failed: list[Rank] = []  # in the order of their ends
        self._sinks: list[Sink] = []
        self._selector = selectors.DefaultSelector()
        self._decide_at: float | None = None  # when the failures seen so far end the launch
        self._kill_at: float | None = None
        self._signal: int | None = None  # the signal that told the launcher to stop
        self._signals: list[int] = []  # received and not yet acted on
        self._saved: dict[int, object] = {}
        self._wake, self._woken = socket.socketpair()
        self._saved_wakeup = -1
        self._listen()

    # -- the ranks -------------------------------------------------------------------------------------------------

    def add(self, rank: Rank) -> None:
        """Supervise a rank that has just been started."""
        self._watchdog.started(rank.process.pid)
        self._ranks.append(rank)
        process = rank.process
        if process.stdout is not None:
            self._pass_on(process.stdout, Lines(self._stdout, f"[{rank.rank}] "))
        if process.stderr is not None:
            if not self._prefixed:
                rank.last_words = Tail()
            self._pass_on(process.stderr, rank.last_words or Lines(2, f"[{rank.rank}] "))
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(0, selectors.EVENT_READ, self._typed)

    def run(self) -> int:
        """Wait for all ranks and return the exit code of the launch."""
        while any(rank.code is None for rank in self._ranks):
            for key, _ in self._selector.select(self._select_timeout()):
                key.data()
            self._reap()
            self._act_on_signals()
            self._act_on_time()
        self._drain()
        return self._result()

    def result(self, command: Sequence[str], exit_code: int) -> LaunchResult:
        """Return the result of every rank, after `run` has returned `exit_code`."""
        cause = self._cause() if self._signal is None else None
        ranks = []
        for rank in self._ranks:
            assert rank.code is not None
            by_signal = rank.code < 0
            ranks.append(
                RankResult(
                    rank.rank,
                    None if by_signal else rank.code,
                    signal_name(-rank.code) if by_signal else None,
                    rank.stopped,
                    round(rank.ended - rank.began, 3),
                )
            )
        seconds = max(rank.ended for rank in self._ranks) - min(rank.began for rank in self._ranks)
        failed = None if cause is None else cause.rank
        return LaunchResult(list(command), exit_code, failed, round(seconds, 3), ranks)

    def close(self) -> None:
        """Kill the ranks that still run, and restore the signal handlers."""
        for rank in self._ranks:
            if rank.code is None:
                kill_group(rank.process.pid, signal.SIGKILL)
                self._ended(rank, rank.process.wait())
            for stream in (rank.process.stdin, rank.process.stdout, rank.process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._selector.close()
        if self._saved:
            signal.set_wakeup_fd(self._saved_wakeup)
            for number, handler in self._saved.items():
                signal.signal(number, handler)
        self._wake.close()
        self._woken.close()

    def _reap(self) -> None:
        for rank in self._ranks:
            if rank.code is None:
                # Kill the process group before reaping its leader: while the leader is a zombie, no other process can
                # get its number.
                if not _has_ended(rank.process):
                    continue
                kill_group(rank.process.pid, signal.SIGKILL)
                self._ended(rank, rank.process.wait())

    def _ended(self, rank: Rank, code: int) -> None:
        self._watchdog.ended(rank.process.pid)
        self._tell_ended(rank.rank)
        rank.code = code
        rank.ended = time.monotonic()
        if code == 0 or rank.stopped or self._signal is not None:
            return
        self._failed.append(rank)
        settle = max(SETTLE_PEER_LOST if code == PEER_LOST else SETTLE, self._grace or 0.0)
        if rank.last_words is not None:
            settle = max(settle, SETTLE_RANK0)
        decide_at = time.monotonic() + settle
        self._decide_at = decide_at if self._decide_at is None else min(self._decide_at, decide_at)

    def _stop(self, number: int) -> None:
        for rank in self._ranks:
            if rank.code is None:
                rank.stopped = True
                kill_group(rank.process.pid, number)
        self._kill_at = time.monotonic() + (SIGKILL_AFTER if self._grace is None else self._grace)

    # -- time and signals ------------------------------------------------------------------------------------------

    def _select_timeout(self) -> float | None:
        if not self._saved:
            return 0.02  # this thread gets no signals, so poll often
        moments = [moment for moment in (self._decide_at, self._kill_at) if moment is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _act_on_time(self) -> None:
        now = time.monotonic()
        if self._decide_at is not None and now >= self._decide_at:
            self._decide_at = None
            if self._kill_at is None:
                self._stop(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._stop(signal.SIGKILL)

    def _act_on_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if number == signal.SIGTSTP:
                for rank in self._ranks:
                    if rank.code is None:
                        kill_group(rank.process.pid, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                for rank in self._ranks:
                    if rank.code is None:
                        kill_group(rank.process.pid, signal.SIGCONT)
            elif number in _PASSED_ON:
                for rank in self._ranks:
                    if rank.code is None:
                        kill_group(rank.process.pid, number)
            elif self._signal is None:
                self._signal = number
                self._stop(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
            else:  # a second signal
                self._stop(signal.SIGKILL)

    def _listen(self) -> None:
        """Let signals and the ends of ranks wake the select. Python allows this in the main thread only."""
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._empty_wakeup)
        if threading.current_thread() is not threading.main_thread():
            return
        self._saved_wakeup = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self._saved[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, *_PASSED_ON):
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                self._saved[number] = signal.signal(
                    number, lambda received, _: self._signals.append(received)
                )

    def _empty_wakeup(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass

    # -- input and output ------------------------------------------------------------------------------------------

    def _pass_on(self, stream: IO[bytes], sink: Sink) -> None:
        descriptor = stream.fileno()
        os.set_blocking(descriptor, False)
        self._sinks.append(sink)

        def readable() -> None:
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return
            if data:
                sink.feed(data)
            else:
                self._selector.unregister(descriptor)

        self._selector.register(descriptor, selectors.EVENT_READ, readable)

    def _typed(self) -> None:
        """Forward typed input to rank 0, which cannot read the terminal from its own process group."""
        if os.tcgetpgrp(0) != os.getpgrp():
            time.sleep(0.05)  # reading the terminal in the background would stop the launcher
            return
        data = os.read(0, 1 << 12)
        stdin = self._ranks[0].process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # rank 0 does not read, or is gone
            if data:
                write_all(stdin.fileno(), data)
                return
            stdin.close()
        self._selector.unregister(0)

    def _drain(self) -> None:
        """Forward the rest of the output in the pipes after all ranks have ended."""
        while True:
            ready = [key for key, _ in self._selector.select(0) if key.fileobj not in (0, self._woken)]
            if not ready:
                break
            for key in ready:
                key.data()
        for sink in self._sinks:
            sink.close()

    # -- the end ---------------------------------------------------------------------------------------------------

    def _cause(self) -> Rank | None:
        """Return the rank that caused the failure: the first that did not only lose its peer, or else the first."""
        if not self._failed:
            return None
        first = min(self._failed, key=lambda rank: rank.code == PEER_LOST)
        # If all have lost a peer, the first one to end may have another reason for this code.
        if first.code == PEER_LOST:
            return first
        # If several ranks fail with the same code, report the lowest: they probably found the same error.
        return min((rank for rank in self._failed if rank.code == first.code), key=lambda rank: rank.rank)

    def _result(self) -> int:
        if self._signal is not None:
            name = "interrupted" if self._signal == signal.SIGINT else f"ended by {signal_name(self._signal)}"
            if not self._quiet:
                print(f"onehop: {name}; all ranks were stopped", file=sys.stderr)
            return 128 + self._signal
        cause = self._cause()
        if cause is None:
            return 0
        assert cause.code is not None
        if cause.last_words is not None:
            cause.last_words.show(2, f"[{cause.rank}] ")
        if self._report or cause.rank != 0 or cause.code < 0:
            print(f"onehop: {self._describe(cause)}", file=sys.stderr)
        return cause.code if cause.code > 0 else 128 - cause.code

    def _describe(self, cause: Rank) -> str:
        text = describe_end(cause)
        if cause.code == PEER_LOST:
            done = [str(rank.rank) for rank in self._ranks if rank.code == 0]
            if done:
                text += f" (it lost a peer: rank {', '.join(done)} had already ended with exit code 0)"
        if any(rank.stopped for rank in self._ranks):
            text += "; the others were stopped"
        if cause.file is not None:
            text += f"; its output is in {cause.file}"
        return text
