"""Random classical programs on four measured bits, against an interpreter of the same programs in Python's numbers.

GENERATED_PROGRAMS: the number of programs.
"""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Callable
from typing import Any

from onehop.quantum import parse_qasm
from reference_circuit import distribution

Env = dict[str, int]
Type = tuple[str, int]
Expression = tuple[str, Callable[[Env], int]]
Statement = tuple[str, Callable[[Env], None]]

BOOL = ("bool", 0)
TYPES = [("uint", 4), ("int", 4), ("uint", 3), ("bit", 4), ("bit", 3), BOOL, ("uint", 6), ("int", 5)]
NUMBERS = [one for one in TYPES if one[0] in ("uint", "int")]
SUMS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
ORDER = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
         ">=": operator.ge}  # fmt: skip


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _End(Exception):
    pass


def _name(kind: Type) -> str:
    return "bool" if kind == BOOL else f"{kind[0]}[{kind[1]}]"


def _fit(value: int, kind: Type) -> int:
    if kind == BOOL:
        return int(value != 0)
    value &= (1 << kind[1]) - 1
    return value - (1 << kind[1]) if kind[0] == "int" and value >> (kind[1] - 1) else value


def _divided(a: int, b: int, sign: str) -> int:
    """Round towards zero, as C does; the remainder has the sign of a."""
    quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return quotient if sign == "/" else a - quotient * b


