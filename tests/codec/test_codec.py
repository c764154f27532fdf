"""Codecs against the reference in plain NumPy and against their documented bounds; codecs on halos and permutations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import codec_reference as reference
import onehop
from onehop import codec as codecs
from threads import run_threads

LOSSY = ("fp16", "bf16", "fp8", "q8", "q6", "q4", "q3")
SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    2.0**127,
    -(2.0**127),
    3.4028234e38,
    1e-45,
    2.0**-126,
    2.0**-125,
)


def test_python_and_the_reference_name_every_codec() -> None:
    with pytest.raises(onehop.BadInput) as refused:
        codecs.encoded_bytes("none", np.float32, 1)
    assert f"(one of: {', '.join(codecs.CODECS)})" in str(refused.value)
    assert ("raw", *LOSSY) == codecs.CODECS


@st.composite
def blocks(draw: st.DrawFn) -> np.ndarray:
    """Difficult numbers: ties, random bits, one large number among small ones, special values."""
    n = draw(st.integers(0, 130))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    exponent = draw(st.integers(-150, 127))
    kind = draw(st.sampled_from(["normal", "ties", "bits", "constant", "outlier", "floats"]))
    with np.errstate(all="ignore"):
        scale = np.ldexp(1.0, exponent)
        if kind == "normal":
            x = rng.normal(size=n) * scale
        elif kind == "ties":
            x = rng.integers(-254, 255, n) * scale / 2
        elif kind == "constant":
            x = np.full(n, rng.uniform(-2, 2) * scale)
        elif kind == "outlier":
            x = rng.normal(size=n) * np.where(rng.random(n) < 0.05, scale, scale / 1000)
        elif kind == "floats":
            x = np.array(draw(st.lists(st.floats(width=32), min_size=n, max_size=n)))
        else:
            x = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
        x = x.astype(np.float32)
    for _ in range(draw(st.integers(0, 3)) if n else 0):
        x[rng.integers(n)] = np.float32(draw(st.sampled_from(SPECIAL)))
    return x


def there_and_back(codec: str, x: np.ndarray) -> np.ndarray:
    return codecs.decode(codec, codecs.encode(codec, x), np.empty_like(x))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether numbers have the same bits, including signs of zeros; all NaNs are equal."""
    nan = np.isnan(a)
    return bool((nan == np.isnan(b)).all() and (a.view(np.uint32) == b.view(np.uint32))[~nan].all())


@pytest.mark.parametrize("codec", LOSSY)
@settings(max_examples=80, deadline=None)
@given(x=blocks())
def test_bytes_and_values_are_the_reference_s(codec: str, x: np.ndarray) -> None:
    wire = codecs.encode(codec, x)
    expected = reference.encode(codec, x)
    if codec == "fp16":  # NumPy keeps a NaN's payload where it can, and so may differ in which NaN
        assert same(wire.view(np.float16).astype(np.float32), expected.view(np.float16).astype(np.float32))
    else:
        assert (wire == expected).all()
    y = codecs.decode(codec, wire, np.empty_like(x))
    assert same(y, reference.decode(codec, wire, len(x)))
    start = np.arange(len(x), dtype=np.float32)
    with np.errstate(all="ignore"):
        assert same(codecs.decode(codec, wire, start.copy(), add=True), start + y)


@pytest.mark.parametrize("codec", LOSSY)
@settings(max_examples=80, deadline=None)
@given(x=blocks())
def test_errors_stay_within_the_bound(codec: str, x: np.ndarray) -> None:
    y = there_and_back(codec, x)
    assert (np.isnan(y) == np.isnan(x)).all()
    infinite = np.isinf(x)
    assert (y[infinite] == x[infinite]).all()
    finite = np.isfinite(x)
    bound = reference.error_bound(codec, x)[finite]
    with np.errstate(invalid="ignore"):
        error = np.abs(y[finite].astype(np.float64) - x[finite])
    # Beyond the bound's range only an infinity, or the largest number, may stand for a number that is as large.
    assert (np.where(np.isinf(bound), 0, error) <= bound).all()
    assert (np.abs(y[finite][np.isinf(bound)]) >= 65504).all()
    if codec not in ("fp16", "bf16"):
        assert np.isfinite(y[finite]).all()


