"""Limits on the operations, time and memory of reading a circuit, and checks of its text before it is parsed."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from onehop._core import environment_number
from onehop.error import BadInput
from onehop.quantum.io.qasm_text import where
from onehop.text import counted

OPERATIONS, SECONDS, MEMORY = "ONEHOP_QASM_OPERATIONS", "ONEHOP_QASM_SECONDS", "ONEHOP_QASM_MEMORY_MIB"

_LONG_NUMBER = re.compile(r"[0-9_]{300,}|0[xX][0-9a-fA-F_]{300,}")
_LONG_INTEGER = re.compile(r"(?<![\w.])[0-9]{20,}(?![\w.])")
_REGISTER = re.compile(r"\b((?:q|c)reg\s+\w+|qubit|bit)\s*\[\s*([0-9]+)")
_STATEMENT = re.compile(r"[^;{}]+")
_OPERATORS = re.compile(r"[-+*/^!~@%&|<>=]")
_GATE = re.compile(r"\bgate\s+(\w+)[^;{}]*\{([^{}]*)\}")
_WORD = re.compile(r"[A-Za-z_]\w*")
# A register of n qubits makes n operations of one statement, so that the parsers must not see more than a circuit has.
# They take about 350 bytes for each bit.
MAX_QUBITS = 62
MAX_BITS = 65_536
# Maximum number of operators in a statement, over which parsers recurse.
_MAX_OPERATORS = 2000


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


class Registers:
    """Sizes of the registers that a circuit has declared so far."""

    def __init__(self) -> None:
        self._bits = 0
        self._qubits = 0

    def declare(self, size: int, *, quantum: bool) -> str:
        """Add a register of `size` qubits (`quantum`) or bits; return an error message, or "" if it fits."""
        self._qubits += max(size, 0) if quantum else 0
        self._bits += 0 if quantum else max(size, 0)
        for largest, found, what in (MAX_QUBITS, self._qubits, "qubit"), (MAX_BITS, self._bits, "bit"):
            if found > largest:
                return f"expected registers of at most {counted(largest, what)} together, found {found} up to here"
        return ""


def check_numbers(plain: str, name: str) -> None:
    """Check that Python and Qiskit can read all numbers of a text without comments."""
    if found := _LONG_NUMBER.search(plain):
        _refuse(
            plain,
            name,
            found.start(),
            f"expected a number of fewer than 300 digits, found one of {len(found[0])}",
        )
    if found := _LONG_INTEGER.search(plain):
        _refuse(
            plain, name, found.start(), f"expected an integer below 2^63, found one of {len(found[0])} digits"
        )


def _refuse(plain: str, name: str, start: int, problem: str) -> None:
    raise BadInput(f"{where(plain, name, start)}: {problem}")


def check_text(plain: str, name: str) -> None:
    """Reject a text, without comments, on which the parsers would crash or take hours or all memory."""
    check_numbers(plain, name)
    registers = Registers()
    for found in _REGISTER.finditer(plain):
        if wrong := registers.declare(int(found[2]), quantum=found[1].startswith("q")):
            _refuse(plain, name, found.start(), wrong)
    for found in _STATEMENT.finditer(plain):
        if len(found[0]) > _MAX_OPERATORS and len(_OPERATORS.findall(found[0])) > _MAX_OPERATORS:
            _refuse(
                plain,
                name,
                _first(found),
                f"expected at most {_MAX_OPERATORS} operators in a statement, found more",
            )
    _check_expansion(plain, name)


def _check_expansion(plain: str, name: str) -> None:
    """Count the operations of nested gate definitions, whose number may grow exponentially with the length."""
    budget = current_budget()
    costs: dict[str, int] = {}

    def cost(statement: str) -> int:
        return max((costs.get(word, 1) for word in _WORD.findall(statement)), default=0)

    for found in _GATE.finditer(plain):
        costs[found[1]] = max(1, sum(map(cost, found[2].split(";"))))
    most = max(costs.values(), default=1)
    if most * plain.count(";") <= budget.left:
        return
    bodies = [found.span() for found in _GATE.finditer(plain)]
    total, body = 0, 0
    for found in _STATEMENT.finditer(plain):
        start = _first(found)
        while body < len(bodies) and bodies[body][1] <= start:
            body += 1
        if body < len(bodies) and bodies[body][0] <= start:
            continue
        total += cost(found[0])
        if total > budget.left:
            try:
                budget.require(total)
            except BadInput as error:
                raise BadInput(f"{where(plain, name, start)}: {error}") from None


def _first(statement: re.Match[str]) -> int:
    """Return the position of the first character that is no blank."""
    return statement.start() + len(statement[0]) - len(statement[0].lstrip())