class Generator:
    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.types: dict[str, Type] = {"c": ("bit", 4)}
        self.fixed: set[str] = set()  # loop variables, which no statement changes
        self.names = 0
        self.in_loop = False

    def new(self, kind: Type) -> str:
        self.names += 1
        self.types[f"v{self.names}"] = kind
        return f"v{self.names}"

    def literal(self, kind: Type) -> Expression:
        width = max(kind[1], 1)
        value = _fit(self.draw.randrange(1 << width), kind)
        text = f'"{value:0{width}b}"' if kind[0] == "bit" else f"{_name(kind)}({value})"
        return text, lambda env: value

    def two(self, kind: Type, depth: int) -> tuple[str, Callable[[Env], int], str, Callable[[Env], int]]:
        return *self.expression(kind, depth), *self.expression(kind, depth)

    def expression(self, kind: Type, depth: int) -> Expression:
        known = [one for one, its in self.types.items() if its == kind]
        if depth <= 0 or self.draw.random() < 0.15:
            if known and self.draw.random() < 0.8:
                chosen = self.draw.choice(known)
                return chosen, lambda env: env[chosen]
            return self.literal(kind)
        if self.draw.random() < 0.2:
            return self.cast(kind, depth - 1)
        if kind == BOOL:
            return self.condition(depth - 1)
        return self.bits(kind, depth - 1) if kind[0] == "bit" else self.number(kind, depth - 1)

    def cast(self, kind: Type, depth: int) -> Expression:
        width = kind[1]
        sources = [BOOL, *NUMBERS, *([("bit", width)] if width in (3, 4) else [])]
        if kind[0] == "bit":
            sources = [("uint", 4), ("int", 4)] if width == 4 else [("uint", 3)]
        elif kind == BOOL:
            sources = NUMBERS
        text, of = self.expression(self.draw.choice(sources), depth)
        return f"{_name(kind)}({text})", lambda env: _fit(of(env), kind)

    def condition(self, depth: int) -> Expression:
        which = self.draw.randrange(4)
        if which == 0:
            text, of = self.expression(BOOL, depth)
            return f"!({text})", lambda env: 1 - of(env)
        if which == 1:
            a, left, b, right = self.two(BOOL, depth)
            sign, combine = self.draw.choice([("&&", min), ("||", max)])
            return f"(({a}) {sign} ({b}))", lambda env: combine(left(env), right(env))
        if which == 2:
            place = self.draw.randrange(4)
            shown = self.draw.choice([place, place - 4])
            return f"bool(c[{shown}])", lambda env: env["c"] >> place & 1
        a, left, b, right = self.two(self.draw.choice(NUMBERS), depth)
        sign = self.draw.choice(list(ORDER))
        return f"(({a}) {sign} ({b}))", lambda env: int(ORDER[sign](left(env), right(env)))

    def bits(self, kind: Type, depth: int) -> Expression:
        width, ones = kind[1], (1 << kind[1]) - 1
        a, left, b, right = self.two(kind, depth)
        by = self.draw.randrange(-width, width + 1)
        sign = self.draw.choice(list(BITWISE))
        choices: list[Expression] = [
            (f"~({a})", lambda env: left(env) ^ ones),
            (f"(({a}) {sign} ({b}))", lambda env: BITWISE[sign](left(env), right(env))),
            (f"(({a}) << {abs(by)})", lambda env: left(env) << abs(by) & ones),
            (f"(({a}) >> {abs(by)})", lambda env: left(env) >> abs(by)),
            (
                f"rotl({a}, {by})",
                lambda env: (left(env) << by % width | left(env) >> (width - by % width)) & ones,
            ),
            (
                f"rotr({a}, {by})",
                lambda env: (left(env) >> by % width | left(env) << (width - by % width)) & ones,
            ),
        ]
        if width == 3:
            choices.append(("c[1:3]", lambda env: env["c"] >> 1))
        return self.draw.choice(choices)

    def number(self, kind: Type, depth: int) -> Expression:
        a, left, b, right = self.two(kind, depth)
        by, shift = self.expression(("uint", 3), depth)
        some, count = self.expression(("bit", 4), depth)
        sums, divisions = self.draw.choice(list(SUMS)), self.draw.choice("/%")
        sign = self.draw.choice(list(BITWISE))
        choices: list[Expression] = [
            (f"(({a}) {sums} ({b}))", lambda env: SUMS[sums](left(env), right(env))),
            (f"(({a}) {sign} ({b}))", lambda env: BITWISE[sign](left(env), right(env))),
            (f"-({a})", lambda env: -left(env)),
            (f"(~({a}))", lambda env: ~left(env)),
            (
                f"(({a}) {divisions} (({b}) | {_name(kind)}(1)))",
                lambda env: _divided(left(env), right(env) | 1, divisions),
            ),
            (f"(({a}) << ({by}))", lambda env: left(env) << shift(env)),
            (f"(({a}) >> ({by}))", lambda env: left(env) >> shift(env)),
            (f"popcount({some})", lambda env: count(env).bit_count()),
        ]
        text, of = self.draw.choice(choices)
        return f"{_name(kind)}({text})", lambda env: _fit(of(env), kind)

    def block(self, level: int, count: int) -> Statement:
        before, self.types = self.types, dict(self.types)
        parts = [self.statement(level) for _ in range(count)]
        self.types = before

        def run(env: Env) -> None:
            for _, part in parts:
                part(env)

        return "{\n" + "".join(text for text, _ in parts) + "}\n", run

    def statement(self, level: int = 0) -> Statement:
        makers = [self.declaration, self.assignment, self.assignment, self.of_bits]
        if level < 3:
            makers += [lambda: self.choice(level), lambda: self.loop(level), lambda: self.switch(level)]
        if self.in_loop:
            makers.append(lambda: self.leave(_Break if self.draw.random() < 0.5 else _Continue))
        return (lambda: self.leave(_End))() if self.draw.random() < 0.01 else self.draw.choice(makers)()

    def declaration(self) -> Statement:
        kind = self.draw.choice(TYPES)
        text, of = self.expression(kind, 2)
        name = self.new(kind)
        return f"{_name(kind)} {name} = {text};\n", lambda env: env.update({name: of(env)})

    def assignment(self) -> Statement:
        name = self.draw.choice([one for one in self.types if one not in self.fixed])
        kind = self.types[name]
        signs: dict[str, Callable[[int, int], Any]] = {"": lambda old, new: new}
        if kind != BOOL:
            signs |= BITWISE if kind[0] == "bit" else BITWISE | SUMS
        sign = self.draw.choice(list(signs))
        text, of = self.expression(kind, 3)
        return f"{name} {sign}= {text};\n", lambda env: env.update(
            {name: _fit(signs[sign](env[name], of(env)), kind)}
        )

    def of_bits(self) -> Statement:
        place, width = self.draw.randrange(2), self.draw.choice([1, 3])
        text, of = self.expression(("bit", 3) if width == 3 else BOOL, 2)
        where, value = (f"{place}:{place + 2}", text) if width == 3 else (str(place), f"bit({text})")
        mask = ((1 << width) - 1) << place
        return f"c[{where}] = {value};\n", lambda env: env.update(c=env["c"] & ~mask | of(env) << place)

    def choice(self, level: int) -> Statement:
        text, holds = self.expression(BOOL, 3)
        yes, no = self.block(level + 1, 2), self.block(level + 1, 1)
        return f"if ({text}) {yes[0]}else {no[0]}", lambda env: yes[1](env) if holds(env) else no[1](env)

    def switch(self, level: int) -> Statement:
        text, of = self.expression(("int", 4), 2)
        labels = self.draw.sample(range(8), 4)
        outer, self.in_loop = self.in_loop, False
        one, two, other = (self.block(level + 1, 1) for _ in range(3))
        self.in_loop = outer
        cases = {labels[0]: one, labels[1]: one, labels[2]: two}
        head = f"switch ({text}) {{\ncase {labels[0]}, {labels[1]} {one[0]}case {labels[2]} {two[0]}"
        return f"{head}default {other[0]}}}\n", lambda env: cases.get(of(env), other)[1](env)

    def loop(self, level: int) -> Statement:
        outer, self.in_loop = self.in_loop, True
        before, self.types = self.types, dict(self.types)
        kind = self.draw.choice([("uint", 4), ("int", 5)])
        condition, holds = self.expression(BOOL, 2)
        name = self.new(kind)
        self.fixed.add(name)
        text, body = self.block(level + 1, 2)
        self.in_loop, self.types = outer, before
        first, step, turns = self.draw.randrange(3), self.draw.choice([1, 2, -1]), self.draw.randint(1, 3)
        values = [first + 2 + k * step for k in range(turns)]
        which = self.draw.randrange(3)
        if which == 0:
            head = f"for {_name(kind)} {name} in [{values[0]}:{step}:{values[-1]}] {text}"
        elif which == 1:
            head = f"for {_name(kind)} {name} in {{{', '.join(map(str, values))}}} {text}"
        else:  # counts before the body, which may continue
            values = list(range(1, turns + 1))
            head = f"{_name(kind)} {name} = 0;\nwhile ({name} < {turns} && ({condition})) {{ {name} += 1;\n{text[2:]}"

        def run(env: Env) -> None:
            for value in values:
                if which == 2 and not holds(env):
                    break
                env[name] = value
                try:
                    body(env)
                except _Break:
                    break
                except _Continue:
                    continue

        return head, run

    def leave(self, how: type[Exception]) -> Statement:
        text, holds = self.expression(BOOL, 2)

        def run(env: Env) -> None:
            if holds(env):
                raise how

        return f"if ({text}) {{ {how.__name__[1:].lower()}; }}\n", run


