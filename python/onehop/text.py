"""Numbers as text for people: bytes, durations and counted nouns. The C++ side is `src/base/text.h`."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(number: float, *, exact: bool = False) -> str:
    """A number of bytes in the largest binary unit that leaves at least 1, with 4 digits: "1.5 MiB".

    With `exact`, in the largest unit of which it is a multiple: "1536 KiB".
    """
    unit = 0
    while number >= 1023.5 and unit + 1 < len(_UNITS) and not (exact and number % 1024):
        number /= 1024
        unit += 1
    return f"{number:.17g} {_UNITS[unit]}" if exact else f"{digits_text(number)} {_UNITS[unit]}"


def digits_text(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits, and all digits of its whole part: "12.5", "12,345,678"."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def count_text(number: float | None) -> str:
    """A whole number with commas between thousands from 10,000 on; a dash for None."""
    return "-" if number is None else f"{number:,.0f}" if abs(number) >= 10000 else f"{number:.0f}"


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of time in which a duration is at least 1: how many of it make a second, and its name."""
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return factor, name
    return 1e9, "ns"


def seconds_text(seconds: float | None, digits: int = 4) -> str:
    """A duration in the unit of `time_unit`, or from 2 min on in min, h or days: "1.408 µs", "12.5 min".

    A dash for None.
    """
    if seconds is None:
        return "-"
    seconds = float(f"{seconds:.{digits}g}")
    for unit, least, name in ((86400.0, 2, "days"), (3600.0, 2, "h"), (60.0, 2, "min")):
        if seconds >= least * unit:
            return f"{digits_text(seconds / unit, digits)} {name}"
    factor, name = time_unit(seconds)
    return f"{digits_text(seconds * factor, digits)} {name}"


def rate_text(number: float, unit: str = "B/s", digits: int = 4) -> str:
    """A rate with a decimal prefix: "12.5 GB/s", "8 TB/s", "310 MFLOP/s"."""
    number = float(f"{number:.{digits}g}")
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{digits_text(number / factor, digits)} {prefix}{unit}"
    return f"{number:.{digits}g} {unit}"


def message_bytes(message: str) -> bytes:
    """A message as bytes for the other ranks. What UTF-8 cannot hold, such as a lone surrogate, becomes an escape."""
    return message.encode("utf-8", "backslashreplace")


def counted(number: int, noun: str, *, commas: bool = False) -> str:
    """A number with its noun, for example "1 round", "2 rounds", "3 matches", "4 entries".

    With `commas`, as `count_text` has them: "786,432 processors".
    """
    if number != 1:
        if noun.endswith(("s", "sh", "ch", "x")):
            noun += "es"
        elif noun.endswith("y") and noun[-2:-1] not in "aeiou":
            noun = noun[:-1] + "ies"
        else:
            noun += "s"
    return f"{count_text(number) if commas else number} {noun}"


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
