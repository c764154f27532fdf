"""The stand-ins for the drivers of cards, as environments."""

import os
import re
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
    image.write_text(".target sm_80\n" + "".join(f".visible .entry onehop_{name}(\n" for name in kernels))
    own = {"ONEHOP_CUDA": "none", "ONEHOP_HIP": "none", f"ONEHOP_{kind.upper()}": str(library)}
    return {**os.environ, **own, "ONEHOP_DEVICE_IMAGE": str(image)}
