"""Changed copies of valid texts, and a check that a reader survives them."""

import random
from collections.abc import Callable

from onehop import BadInput


def mutations(text: str, seed: int, number: int) -> list[str]:
    """Valid input with a few places changed: deleted, repeated, or replaced by what readers stumble over."""
    source = random.Random(seed)
    words = [
        "1e400",
        "-1",
        "9" * 30,
        "[",
        "]",
        "{",
        "}",
        '"',
        "é",
        "\0",
        "/*",
        "NaN",
        "null",
        ";",
        "0x",
        "\\",
        "-",
        "q[",
    ]
    found = []
    for _ in range(number):
        made = text
        for _ in range(source.randint(1, 4)):
            begin = source.randrange(len(made) + 1)
            end = min(len(made), begin + source.randint(0, 12))
            middle = source.choice(["", made[begin:end] * 3, source.choice(words)])
            made = made[:begin] + middle + made[end:]
        found.append(made)
    return found


def survives(read: Callable[[str], object], texts: list[str]) -> int:
    """Return how many of the texts are read; every other text must raise BadInput."""
    good = 0
    for text in texts:
        try:
            read(text)
            good += 1
        except BadInput:
            continue
    return good
