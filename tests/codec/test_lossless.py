"""Lossless compression: a decoder in plain NumPy, written from docs/reference/lossless.md, reads the same numbers."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onehop
from onehop import lossless


def reference_decode(wire: bytes, elements: int, single: bool) -> np.ndarray:
    """The bits of the numbers, as uint32."""
    numbers, at = [], 0

    def take(count: int) -> np.ndarray:
        nonlocal at
        at += count
        return np.frombuffer(wire[at - count : at], np.uint8)

    for first in range(0, elements, 256):
        n = min(256, elements - first)
        flags, largest, others = (int(one) for one in take(3))
        if flags & 0x20:
            numbers.append(np.zeros(n, np.uint32))
            continue
        width = flags & 15
        if width == 8:
            exponents = take(n).astype(np.uint32)
        else:
            codes = np.zeros(n, np.uint32)
            for plane in range(width):
                codes |= np.unpackbits(take(-(-n // 8)), bitorder="little")[:n].astype(np.uint32) << plane
            exponents = (largest - codes) & 255
            if others:
                exponents[codes == (1 << width) - 1] = take(others)
        upper = take(n).astype(np.uint32)
        lower = np.zeros(n, np.uint32)
        if single and not flags & 0x10:
            lower = take(2 * n).view("<u2").astype(np.uint32)
        numbers.append((upper >> 7) << 31 | exponents << 23 | (upper & 0x7F) << 16 | lower)
    assert at == len(wire)
    return np.concatenate(numbers) if numbers else np.zeros(0, np.uint32)


@settings(max_examples=120, deadline=None)
@given(
    n=st.integers(0, 700),
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["normal", "bits", "spread", "sparse", "rounded"]),
)
def test_the_format_is_the_documented_one(n: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=n) * 10.0 ** rng.integers(-38, 38)).astype(np.float32)
    if kind == "bits":
        x = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    elif kind == "spread":
        x = np.ldexp(x, rng.integers(-90, 20, n)).astype(np.float32)
    elif kind == "sparse":
        x *= rng.random(n) < 0.01
    elif kind == "rounded":
        x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    wire = lossless.encode(x)
    assert len(wire) <= lossless.most_bytes("float32", n)
    assert (reference_decode(wire.tobytes(), n, True) == x.view(np.uint32)).all()
    back = lossless.decode(wire, np.empty_like(x))
    assert (back.view(np.uint32) == x.view(np.uint32)).all()
    halves = (x.view(np.uint32) >> 16).astype(np.uint16)
    wire = lossless.encode(halves, "bfloat16")
    assert (reference_decode(wire.tobytes(), n, False) >> 16 == halves).all()
    assert (lossless.decode(wire, np.empty_like(halves), "bfloat16") == halves).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(onehop.BadInput, match="expected float32 or bfloat16 to compress without loss, found"):
        lossless.encode(np.zeros(3))
    with pytest.raises(onehop.BadInput, match="0 elements or more, found -1"):
        lossless.most_bytes("float32", -1)
    wire = lossless.encode(np.ones(300, np.float32))
    for damaged, length in ((wire[:-1], 300), (wire, 299), (wire, 301), (wire, 600)):
        with pytest.raises(onehop.BadInput, match="that lossless_encode has written"):
            lossless.decode(damaged, np.empty(length, np.float32))
    with pytest.raises(onehop.BadInput, match="whole numbers"):
        onehop._core.lossless_encode("float32", np.zeros(3, np.uint8), np.zeros(600, np.uint8))


def test_the_rate_of_a_link_is_that_of_the_tuning_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tuning.json"
    monkeypatch.setenv("ONEHOP_TUNING", str(file))
    measured = lossless.tuned_rate("bfloat16")
    assert measured > 0
    row = {"pays_below_gbit_per_s": 12.5}
    built_in = json.loads(onehop._core.built_in_tuning())
    file.write_text(json.dumps({**built_in, "lossless": {"float32": row}}))
    assert lossless.tuned_rate(np.float32) == 12.5
    huge = f'{{"pays_below_gbit_per_s": 1{"0" * 400}}}'
    wrong = [json.dumps({**built_in, "lossless": one}) for one in (3, [], {"float32": {"pays": 1}})]
    wrong += [json.dumps({**built_in, "lossless": {"float32": 0}}).replace("0}}", f"{huge}}}}}")]
    # What the library refuses, and says so, is not read again.
    wrong += ["no JSON", "[]", "[" * 100_000, "\ud800", json.dumps({"lossless": {"float32": row}})]
    for text in wrong:
        file.write_text(text, errors="surrogatepass")
        assert 0 < lossless.tuned_rate(np.float32) != 12.5
    file.unlink()
    os.mkfifo(file)  # nobody writes to it
    assert 0 < lossless.tuned_rate(np.float32) != 12.5
    assert (
        lossless.Speed(2.0, 2.0, 0.75).pays_below_gbit_per_s == 2.0
    )  # a second for a GB, and 2 Gbit less to send