def _program(seed: int) -> tuple[str, dict[int, float]]:
    """Return a program, and the probabilities of what is in the bits c at its end."""
    made = Generator(seed)
    parts = [made.statement() for _ in range(made.draw.randint(2, 6))]
    text, of = made.expression(("bit", 4), 3)
    parts.append((f"c ^= {text};\n", lambda env: env.update(c=env["c"] ^ of(env))))
    wanted: dict[int, float] = {}
    for number in range(16):
        env = {"c": number}
        try:
            for _, part in parts:
                part(env)
        except _End:
            pass
        wanted[env["c"]] = wanted.get(env["c"], 0) + 1 / 16
    head = "OPENQASM 3.0;\nqubit[4] q;\nbit[4] c;\nfor uint i in [0:3] { U(pi/2, 0, pi) q[i]; }\nc = measure q;\n"
    return head + "".join(text for text, _ in parts), wanted


def test_generated_programs() -> None:
    for seed in range(int(os.environ.get("GENERATED_PROGRAMS", "200"))):
        text, wanted = _program(seed)
        found = dict.fromkeys(wanted, 0.0)
        for outcome, probability in distribution(parse_qasm(text)).items():
            if probability > 1e-12:  # the bits c come before those that the program declares
                found[outcome & 15] = found.get(outcome & 15, 0.0) + probability
        assert found.keys() == wanted.keys(), f"seed {seed}\n{text}"
        assert all(abs(found[one] - wanted[one]) < 1e-9 for one in wanted), f"seed {seed}\n{text}"
