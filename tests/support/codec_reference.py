"""Reference for the codecs in plain NumPy, written from docs/reference/codecs.md, which the library must equal."""

import numpy as np

BLOCK = 32
LEVELS = {"q8": 127, "q6": 31, "q4": 7, "q3": 3}
LARGEST = np.finfo(np.float32).max
Array = np.ndarray


def _bits(x: Array) -> Array:
    return x.view(np.uint32)


def _to_bf16(x: Array) -> Array:
    bits = _bits(x).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16)


def _from_bf16(half: Array) -> Array:
    return (half.astype(np.uint32) << 16).view(np.float32)


def _blocks(x: Array) -> Array:
    blocks = np.zeros((-(-len(x) // BLOCK), BLOCK), np.float32)
    blocks.reshape(-1)[: len(x)] = x
    return blocks


def _header(scale: Array, special: Array) -> Array:
    words = (_bits(scale) >> 16 | special.astype(np.uint32) << 15).astype("<u2")
    return words.view(np.uint8).reshape(-1, 2)


def _split(wire: Array, size: int) -> tuple[Array, Array, Array]:
    blocks = wire.reshape(-1, size)
    words = blocks[:, :2].copy().view("<u2")[:, 0]
    return _from_bf16(words & 0x7FFF)[:, None], (words >> 15).astype(bool)[:, None], blocks[:, 2:]


def _finite_largest(x: Array) -> tuple[Array, Array]:
    magnitude = np.abs(x)
    special = (~(magnitude < np.float32(2.0**127))).any(axis=1)
    return np.where(np.isfinite(x), magnitude, 0).max(axis=1).astype(np.float32), special


# The symmetric codecs.


def _encode_symmetric(codec: str, x: Array) -> Array:
    blocks = _blocks(x)
    top = LEVELS[codec]
    largest, special = _finite_largest(blocks)
    exact = largest / np.where(special, top - 1, top).astype(np.float32)
    scale = ((_bits(exact).astype(np.uint64) + 0xFFFF).astype(np.uint32) & 0xFFFF0000).view(np.float32)
    scale = np.maximum(scale, np.float32(2.0**-125))
    finite = np.where(np.isfinite(blocks), blocks, 0).astype(np.float32)
    codes = np.rint(finite * (np.float32(1) / scale)[:, None]).astype(np.int8)
    codes[blocks == np.inf] = top
    codes[blocks == -np.inf] = -top
    codes[np.isnan(blocks)] = -top - 1
    return np.hstack([_header(scale, special), _pack(codec, codes.view(np.uint8))]).reshape(-1)


def _pack(codec: str, codes: Array) -> Array:
    if codec == "q8":
        return codes
    if codec == "q3":
        signs = np.packbits(codes >> 2 & 1, axis=1, bitorder="little")
        return np.hstack([_pairs(codes & 3), signs])
    nibbles = codes[:, :16] & 15 | codes[:, 16:] << 4
    if codec == "q4":
        return nibbles
    return np.hstack([nibbles, _pairs(codes >> 4 & 3)])


def _pairs(bits: Array) -> Array:
    quarters = [bits[:, 8 * i : 8 * i + 8] << 2 * i for i in range(4)]
    return quarters[0] | quarters[1] | quarters[2] | quarters[3]


def _unpack(codec: str, packed: Array) -> Array:
    if codec == "q8":
        return packed.view(np.int8)
    codes = np.hstack([packed[:, :16] & 15, packed[:, :16] >> 4])
    bits = 4
    if codec == "q3":
        bits = 3
        codes = np.hstack([packed[:, :8] >> 2 * i & 3 for i in range(4)])
        codes |= np.unpackbits(packed[:, 8:], axis=1, bitorder="little") << 2
    if codec == "q6":
        bits = 6
        codes |= np.hstack([packed[:, 16:] >> 2 * i & 3 for i in range(4)]) << 4
    return np.where(codes >> (bits - 1), codes.astype(np.int16) - (1 << bits), codes).astype(np.int8)


def _decode_symmetric(codec: str, wire: Array) -> Array:
    top = LEVELS[codec]
    scale, special, packed = _split(wire, 2 + BLOCK * int(codec[1]) // 8)
    codes = _unpack(codec, np.ascontiguousarray(packed)).astype(np.float32)
    x = np.clip(codes * scale, -LARGEST, LARGEST)
    x[special & (np.abs(codes) == top)] = np.inf
    x = np.copysign(x, codes)
    x[special & (codes == -top - 1)] = np.nan
    return x.reshape(-1)


# fp8. All its numbers in order, so that the nearest one can be looked for.

_E4M3 = np.array(
    [m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10) for e in range(16) for m in range(8)][:-1]
)


def _nearest_e4m3(y: Array) -> Array:
    above = np.clip(np.searchsorted(_E4M3, y), 1, len(_E4M3) - 1)
    below = above - 1
    down, up = y - _E4M3[below], _E4M3[above] - y
    even = np.where(below % 2 == 0, below, above)
    return np.where(down < up, below, np.where(up < down, above, even)).astype(np.uint8)


def _encode_fp8(x: Array) -> Array:
    blocks = _blocks(x)
    largest, special = _finite_largest(blocks)
    _, exponent = np.frexp(largest.astype(np.float64))
    scale = np.where(largest > 0, np.ldexp(1.0, exponent - 10), 0)
    for _ in range(3):
        with np.errstate(over="ignore"):
            large = np.where(special, largest >= 432 * scale, largest > 464 * scale)
        scale = np.where(large, 2 * scale, scale)
    scale = np.maximum(scale, 2.0**-115).astype(np.float32)
    finite = np.where(np.isfinite(blocks), blocks, 0).astype(np.float64)
    codes = _nearest_e4m3(np.abs(finite) / scale[:, None])
    codes[np.isinf(blocks)] = 0x7E
    codes[np.signbit(blocks)] |= 0x80
    codes[np.isnan(blocks)] = 0x7F
    return np.hstack([_header(scale, special), codes]).reshape(-1)


def _decode_fp8(wire: Array) -> Array:
    scale, special, codes = _split(wire, 34)
    magnitude = codes & 0x7F
    x = np.append(_E4M3, 480.0)[magnitude] * scale.astype(np.float64)
    x = np.minimum(x, LARGEST)
    x[special & (magnitude == 0x7E)] = np.inf
    x = np.where(codes & 0x80, -x, x)
    x[special & (magnitude == 0x7F)] = np.nan
    return x.astype(np.float32).reshape(-1)


def encode(codec: str, x: Array) -> Array:
    """The bytes of float32 numbers on the wire."""
    with np.errstate(all="ignore"):
        if codec == "fp16":
            return x.astype("<f2").view(np.uint8)
        if codec == "bf16":
            return _to_bf16(x).astype("<u2").view(np.uint8)
        return _encode_fp8(x) if codec == "fp8" else _encode_symmetric(codec, x)


def decode(codec: str, wire: Array, numbers: int) -> Array:
    """The float32 numbers that arrive."""
    with np.errstate(all="ignore"):
        if codec == "fp16":
            return wire.view("<f2").astype(np.float32)
        if codec == "bf16":
            return _from_bf16(wire.view("<u2"))
        return (_decode_fp8(wire) if codec == "fp8" else _decode_symmetric(codec, wire))[:numbers]


def error_bound(codec: str, x: Array) -> Array:
    """Return the documented error bound of each number; infinite if there is none."""
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(x.astype(np.float64))
    if codec == "fp16":
        return np.where(magnitude < 65520, np.maximum(magnitude / 2048, 2.0**-25), np.inf)
    if codec == "bf16":
        return np.where(magnitude < (2 - 2.0**-8) * 2.0**127, np.maximum(magnitude / 256, 2.0**-134), np.inf)
    blocks = _blocks(x)
    largest, special = _finite_largest(blocks)
    m = np.repeat(largest.astype(np.float64), BLOCK)[: len(x)]
    s = np.repeat(special, BLOCK)[: len(x)]
    if codec == "fp8":
        return np.maximum(np.maximum(magnitude / 16, m / np.where(s, 221184, 237568)), 2.0**-125)
    ordinary, extraordinary = {"q8": (252, 250), "q6": (61.5, 59.5), "q4": (13.8, 11.9), "q3": (5.95, 3.96)}[
        codec
    ]
    return np.maximum(m / np.where(s, extraordinary, ordinary), 2.0**-126 * (1 + 2.0**-15))
