"""Encoding and decoding on one core, compared with a plain copy of the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehop.codec import CODECS, decode, encode
from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.error import BadInput
from onehop.group import Group
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.result import Bench, make_row, samples_of
from onehop_bench.run import Advance, Settings

CODEC_SIZES = (64 << 10, 64 << 20)
CODEC_STEPS = ("encode", "decode_add")


def _errors() -> str:
    """A note with the relative error (root mean square) of each codec for normally distributed numbers."""
    numbers = np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)
    errors = []
    for codec in CODECS[1:]:
        back = decode(codec, encode(codec, numbers), np.empty_like(numbers))
        error = np.sqrt(np.mean((back - numbers) ** 2) / np.mean(numbers**2))
        errors.append(f"{codec} {error:.1e}")
    return "relative error (root mean square) for normally distributed numbers: " + ", ".join(errors)


def codec(
    group: Group,
    settings: Settings,
    advance: Advance,
    sizes: Sequence[int] = CODEC_SIZES,
    codecs: Sequence[str] = CODECS[1:],
) -> Bench:
    """Measure encoding and decoding with each codec, on arrays of `sizes` bytes of float32.

    The speed of light is a memcpy of the same arrays.
    """
    if group.size != 1:
        raise BadInput(
            f"onehop bench codec measures one core, but this launch has {counted(group.size, 'rank')}: use -n 1"
        )
    about = host(None)
    about["cores"] = machine_cores()
    result = Bench("codec", about)
    result.notes.append(_errors())
    effort = settings.effort(len(sizes) * len(codecs) * len(CODEC_STEPS))
    for size in sizes:
        for name in codecs:
            for step in CODEC_STEPS:
                measured = native.codec(group, name, step, size, effort)
                samples = samples_of(measured)
                result.rows.append(
                    make_row(f"{name} {step}, {bytes_text(size, exact=True)}", size, 1, samples)
                )
                advance(1)
    return result
