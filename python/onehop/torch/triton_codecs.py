"""The codecs as Triton kernels, for tensors in the memory of a GPU. They have run in Triton's interpreter only.

The bytes are those of docs/reference/codecs.md, bit by bit. Importing this module imports triton, so nothing of onehop
does it unless asked: `onehop.torch.device_codecs` imports it for tensors on a GPU.

A kernel handles `BLOCKS` blocks of 32 numbers per program, as four tiles of 8 numbers per block: tile j has the numbers
8 j to 8 j + 7, and byte i of the wire takes bits of equal places in different tiles. Kernels run with
`enable_fp_fusion=False`, because a product and a sum must be rounded one after the other.
"""

# No `from __future__ import annotations` here: triton reads the annotations of kernels.
from typing import Any

import torch
import triton
import triton.language as tl

from onehop.codec import TABLE
from onehop.error import BadInput

_BLOCKS = 32  # blocks per program
_WITH_KERNELS = tuple(name for name, info in TABLE.items() if info.levels or name in ("fp16", "bf16", "fp8"))


@triton.jit
def _bits(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def _number(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _to_nearest(x):
    """The nearest integer, ties to even, for magnitudes below 2^22."""
    return (x + 12582912.0) - 12582912.0


@triton.jit
def _largest(x):
    """The largest finite magnitude of each row."""
    magnitude = _bits(x) & 0x7FFFFFFF
    return tl.max(tl.where(magnitude < 0x7F800000, magnitude, 0), axis=1)


@triton.jit
def _is_special(x):
    """Whether a row has an infinity, a NaN, or a magnitude of 2^127 or more."""
    return tl.max(((_bits(x) & 0x7FFFFFFF) >= 0x7F000000).to(tl.int32), axis=1)


@triton.jit
def _finite(x):
    return tl.where((_bits(x) & 0x7FFFFFFF) < 0x7F800000, x, 0.0)


@triton.jit
def _load_tile(source, block, tile: tl.constexpr, numbers):
    at = block[:, None] * 32 + (8 * tile + tl.arange(0, 8))[None, :]
    return tl.load(source + at, mask=at < numbers, other=0.0).to(tl.float32)


@triton.jit
def _store_header(wire, start, inside, scale_bits, special):
    word = (scale_bits >> 16) | (special << 15)
    tl.store(wire + start, (word & 255).to(tl.uint8), mask=inside)
    tl.store(wire + start + 1, ((word >> 8) & 255).to(tl.uint8), mask=inside)


@triton.jit
def _store_bytes(wire, start, inside, offset: tl.constexpr, values):
    at = start[:, None] + (2 + offset + tl.arange(0, 8))[None, :]
    tl.store(wire + at, (values & 255).to(tl.uint8), mask=inside[:, None])


@triton.jit
def _store_signs(wire, start, inside, offset: tl.constexpr, codes):
    signs = tl.sum(((codes >> 2) & 1) << tl.arange(0, 8)[None, :], axis=1)
    tl.store(wire + start + 2 + offset, (signs & 255).to(tl.uint8), mask=inside)


@triton.jit
def _load_signs(wire, start, inside, offset: tl.constexpr):
    """The upper bits of the codes of a tile."""
    byte = _load_byte(wire, start + 2 + offset, inside)
    return ((byte[:, None] >> tl.arange(0, 8)[None, :]) & 1) << 2


@triton.jit
def _symmetric_code(x, reciprocal, TOP: tl.constexpr):
    code = _to_nearest(_finite(x) * reciprocal[:, None]).to(tl.int32)
    magnitude = _bits(x) & 0x7FFFFFFF
    infinite = tl.where(_bits(x) < 0, -TOP, TOP)
    code = tl.where(magnitude == 0x7F800000, infinite, code)
    return tl.where(magnitude > 0x7F800000, -TOP - 1, code)


@triton.jit
def _encode_symmetric(
    source, wire, numbers, blocks,
    BITS: tl.constexpr, TOP: tl.constexpr, BYTES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    inside = block < blocks
    a, b = _load_tile(source, block, 0, numbers), _load_tile(source, block, 1, numbers)
    c, d = _load_tile(source, block, 2, numbers), _load_tile(source, block, 3, numbers)
    m = _number(tl.maximum(tl.maximum(_largest(a), _largest(b)), tl.maximum(_largest(c), _largest(d))))
    special = _is_special(a) | _is_special(b) | _is_special(c) | _is_special(d)
    exact = tl.div_rn(m, tl.where(special != 0, TOP - 1, TOP).to(tl.float32))
    scale = tl.maximum((_bits(exact) + 0xFFFF) & -65536, 0x01000000)  # up to a bfloat16, at least 2^-125
    reciprocal = tl.div_rn(tl.full(scale.shape, 1.0, tl.float32), _number(scale))
    a, b = _symmetric_code(a, reciprocal, TOP), _symmetric_code(b, reciprocal, TOP)
    c, d = _symmetric_code(c, reciprocal, TOP), _symmetric_code(d, reciprocal, TOP)
    start = block * BYTES
    _store_header(wire, start, inside, scale, special)
    if BITS == 8:
        _store_bytes(wire, start, inside, 0, a)
        _store_bytes(wire, start, inside, 8, b)
        _store_bytes(wire, start, inside, 16, c)
        _store_bytes(wire, start, inside, 24, d)
    elif BITS == 3:
        _store_bytes(wire, start, inside, 0, (a & 3) | ((b & 3) << 2) | ((c & 3) << 4) | ((d & 3) << 6))
        _store_signs(wire, start, inside, 8, a)
        _store_signs(wire, start, inside, 9, b)
        _store_signs(wire, start, inside, 10, c)
        _store_signs(wire, start, inside, 11, d)
    else:
        _store_bytes(wire, start, inside, 0, (a & 15) | (c << 4))
        _store_bytes(wire, start, inside, 8, (b & 15) | (d << 4))
    if BITS == 6:
        upper = ((a >> 4) & 3) | (((b >> 4) & 3) << 2) | (((c >> 4) & 3) << 4) | (((d >> 4) & 3) << 6)
        _store_bytes(wire, start, inside, 16, upper)


@triton.jit
def _fp8_code(x, inverse):
    y = _finite(x) * inverse[:, None]
    bits = _bits(y) & 0x7FFFFFFF
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    small = _to_nearest(_number(bits) * 512.0).to(tl.int32)
    code = tl.where(bits >= 0x3C800000, normal, small)  # 2^-6
    magnitude = _bits(x) & 0x7FFFFFFF
    code = tl.where(magnitude == 0x7F800000, 0x7E, code) | tl.where(_bits(x) < 0, 0x80, 0)
    return tl.where(magnitude > 0x7F800000, 0x7F, code)


@triton.jit
def _encode_fp8(source, wire, numbers, blocks, BYTES: tl.constexpr, BLOCKS: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    inside = block < blocks
    a, b = _load_tile(source, block, 0, numbers), _load_tile(source, block, 1, numbers)
    c, d = _load_tile(source, block, 2, numbers), _load_tile(source, block, 3, numbers)
    m = tl.maximum(tl.maximum(_largest(a), _largest(b)), tl.maximum(_largest(c), _largest(d)))
    special = _is_special(a) | _is_special(b) | _is_special(c) | _is_special(d)
    # m = f 2^E with 1 <= f < 2: the scale is 2^(E - 8) if 256 f rounds to at most 448 (special: 416), else twice that.
    fraction = m & 0x7FFFFF
    above = tl.where(special != 0, (fraction >= 0x580000).to(tl.int32), (fraction > 0x680000).to(tl.int32))
    exponent = tl.maximum((m >> 23) - 8 + above, 12)  # at least 2^-115
    inverse = _number((254 - exponent) << 23)
    start = block * BYTES
    _store_header(wire, start, inside, exponent << 23, special)
    _store_bytes(wire, start, inside, 0, _fp8_code(a, inverse))
    _store_bytes(wire, start, inside, 8, _fp8_code(b, inverse))
    _store_bytes(wire, start, inside, 16, _fp8_code(c, inverse))
    _store_bytes(wire, start, inside, 24, _fp8_code(d, inverse))


@triton.jit
def _encode_half(source, wire, numbers, FP16: tl.constexpr, NUMBERS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    inside = at < numbers
    x = tl.load(source + at, mask=inside, other=0.0).to(tl.float32)
    bits = _bits(x)
    undefined = (bits & 0x7FFFFFFF) > 0x7F800000
    if FP16:
        rounded = tl.where(undefined, 0.0, x).to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32)
        quiet = ((bits >> 16) & 0x8000) | 0x7E00 | ((bits >> 13) & 0x1FF)
    else:
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
    word = tl.where(undefined, quiet, rounded)
    tl.store(wire + 2 * at, (word & 255).to(tl.uint8), mask=inside)
    tl.store(wire + 2 * at + 1, ((word >> 8) & 255).to(tl.uint8), mask=inside)


@triton.jit
def _load_byte(wire, at, inside):
    return tl.load(wire + at, mask=inside, other=0).to(tl.int32)


@triton.jit
def _load_bytes(wire, start, inside, offset: tl.constexpr):
    return _load_byte(wire, start[:, None] + (2 + offset + tl.arange(0, 8))[None, :], inside[:, None])


@triton.jit
def _symmetric_value(code, scale, special, BITS: tl.constexpr, TOP: tl.constexpr):
    code = (code << (32 - BITS)) >> (32 - BITS)  # extend the sign
    x = code.to(tl.float32) * scale[:, None]
    x = tl.minimum(tl.maximum(x, -3.4028234663852886e38), 3.4028234663852886e38)
    extreme = (special != 0)[:, None]
    sign = tl.where(code < 0, -2147483648, 0)
    x = tl.where(extreme & ((code == TOP) | (code == -TOP)), _number(sign | 0x7F800000), x)
    return tl.where(extreme & (code == -TOP - 1), _number(0 * code + 0x7FC00000), x)


@triton.jit
def _fp8_value(code, scale, special):
    magnitude = code & 0x7F
    normal = _number((magnitude << 20) + (120 << 23))
    small = magnitude.to(tl.float32) * 0.001953125
    x = tl.where(magnitude >= 8, normal, small) * scale[:, None]
    bits = _bits(tl.minimum(x, 3.4028234663852886e38))
    extreme = (special != 0)[:, None]
    bits = tl.where(extreme & (magnitude == 0x7E), 0x7F800000, bits)
    bits = bits | tl.where((code & 0x80) != 0, -2147483648, 0)
    return _number(tl.where(extreme & (magnitude == 0x7F), 0x7FC00000, bits))


@triton.jit
def _store_tile(target, block, tile: tl.constexpr, numbers, values):
    at = block[:, None] * 32 + (8 * tile + tl.arange(0, 8))[None, :]
    tl.store(target + at, values, mask=at < numbers)


@triton.jit
def _read_blocks(wire, block, inside, BITS: tl.constexpr, TOP: tl.constexpr, BYTES: tl.constexpr):
    """The numbers of encoded blocks, as four tiles. TOP is 0 for fp8."""
    start = block * BYTES
    word = _load_byte(wire, start, inside) | (_load_byte(wire, start + 1, inside) << 8)
    scale, special = _number((word & 0x7FFF) << 16), word >> 15
    a = _load_bytes(wire, start, inside, 0)
    if BITS == 8:
        b = _load_bytes(wire, start, inside, 8)
        c, d = _load_bytes(wire, start, inside, 16), _load_bytes(wire, start, inside, 24)
    elif BITS == 3:
        b = ((a >> 2) & 3) | _load_signs(wire, start, inside, 9)
        c = ((a >> 4) & 3) | _load_signs(wire, start, inside, 10)
        d = ((a >> 6) & 3) | _load_signs(wire, start, inside, 11)
        a = (a & 3) | _load_signs(wire, start, inside, 8)
    else:
        b = _load_bytes(wire, start, inside, 8)
        c, d = a >> 4, b >> 4
    if BITS == 6:
        upper = _load_bytes(wire, start, inside, 16)
        a, b = (a & 15) | ((upper & 3) << 4), (b & 15) | (((upper >> 2) & 3) << 4)
        c, d = c | (((upper >> 4) & 3) << 4), d | (((upper >> 6) & 3) << 4)
    if TOP == 0:
        a, b = _fp8_value(a, scale, special), _fp8_value(b, scale, special)
        c, d = _fp8_value(c, scale, special), _fp8_value(d, scale, special)
    else:
        a, b = _symmetric_value(a, scale, special, BITS, TOP), _symmetric_value(b, scale, special, BITS, TOP)
        c, d = _symmetric_value(c, scale, special, BITS, TOP), _symmetric_value(d, scale, special, BITS, TOP)
    return a, b, c, d


@triton.jit
def _decode_blocks(
    wires, target, numbers, blocks, ranks, stride, divisor,
    BITS: tl.constexpr, TOP: tl.constexpr, BYTES: tl.constexpr, BLOCKS: tl.constexpr, DIVIDE: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    inside = block < blocks
    a, b, c, d = _read_blocks(wires, block, inside, BITS, TOP, BYTES)
    for rank in range(1, ranks):
        e, f, g, h = _read_blocks(wires + rank * stride, block, inside, BITS, TOP, BYTES)
        a, b, c, d = a + e, b + f, c + g, d + h
    if DIVIDE:
        count = tl.zeros_like(a) + divisor
        a, b, c, d = tl.div_rn(a, count), tl.div_rn(b, count), tl.div_rn(c, count), tl.div_rn(d, count)
    _store_tile(target, block, 0, numbers, a)
    _store_tile(target, block, 1, numbers, b)
    _store_tile(target, block, 2, numbers, c)
    _store_tile(target, block, 3, numbers, d)


@triton.jit
def _read_halves(wire, at, inside, FP16: tl.constexpr):
    word = _load_byte(wire, 2 * at, inside) | (_load_byte(wire, 2 * at + 1, inside) << 8)
    if FP16:
        x = word.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        quiet = ((word & 0x8000) << 16) | 0x7FC00000 | ((word & 0x3FF) << 13)
        x = _number(tl.where((word & 0x7FFF) > 0x7C00, quiet, _bits(x)))
    else:
        x = _number(word << 16)
    return x


@triton.jit
def _decode_halves(
    wires, target, numbers, ranks, stride, divisor,
    FP16: tl.constexpr, NUMBERS: tl.constexpr, DIVIDE: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    inside = at < numbers
    x = _read_halves(wires, at, inside, FP16)
    for rank in range(1, ranks):
        x = x + _read_halves(wires + rank * stride, at, inside, FP16)
    if DIVIDE:
        x = tl.div_rn(x, tl.zeros_like(x) + divisor)
    tl.store(target + at, x, mask=inside)


def _check(codec: str, tensor: torch.Tensor, kind: torch.dtype, what: str) -> None:
    if codec not in _WITH_KERNELS:
        raise BadInput(f"expected a codec that has a kernel ({', '.join(_WITH_KERNELS)}), found {codec!r}")
    if tensor.dtype != kind or not tensor.is_contiguous():
        raise BadInput(
            f"expected contiguous {what} of {kind}, found {tensor.dtype} with strides {tensor.stride()}"
        )


def _constants(codec: str) -> dict[str, int]:
    """What kernels of blocks are compiled for: bits of a code, the largest code (0 for fp8), bytes of a block."""
    info = TABLE[codec]
    return {
        "BITS": (info.block_bytes - 2) * 8 // info.block,
        "TOP": info.levels,
        "BYTES": info.block_bytes,
        "BLOCKS": _BLOCKS,
    }


def encode(codec: str, numbers: torch.Tensor, wire: torch.Tensor) -> None:
    """Encode contiguous float32 numbers on their device, into as many bytes as `onehop.codec.encoded_bytes` says."""
    _check(codec, numbers, torch.float32, "numbers")
    _check(codec, wire, torch.uint8, "bytes")
    n, options = numbers.numel(), {"enable_fp_fusion": False}
    if n == 0:
        return
    if TABLE[codec].block > 1:
        blocks = -(-n // 32)
        grid, of_blocks = (triton.cdiv(blocks, _BLOCKS),), _constants(codec)
        if codec == "fp8":
            del of_blocks["BITS"], of_blocks["TOP"]
        kernel = _encode_fp8 if codec == "fp8" else _encode_symmetric
        kernel[grid](numbers, wire, n, blocks, **of_blocks, **options)
    else:
        grid = (triton.cdiv(n, 1024),)
        _encode_half[grid](numbers, wire, n, FP16=codec == "fp16", NUMBERS=1024, **options)


def decode_sum(codec: str, wires: torch.Tensor, target: torch.Tensor, divisor: int = 1) -> None:
    """Decode the bytes of several ranks, a row of `wires` for each, and store the sums in the order of the ranks."""
    _check(codec, wires, torch.uint8, "bytes")
    _check(codec, target, torch.float32, "sums")
    ranks, stride = wires.shape
    n = target.numel()
    if n == 0:
        return
    arguments: dict[str, Any] = {"DIVIDE": divisor != 1, "enable_fp_fusion": False}
    if TABLE[codec].block > 1:
        blocks = -(-n // 32)
        _decode_blocks[(triton.cdiv(blocks, _BLOCKS),)](
            wires, target, n, blocks, ranks, stride, float(divisor), **_constants(codec), **arguments
        )
    else:
        _decode_halves[(triton.cdiv(n, 1024),)](
            wires, target, n, ranks, stride, float(divisor), FP16=codec == "fp16", NUMBERS=1024, **arguments
        )
