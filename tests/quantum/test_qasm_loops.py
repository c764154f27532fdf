"""OpenQASM 3 whose loops, indices and bounds depend on measurements, against brute force over all outcomes."""

from __future__ import annotations

import pytest

from onehop import BadInput, Error, Group
from onehop.quantum import parse_qasm, simulate
from reference_circuit import distribution
from threads import run_threads

HEAD = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[4] q;\nbit[4] c;\n'
# A coin: 1 with the probability 1/2.
COIN = "reset q[3]; h q[3];"
DEFINED = (
    "def coin(qubit a) -> bit { reset a; h a; bit b; b = measure a; return b; }\n"
    "def tries(qubit a) -> uint[3] { uint[3] n = 0; while (true) { n += 1; reset a; h a; bit b = measure a; "
    "if (b) { return n; } if (n == 3) { return 7; } } return 0; }\n"
)


def _geometric(limit: int) -> dict[int, float]:
    """Return the distribution of the number of failures before a success of a coin, up to a limit."""
    return {**{k: 2.0 ** -(k + 1) for k in range(limit)}, limit: 2.0**-limit}


PROGRAMS = {
    "until a measurement": ("c[0] = 1; while (c[0]) { h q[0]; c[0] = measure q[0]; }", {0: 1}),
    "counter": (
        f"uint[4] n = 0; bit b = 1; while (b && n < 3) {{ {COIN} b = measure q[3]; if (b) n += 1; }} c = n;",
        _geometric(3),
    ),
    "break": (
        f"uint[4] n = 0; while (true) {{ {COIN} bit b; b = measure q[3]; if (!b) break; n += 1; if (n == 3) break; }}"
        "c = n;",
        _geometric(3),
    ),
    "continue": (  # the second bit counts turns that go on to the end
        "uint[2] n = 0; uint[2] ends = 0; while (n < 2) { n += 1; if (coin(q[3])) continue; ends += 1; } c = ends;",
        {0: 0.25, 1: 0.5, 2: 0.25},
    ),
    "two values that swap": (
        f"bit x = 1; bit y = 0; bit b = 1; while (b) {{ bit z = x; x = y; y = z; {COIN} b = measure q[3]; }}"
        "c[0] = x; c[1] = y;",
        {0b10: 2 / 3, 0b01: 1 / 3},
    ),
    "loops inside each other": (
        "uint[3] n = 0; bit go = 1; while (go) { bit in = 1; while (in) { in = coin(q[3]); n += 1; "
        "if (n > 2) break; } go = coin(q[3]); if (n > 2) break; } c = n;",
        {1: 0.25, 2: 0.1875, 3: 0.5625},
    ),
    "return out of a loop": ("c = tries(q[3]);", {1: 0.5, 2: 0.25, 3: 0.125, 7: 0.125}),
    "return out of a loop in a loop": (
        "uint[2] turns = 0; uint[3] last = 0; bit go = 1; while (go && turns < 2) { last = tries(q[3]); "
        "go = coin(q[3]); turns += 1; } c = last;",
        {1: 0.5, 2: 0.25, 3: 0.125, 7: 0.125},
    ),
    "end": ("c[1] = 1; while (true) { if (coin(q[3])) { end; } c[2] = coin(q[3]); if (c[2]) break; } c[0] = 1;",
            {0b010: 2 / 3, 0b111: 1 / 3}),
    "inside a condition": (
        f"bit b = 1; c[0] = coin(q[3]); if (c[0]) {{ while (b) {{ {COIN} b = measure q[3]; c[0] = b; }} c[1] = 1; }}"
        "else { c[2] = 1; }",
        {0b010: 0.5, 0b100: 0.5},
    ),
    "an array in a loop": (
        "array[uint[2], 2] a = {0, 0}; bit b = 1; while (b && a[1] < 2) { b = coin(q[3]); if (b) a[1] += 1; }"
        "c = a[1];",
        _geometric(2),
    ),
    "a number that stays": (
        f"int k = 2; float x = pi; bit b = 1; while (b) {{ {COIN} b = measure q[3]; }} rx(x) q[k]; "
        "c[k] = measure q[k];",
        {4: 1},
    ),
    "do until": ("while (!coin(q[3])) { } c[0] = 1;", {1: 1}),
    "index": ("uint[2] m; m[0] = coin(q[3]); m[1] = coin(q[3]); x q[m]; c[0:2] = measure q[0:2];",
              {1: 0.25, 2: 0.25, 4: 0.25, 0: 0.25}),
    "index from the end": ("bit[1] m; m[0] = coin(q[3]); reset q[3]; x q[int[2](m) - 1]; c = measure q;",
                           {8: 0.5, 1: 0.5}),
    "two indices": (
        "bit[1] m; m[0] = coin(q[3]); reset q[3]; x q[0]; cx q[uint[1](m)], q[uint[2](m) + 2]; c = measure q;",
        {0b0101: 0.5, 0b0001: 0.5},
    ),
    "index of bits": ("uint[2] m; m[0] = coin(q[3]); m[1] = coin(q[3]); c[m] = 1;",
                      {1: 0.25, 2: 0.25, 4: 0.25, 8: 0.25}),
    "read by an index": (
        "array[uint[4], 4] a = {3, 5, 9, 12}; uint[2] m; m[0] = coin(q[3]); m[1] = coin(q[3]); c = a[m];",
        {3: 0.25, 5: 0.25, 9: 0.25, 12: 0.25},
    ),
    "angle by an index": (
        "array[float, 2] a = {0, 3.141592653589793}; uint[1] m; m[0] = coin(q[3]); rx(a[m]) q[0]; c[0] = measure q[0];",
        {0: 0.5, 1: 0.5},
    ),
    "element that changes": (
        "array[uint[4], 2] a = {1, 2}; uint[1] m; m[0] = coin(q[3]); a[m] += 4; c = a[0] + a[1] * 2;",
        {9: 0.5, 13: 0.5},
    ),
    "bound of a loop": (
        "uint[2] m; m[0] = coin(q[3]); m[1] = coin(q[3]); uint[4] s = 0; for uint i in [1:m] { s += i; } c = s;",
        {0: 0.25, 1: 0.25, 3: 0.25, 6: 0.25},
    ),
    "slice": ("uint[2] m; m[0] = coin(q[3]); m[1] = coin(q[3]); reset q[3]; x q[0:m]; c = measure q;",
              {1: 0.25, 3: 0.25, 7: 0.25, 15: 0.25}),
    "counter as an index": (
        f"uint[2] k = 0; bit b = 1; while (b && k < 3) {{ x q[k]; {COIN} b = measure q[3]; k += 1; }}"
        "c[0:2] = measure q[0:2];",
        {1: 0.5, 3: 0.25, 7: 0.25},
    ),
    "values of a switch": (
        "uint[2] n = 0; bit go = 1; while (go) { switch (n) { case 0 { n = 2; } case 2 { n = 1; } "
        "default { go = 0; } } } c = n;",
        {1: 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    text, expected = PROGRAMS[name]
    found: dict[int, float] = {}
    for value, weight in distribution(parse_qasm(f"{HEAD}{DEFINED}{text}\n")).items():
        found[value % 16] = found.get(value % 16, 0) + weight  # of `c`, which comes first
    assert found == pytest.approx(expected, abs=1e-9)


# Repeat until success, as in the specification: the qubit gets a rotation and gives 0 with certainty.
RUS = """include "stdgates.inc";
def segment(qubit[2] anc, qubit psi) -> bit[2] {
  bit[2] b; reset anc; h anc; ccx anc[0], anc[1], psi; s psi; ccx anc[0], anc[1], psi; z psi; h anc;
  measure anc -> b; return b; }
qubit work; qubit[2] ancilla; bit[2] flags = "11"; bit out;
reset work; h work;
while (int[2](flags) != 0) { flags = segment(ancilla, work); }
rz(pi - arccos(3.0 / 5)) work; h work; out = measure work;
"""


def _counts(group: Group) -> list[dict[str, int]]:
    texts = (HEAD + PROGRAMS["counter"][0], HEAD + DEFINED + PROGRAMS["loops inside each other"][0], RUS)
    return [simulate(parse_qasm(text), group, shots=200, seed=7).counts for text in texts]


def test_counts_are_the_same_on_every_number_of_ranks() -> None:
    alone = _counts(Group.alone())
    assert alone[2] == {"000": 200}  # `out` and `flags`
    for ranks in (2, 4):
        assert run_threads(ranks, _counts) == [alone] * ranks


def test_refusals() -> None:
    for text, message in (
        (
            "bit b = measure q[0]; float x = 1; while (b) { x += 1; b = measure q[0]; }",
            "found 'x' of the type float",
        ),
        (
            "uint[16] m = 0; for int i in [0:15] { m[i] = measure q[0]; } for uint i in [0:m] { }",
            "at most 10 bits",
        ),
        ("uint[2] m; m[0] = measure q[0]; let a = q[m];", "in a statement of its own"),
        ("uint[2] m; m[0] = measure q[0]; c = c[0:m];", "slice of a size"),
    ):
        with pytest.raises(BadInput, match=message):
            parse_qasm(HEAD + text)
    endless = parse_qasm(HEAD + "c[0] = measure q[0]; while (!c[0]) { c[0] = measure q[0]; }")
    with pytest.raises(Error, match="100,000 turns"):
        simulate(endless, shots=1, seed=1)
