"""Whether NumPy itself computes correctly here: products of matrices, and casts to float16. It does not import onehop.

An emulator may get instructions wrong that the BLAS library of NumPy uses. Then every check against NumPy fails, and
this program says why. Run by installed.sh.
"""

import struct

import numpy as np

SIZES = (2, 3, 4, 8, 16, 33, 64, 100)


def wrong_products(dtype: type) -> list[int]:
    """Return the sizes of square matrices whose product differs from that of NumPy's own loops, without BLAS."""
    rng = np.random.default_rng(1)
    wrong = []
    for size in SIZES:
        a = rng.standard_normal((size, size)).astype(dtype)
        b = rng.standard_normal((size, size)).astype(dtype)
        if np.iscomplexobj(a):
            a += 1j * b
        expected = np.einsum("ij,jk->ik", a, b, optimize=False)
        with np.errstate(all="ignore"):
            found = a @ b
        if not np.allclose(found, expected, rtol=1e-4, atol=1e-4):
            wrong.append(size)
    return wrong


def wrong_casts() -> int:
    """Return how many casts from float32 to float16 differ from those of Python's struct."""
    values = np.linspace(-70_000, 70_000, 1001, dtype=np.float32)
    with np.errstate(over="ignore"):
        found = values.astype(np.float16)
    wrong = 0
    for value, half in zip(values.tolist(), found.tolist(), strict=True):
        try:
            (expected,) = struct.unpack("<e", struct.pack("<e", value))
        except OverflowError:
            expected = float("inf") if value > 0 else -float("inf")
        wrong += expected != half
    return wrong


def main() -> None:
    """Raise SystemExit with what is wrong."""
    wrong = {
        dtype.__name__: sizes
        for dtype in (np.float32, np.float64, np.complex64, np.complex128)
        if (sizes := wrong_products(dtype))
    }
    casts = wrong_casts()
    if wrong or casts:
        products = ", ".join(f"{name} of {sizes}" for name, sizes in wrong.items()) or "none"
        raise SystemExit(
            f"NumPy {np.__version__} computes incorrectly on this processor. Wrong products of square matrices: "
            f"{products}; wrong casts to float16: {casts}. If the processor is emulated, choose another one "
            "(QEMU_CPU), or other kernels of OpenBLAS (OPENBLAS_CORETYPE)"
        )
    print(f"NumPy {np.__version__}: products and casts to float16 are right")


if __name__ == "__main__":
    main()