def test_bounds_are_not_slack() -> None:
    """Random numbers come close to the bounds: these would not hold if they were a tenth smaller."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 32 * 20000).astype(np.float32)
    for codec in LOSSY:
        y = there_and_back(codec, x)
        assert (np.abs(y - x) / reference.error_bound(codec, x)).max() > 0.9, codec


@pytest.mark.parametrize("dtype", ["float64", "float16", "complex64", "complex128", "bfloat16"])
@pytest.mark.parametrize("codec", LOSSY)
def test_other_types_go_through_float32(codec: str, dtype: str) -> None:
    numbers = np.random.default_rng(5).normal(size=600).astype(np.float32)
    if dtype == "bfloat16":
        array: Any = (numbers.view(np.uint32) >> 16).astype(np.uint16)
        floats = (array.astype(np.uint32) << 16).view(np.float32)
    else:
        array = numbers.astype(dtype)
        floats = array.view(array.real.dtype).astype(np.float32)
    kind = dtype if dtype == "bfloat16" else None
    wire = codecs.encode(codec, array, kind)
    assert len(wire) == codecs.encoded_bytes(codec, dtype, floats.size)
    assert (wire == reference.encode(codec, floats)).all()
    back = codecs.decode(codec, wire, np.empty_like(array), kind)
    expected = reference.decode(codec, wire, floats.size)
    if dtype == "bfloat16":
        assert (back == reference.encode("bf16", expected).view(np.uint16)).all()
        return
    assert (back.view(array.real.dtype) == expected.astype(array.real.dtype)).all()
    total = codecs.decode(codec, wire, np.ones_like(array), kind, add=True)
    ones = np.ones_like(array).view(array.real.dtype)
    assert (total.view(array.real.dtype) == (ones.astype(float) + expected).astype(array.real.dtype)).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(onehop.BadInput, match=r"q8 is for float32, float64, float16 and bfloat16.*int32"):
        codecs.encode("q8", np.zeros(3, np.int32))
    with pytest.raises(onehop.BadInput, match=r"expected 34 bytes on the wire for 3 numbers.*found 33"):
        codecs.decode("q8", np.zeros(33, np.uint8), np.zeros(3, np.float32))
    with pytest.raises(onehop.BadInput, match="expected a codec"):
        codecs.encode("q5", np.zeros(3, np.float32))
    with pytest.raises(onehop.BadInput, match=r"codec q4 needs fields of float32.*bytes in field 0"):
        onehop.halo(extents=(8,), grid=(2,), dtype="int16", codec="q4")
    with pytest.raises(onehop.BadInput, match=r"codec bf16 needs elements of float32.*found bytes"):
        onehop.permute_bits(4, local=3, pairs=[(0, 3)], codec="bf16")


def test_a_permutation_of_amplitudes_takes_a_codec() -> None:
    bits, local = 12, 10
    layout: dict[str, Any] = {"local": local, "pairs": [(9, 10), (2, 11), (0, 1)], "dtype": "complex128"}
    rng = np.random.default_rng(2)
    state = rng.normal(size=(1 << bits, 2)).view(np.complex128)[:, 0]
    state /= np.linalg.norm(state)

    def permuted(codec: str) -> np.ndarray:
        parts = [state[r << local : (r + 1) << local].copy() for r in range(1 << (bits - local))]
        schedule = onehop.permute_bits(bits, **layout, codec=codec)

        def run(group: onehop.Group) -> None:
            plan = onehop.Plan(schedule, group, [parts[group.rank]])
            plan.run()
            assert plan.counters.bytes_sent == onehop.count(schedule).ranks[group.rank].bytes_sent

        run_threads(len(parts), run)
        return np.concatenate(parts)

    exact = permuted("raw")
    for codec, bound in (("fp16", 2.0**-11), ("bf16", 2.0**-8), ("q8", 0.02)):
        error = np.linalg.norm(permuted(codec) - exact)
        assert 0 < error < bound
