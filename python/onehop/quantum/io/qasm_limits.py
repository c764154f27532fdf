"""Limits on the operations, time and memory of reading or converting a circuit."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from onehop._core import environment_number
from onehop.error import BadInput
from onehop.text import counted

OPERATIONS, SECONDS, MEMORY = "ONEHOP_QASM_OPERATIONS", "ONEHOP_QASM_SECONDS", "ONEHOP_QASM_MEMORY_MIB"


def _limit(variable: str, default: float) -> float:
    value = environment_number(variable)
    return default if value is None else value


def memory_limit() -> int:
    """Return the maximum number of bytes of memory of a process that reads a circuit."""
    return int(min(_limit(MEMORY, 16 * 1024) * 2**20, sys.maxsize // 2))


@dataclass
class Budget:
    """Operations and time for reading a circuit."""

    # maximum number of operations, with loops and gate definitions expanded
    operations: int = field(default_factory=lambda: int(_limit(OPERATIONS, 10_000_000)))
    # maximum time from the creation of the budget on
    seconds: float = field(default_factory=lambda: _limit(SECONDS, 600))

    def __post_init__(self) -> None:
        self.left = self.operations
        self._end = time.monotonic() + self.seconds

    def require(self, operations: int) -> None:
        """Raise BadInput if fewer than `operations` operations are left, or if the time is over."""
        if operations > self.left:
            raise BadInput(
                f"expected at most {counted(self.operations, 'operation')} once loops and gates are written "
                "out, found more; "
                f"set {OPERATIONS} to raise the limit"
            )
        if time.monotonic() > self._end:
            raise BadInput(
                f"expected a circuit that is read within {self.seconds:g} s, found one that takes longer; "
                f"set {SECONDS} to raise the limit"
            )

    def spend(self, operations: int = 1) -> None:
        """Take operations from the budget; raise BadInput if it does not suffice."""
        self.require(operations)
        self.left -= operations


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextlib.contextmanager
def limited() -> Iterator[Budget]:
    """Put a budget in force for a `with` block, unless one is in force already; yield it."""
    known = _budget.get()
    if known is not None:
        yield known
        return
    budget = Budget()
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def current_budget() -> Budget:
    """Return the budget in force, or a new one."""
    return _budget.get() or Budget()
