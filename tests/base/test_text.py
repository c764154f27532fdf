"""Numbers as text for people."""

from __future__ import annotations

import pytest

from onehop.text import bytes_text, counted


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
