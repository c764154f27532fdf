"""Compile the kernels of src/device for cards, into build/device, where CMake finds and embeds them.

    device.py [--to FOLDER] [TARGET ...]

The compiler is the clang inside PyPI's `ziglang`; neither CUDA nor ROCm is needed. NVIDIA: PTX for sm_80, which the
drivers of later cards compile when it is loaded, and a cubin for sm_90 if there is a ptxas (in PATH, or triton's). AMD:
code objects. sm_100 is compiled only to see that it can be. The files *.lz, in LZ4's block format behind their length,
are what is embedded: at most 1 MiB. Files whose sources have not changed are kept.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The least version of PTX that has the card, so that old drivers read it.
PTX = {"sm_80": "ptx70", "sm_90": "ptx78", "sm_100": "ptx86"}
TARGETS = (*PTX, "gfx90a", "gfx942")
NOT_EMBEDDED = ("sm_100",)
MOST_BYTES = 1 << 20
# No sum and product become one rounding: the bits of codecs depend on it. All functions are inlined, so that what a
# thread has is in registers.
FLAGS = ["-O2", "-std=c++20", "-ffreestanding", "-nostdinc", "-ffp-contract=off", "-fvisibility=hidden"]
FLAGS += ["-mllvm", "-inline-threshold=100000", "-Wall", "-Wextra", "-Werror"]


def find_ptxas() -> str | None:
    """Return the program that makes cubins of PTX, or None."""
    triton = importlib.util.find_spec("triton")
    folders = [Path(place) for place in triton.submodule_search_locations or ()] if triton else []
    found = [str(path) for folder in folders for path in folder.glob("backends/nvidia/bin/ptxas")]
    return shutil.which("ptxas") or (found[0] if found else None)


def zig(*arguments: object) -> None:
    """Run a tool of ziglang."""
    subprocess.run([sys.executable, "-m", "ziglang", *map(str, arguments)], check=True, cwd=ROOT)


def packed(data: bytes) -> bytes:
    """Return the data in LZ4's block format, behind 8 bytes with their number."""
    out, seen, begin, i = bytearray(len(data).to_bytes(8, "little")), {}, 0, 0

    def rest(length: int) -> bytes:
        return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])

    def put(end: int, distance: int, length: int) -> None:
        literals = end - begin
        out.append(min(literals, 15) << 4 | min(max(length - 4, 0), 15))
        out.extend(rest(literals) + data[begin:end])
        if distance:
            out.extend(distance.to_bytes(2, "little") + rest(length - 4))

    while i < len(data) - 12:  # the last 5 bytes are literals
        # The last place of the same 24 bytes, or else of fewer.
        before = next(
            (at for n in (24, 10, 4) if i - (at := seen.get(data[i : i + n], -65536)) < 65536), None
        )
        length = 1
        if before is not None:
            length = 4
            while i + length < len(data) - 5 and data[before + length] == data[i + length]:
                length += 1
            put(i, i - before, length)
            begin = i + length
        for j in range(i, i + length):
            for n in (24, 10, 4):
                seen[data[j : j + n]] = j
        i += length
    put(len(data), 0, 0)
    return bytes(out)


def compile_for(target: str, folder: Path, include: Path) -> Path:
    """Compile for one kind of card and return the file."""
    if target in PTX:
        machine = ["--target=nvptx64-nvidia-cuda", f"-march={target}", f"--cuda-feature=+{PTX[target]}"]
    else:
        # Code objects of version 6, the compiler's default, need ROCm 6.3.
        machine = ["--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-mcode-object-version=5"]
    text = folder / f"{target}.{'ptx' if target in PTX else 's'}"
    zig("clang", *machine, *FLAGS, "-isystem", include, "-I.", "-S", "src/device/entries.cc", "-o", text)
    image = text
    if target not in PTX:
        image, compiled = text.with_suffix(".hsaco"), text.with_suffix(".o")
        zig("clang", *machine, "-c", text, "-o", compiled)
        zig("ld.lld", "-shared", "-s", compiled, "-o", image)
        compiled.unlink()
    elif target == "sm_90" and (ptxas := find_ptxas()):
        image = text.with_suffix(".cubin")
        with text.with_suffix(".log").open("w") as log:  # registers and spills of every kernel
            subprocess.run([ptxas, "-v", f"-arch={target}", text, "-o", image], check=True, stderr=log)
    if target not in NOT_EMBEDDED:
        folder.joinpath(f"{image.name}.lz").write_bytes(packed(image.read_bytes()))
    return image


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "build/device", help="the folder of the files")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"from {', '.join(TARGETS)}; default: all"
    )
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"expected targets from {', '.join(TARGETS)}, found '{min(unknown)}'")
    compiler = importlib.util.find_spec("ziglang")
    if compiler is None:
        print("onehop: no ziglang, so no kernels for cards are compiled; everything else works")
        return 0
    include = Path(compiler.submodule_search_locations[0]) / "lib/include"
    sources = sorted(path for path in (ROOT / "src/device").iterdir() if path.suffix in (".h", ".inc"))
    sources += [ROOT / "src/device/entries.cc", Path(__file__)]
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in sources) + str(find_ptxas()).encode()
    ).hexdigest()
    options.to.mkdir(parents=True, exist_ok=True)

    def work(target: str) -> None:
        stamp = options.to / f"{target}.stamp"
        if not stamp.exists() or stamp.read_text() != digest:
            for old in options.to.glob(f"{target}.*"):
                old.unlink()
            image = compile_for(target, options.to, include)
            stamp.write_text(digest)
            print(f"onehop: {image.name}, {image.stat().st_size} bytes")

    lock = options.to.joinpath("lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, options.targets or TARGETS))
    total = sum(path.stat().st_size for path in options.to.glob("*.lz"))
    if total > MOST_BYTES:
        print(
            f"onehop: expected embedded images of at most {MOST_BYTES} bytes in all, found {total} in {options.to}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
