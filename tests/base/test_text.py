"""Numbers as text for people."""

import pytest

from onehop.text import alternatives, bytes_text, count_text, counted, rate_text, seconds_text


@pytest.mark.parametrize(
    ("number", "text", "exact"),
    [
        (0, "0 B", "0 B"),
        (1023, "1023 B", "1023 B"),
        (1536, "1.5 KiB", "1536 B"),
        (3 << 19, "1.5 MiB", "1536 KiB"),
        ((1 << 30) + 1, "1 GiB", "1073741825 B"),
        (3 << 49, "1.5 PiB", "1536 TiB"),
    ],
)
def test_bytes(number: int, text: str, exact: str) -> None:
    assert bytes_text(number) == text
    assert bytes_text(number, exact=True) == exact


def test_nouns_are_counted() -> None:
    assert counted(1, "match") == "1 match"
    assert counted(0, "rank") == "0 ranks"
    assert counted(3, "match") == "3 matches"
    assert counted(2, "entry") == "2 entries"
    assert counted(2, "array") == "2 arrays"
    assert counted(786432, "processor", commas=True) == "786,432 processors"
    assert counted(1, "processor", commas=True) == "1 processor"


def test_names_are_a_choice() -> None:
    assert alternatives(()) == ""
    assert alternatives(("raw",)) == "raw"
    assert alternatives(["raw", "q8"]) == "raw or q8"
    assert alternatives(("raw", "q8", "q4")) == "raw, q8 or q4"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (2.5e-9, "2.5 ns"),
        (1.40812e-6, "1.408 µs"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (119.5, "119.5 s"),
        (150, "2.5 min"),
        (9000, "2.5 h"),
        (0.99996, "1 s"),
        (119.996, "2 min"),
        (3e5, "3.472 days"),
        (1e12, "11,574,074 days"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_rates_and_counts() -> None:
    assert [rate_text(one) for one in (0, 999, 12.5e9, 999.96e6, 8e12)] == [
        *("0 B/s", "999 B/s", "12.5 GB/s", "1 GB/s", "8 TB/s")
    ]
    assert rate_text(3.1e8, "FLOP/s", 2) == "310 MFLOP/s"
    assert bytes_text((1 << 20) - 1) == "1 MiB"
    assert [count_text(one) for one in (None, 9999, 10000, 1234567)] == ["-", "9999", "10,000", "1,234,567"]
