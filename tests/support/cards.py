"""The stand-ins for the drivers of cards, as environments."""

import os
import re
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def environment(kind: str, folder: Path) -> dict[str, str]:
    """Return the environment in which the driver of a kind is a stand-in; skip where the C++ tests are not built."""
    library = ROOT / "build" / "release" / f"libstandin_{kind}.so"
    if not library.exists():
        pytest.skip(f"the C++ tests are not built, so there is no {library.name}")
    kernels = re.findall(r"ONEHOP_KERNEL\((\w+)", (ROOT / "src" / "device" / "kernel_list.inc").read_text())
    image = folder / "image.ptx"
    if kind == "cuda":
        image.write_text(".target sm_80\n" + "".join(f".visible .entry onehop_{name}(\n" for name in kernels))
    else:  # an ELF header of AMD's machine and gfx942, which ends at its sections, of which there are none
        names = "".join(f"onehop_{name}.kd\0" for name in kernels).encode()
        header = struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(names), 0x4C, 64, 0, 0, 64, 0, 0)
        image.write_bytes(b"\x7fELF" + bytes(12) + header + names)
    own = {"ONEHOP_CUDA": "none", "ONEHOP_HIP": "none", f"ONEHOP_{kind.upper()}": str(library)}
    return {**os.environ, **own, "ONEHOP_DEVICE_IMAGE": str(image)}
