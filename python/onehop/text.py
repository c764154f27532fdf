"""Numbers as text for people: bytes, durations and counted nouns. The C++ side is `src/base/text.h`."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(number: float, *, exact: bool = False) -> str:
    """A number of bytes in the largest binary unit that leaves at least 1, with 4 digits: "1.5 MiB".

    With `exact`, in the largest unit of which it is a multiple: "1536 KiB".
    """
    unit = 0
    while number >= 1024 and unit + 1 < len(_UNITS) and not (exact and number % 1024):
        number /= 1024
        unit += 1
    return f"{number:.{17 if exact else 4}g} {_UNITS[unit]}"


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of time in which a duration is at least 1: how many of it make a second, and its name."""
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return factor, name
    return 1e9, "ns"


def seconds_text(seconds: float) -> str:
    """A duration in the unit of `time_unit`, or from 2 min on in min or h, with 4 digits: "1.408 µs", "12.5 min"."""
    if seconds >= 120:
        return f"{seconds / 60:.4g} min" if seconds < 7200 else f"{seconds / 3600:.4g} h"
    factor, unit = time_unit(seconds)
    return f"{seconds * factor:.4g} {unit}"


def rate_text(number: float) -> str:
    """A rate in bytes per second, in GB/s with 4 digits: "12.5 GB/s"."""
    return f"{number / 1e9:.4g} GB/s"


def message_bytes(message: str) -> bytes:
    """A message as bytes for the other ranks. What UTF-8 cannot hold, such as a lone surrogate, becomes an escape."""
    return message.encode("utf-8", "backslashreplace")


def counted(number: int, noun: str, *, commas: bool = False) -> str:
    """A number with its noun, for example "1 round", "2 rounds", "3 matches", "4 entries".

    With `commas` between thousands: "786,432 processors".
    """
    if number != 1:
        if noun.endswith(("s", "sh", "ch", "x")):
            noun += "es"
        elif noun.endswith("y") and noun[-2:-1] not in "aeiou":
            noun = noun[:-1] + "ies"
        else:
            noun += "s"
    return f"{number:,} {noun}" if commas else f"{number} {noun}"


def alternatives(names: Sequence[str]) -> str:
    """Names as a choice: "stout", "stout or ape", "stout, ape or hisq"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and end with `...` between them if it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    end = min(60, longest // 4)
    return f"{text[: longest - end - 5]} ... {text[-end:]}"


def number(value: float | None, digits: int = 3) -> str:
    """The value with `digits` significant digits and without an exponent; a dash for None."""
    if value is None:
        return "-"
    if value >= 10 ** (digits - 1):
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.4f}"


def ranges(numbers: list[int]) -> str:
    """Format ascending numbers as ranges, such as 0-9, 14, 16-19."""
    texts = []
    begin = 0
    for i in range(len(numbers)):
        if i + 1 == len(numbers) or numbers[i + 1] != numbers[i] + 1:
            texts.append(f"{numbers[begin]}-{numbers[i]}" if i > begin else f"{numbers[i]}")
            begin = i + 1
    return ", ".join(texts)
