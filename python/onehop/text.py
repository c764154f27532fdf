"""Numbers as text for people: byte counts with binary units, and counted nouns."""

from __future__ import annotations

__all__ = ["bytes_text", "counted"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def bytes_text(number: float) -> str:
    """A number of bytes in the largest binary unit that leaves at least 1, with 4 digits: "1.5 MiB"."""
    unit = 0
    while number >= 1024 and unit + 1 < len(_UNITS):
        number /= 1024
        unit += 1
    return f"{number:.4g} {_UNITS[unit]}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, for example "1 round", "2 rounds", "3 matches"."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "sh", "ch", "x")) else "s"
    return f"{number} {noun}{ending}"
