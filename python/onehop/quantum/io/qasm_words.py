"""What Qiskit's parsers say about an OpenQASM program, in the words of onehop: what was expected, and what to do."""

from __future__ import annotations

import re

from onehop.quantum.circuit import gate_names
from onehop.text import counted

_STATEMENTS = {
    "ConstantDeclaration": "a constant; write its value where it is used",
    "ClassicalAssignment": "an assignment; only measurements may set bits",
    "SubroutineDefinition": "a subroutine (def); write a gate, or its statements where it is called",
    "SwitchStatement": "a switch; write if statements",
    "CalibrationStatement": "a calibration (cal); leave it out",
    "CalibrationDefinition": "a calibration (defcal); leave it out",
    "CalibrationGrammarDeclaration": "a calibration (defcalgrammar); leave it out",
    "ExternDeclaration": "an extern function; write its values where they are used",
    "EndStatement": "an end statement; leave out what follows it",
    "Pragma": "a pragma; leave it out",
    "ExpressionStatement": "an expression without effect; leave it out",
}
_CONDITION = (
    "expected a condition such as `c == 2` for a register or `c[0] == true` for a bit, found {}; write conditions "
    "inside conditions for several"
)
# Patterns of messages, and what is said instead: a text for `re.Match.expand`.
_WORDS = [
    (
        r"operation \d+ \((\w+)\): expected a finite (.*)",
        r"gate '\1': expected a finite \2; write one of finite numbers",
    ),
    (r"(gate '\w+': expected finite angles, .*)", r"\1; write one of finite numbers"),
    (
        r"operation \d+ \((\w+)\): (.*)",
        r"gate '\1': \2",
    ),
    (
        r"needed '==', but instead saw \[",
        "expected a register in the condition, as in `if (c == 1)`, found one of its "
        "bits; give the bit a register of its own, or write OpenQASM 3",
    ),
    (
        r"custom instruction '(\w+)' is mismatched with its definition: OpenQASM program has (.*), custom has (.*)",
        r"expected '\1' with \3, as in qelib1.inc, found one with \2; rename it",
    ),
    (
        r"cannot use non-builtin custom instruction '(\w+)' before definition",
        r"""'\1' is not defined; is `include "qelib1.inc";` missing?""",
    ),
    (r"'(\w+)' is not defined in this scope", r"'\1' is not defined"),
    (r"gate 'u' is not defined", "gate 'u' is not defined; write U(theta, phi, lambda)"),
    (
        r"gate '(\w+)' is not defined",
        r"gate '\1' is not defined; define it with `gate`, or use one of stdgates.inc",
    ),
    (r"Undefined symbol '(\w+)'", r"'\1' is not defined"),
    (
        r"declarations of type '(\w+)' are not supported",
        r"expected declarations of qubits, bits and `input float`, found a variable of the type \1; write its value "
        "where it is used",
    ),
    (
        r"initialisation of classical bits is not supported",
        "expected bits without a first value, found one; leave it out: bits are 0 at first",
    ),
    (
        r"the 'output' keyword is not supported",
        "expected declarations without `output`; leave the word out: all bits are in the result",
    ),
    (r"only 'float' and 'angle' inputs are supported", "expected an input of the type float or angle"),
    (
        r"non-stdgates imports not currently supported",
        'expected `include "stdgates.inc";`, found another file; copy its gates into the program',
    ),
    (
        r"index must be int, slice or list|only const \(u\)int can be indices",
        "expected a number as index, found a variable or an expression; write the statement for each number",
    ),
    (r"unhandled binary operator '([^']+)'", _CONDITION.format(r"the operator \1")),
    (r"unhandled unary operator '([^']+)'", _CONDITION.format(r"the operator \1")),
    (r"only '==' is supported in register comparisons", _CONDITION.format("another comparison")),
    (r"conditions must be .*, not '([^']*)'", _CONDITION.format(r"\1")),
    (
        r"'(\w+)' cannot be resolved into a Qiskit value",
        r"expected a value of numbers, parameters and + - * /, found a \1; write its value",
    ),
    (r"measurements must save their result", "expected `c = measure q;`, found a measurement without bits"),
    (
        r"Symbol '(\w+)' already inserted in symbol table",
        r"'\1' is declared already, perhaps as a gate of stdgates.inc; take another name",
    ),
    (
        r"Symbol (\w+) is not visible in the scope of a gate",
        r"expected a qubit or parameter of the gate, found \1, which is declared outside of it",
    ),
    (
        r"amount of qubit\((\d+)\)/clbit\(\d+\) arguments does not match the gate expectation \((\d+)\)",
        r"expected as many qubits as the gate has, \2, found \1",
    ),
    (r"^index out of range", "expected an index inside the register, found one beyond its end"),
    (
        r"Physical qubit referenced|Virtual qubit declared",
        "expected either declared qubits or physical qubits such as $0, found both",
    ),
    (r"integer division or modulo by zero", "expected a number, found a division by zero"),
    (
        r"only global declarations are supported|can only be declared globally",
        "expected declarations outside of braces, found one inside; move it to the top",
    ),
    (
        r"^Input matrix is not unitary",
        "expected a gate with a unitary matrix, found one that overflows; take a smaller exponent or angle",
    ),
    (r"required a (.+)", r"expected a \1"),
]
_UNSUPPORTED = re.compile(r"node of type (\w+) is not supported")
_PARAMETERS = re.compile(r"__init__\(\) (?:missing|takes)|label expects a string or None")
_CALL = re.compile(r"(?:^|(?<=[;{}@)]))\s*((\w+)\s*(\((?:[^()]|\([^()]*\))*\))?)(?=\s*[A-Za-z_$])")


def in_words(message: str) -> str:
    """Return the message of a parser in onehop's words; messages that are not known stay as they are."""
    if found := _UNSUPPORTED.search(message):
        return (
            f"expected gates, measurements, conditions and loops, found {_STATEMENTS.get(found[1], found[1])}"
        )
    for pattern, words in _WORDS:
        if found := re.search(pattern, message):
            return found.expand(words)
    return message


def wrong_parameters(message: str, plain: str) -> tuple[int, str] | None:
    """Return start and message of the gate that has a wrong number of parameters, if the message is about that."""
    if not _PARAMETERS.search(message):
        return None
    numbers = {name: parameters for name, _, parameters in gate_names()}
    own = set(re.findall(r"\b(?:gate|opaque)\s+(\w+)", plain))
    for call in _CALL.finditer(plain):
        name, given = call[2], 0
        if call[3] is not None:
            given = len(re.sub(r"\([^()]*\)", "", call[3][1:-1]).split(","))
        wanted = numbers.get(name, given)
        if name not in own and given != wanted:
            angles = ", ".join(["angle"] * wanted)
            return call.start(1), (
                f"expected {counted(wanted, 'parameter')} of the gate '{name}', found {given or 'none'}; write "
                f"{name}{f'({angles})' if angles else ''}"
            )
    return None
