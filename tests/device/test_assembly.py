"""The kernels compile for every kind of card, and their assembly keeps what the sources promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="the compiler for cards: make device")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/assembly"  # not build/device, which the next build would embed
EXACT = ("encode_", "decode_", "all_reduce_")  # the kernels whose bits and registers this file checks
NVIDIA_REGISTERS, AMD_REGISTERS = 64, 128


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    subprocess.run([sys.executable, "tools/device.py", "--to", FOLDER], cwd=ROOT, check=True)


def names() -> list[str]:
    """Return the names of all kernels."""
    return re.findall(
        r"^ONEHOP_KERNEL\((\w+),", (ROOT / "src/device/kernel_list.inc").read_text(), re.MULTILINE
    )


def bodies(target: str) -> dict[str, str]:
    """Return the assembly of every kernel."""
    if target.startswith("sm"):
        found = re.finditer(
            r"\.entry onehop_(\w+)\((.*?)^}", (FOLDER / f"{target}.ptx").read_text(), re.DOTALL | re.MULTILINE
        )
    else:
        text = (FOLDER / f"{target}.s").read_text()
        found = re.finditer(r"^onehop_(\w+):(.*?)^\.Lfunc_end", text, re.DOTALL | re.MULTILINE)
    return {match[1]: match[2] for match in found}


def exact(target: str) -> dict[str, str]:
    """Return the assembly of the kernels of codecs and sums."""
    return {name: body for name, body in bodies(target).items() if name.startswith(EXACT)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx90a", "gfx942"])
def test_every_kernel_compiles(target: str) -> None:
    assert sorted(bodies(target)) == sorted(names())


@pytest.mark.timeout(300)
def test_nvidia() -> None:
    """Sums and products are rounded one by one, flags are of the whole system, and accesses 16 bytes wide."""
    for name, body in bodies("sm_80").items():  # the self-test compares all with the processor's, bit by bit
        assert not re.search(r"\bfma\b|\b(add|sub|mul)\.f(32|64)", body), f"{name}: ptxas may contract these"
        assert not re.search(r"\.(ftz|approx)\b", body), name
        assert ".local" not in body, f"{name}: a register array is in memory"
    for name, body in exact("sm_80").items():
        assert {"ld.global.v4", "st.global.v4"} <= set(re.findall(r"\b\w\w\.global\.v4", body)), name
        flags = re.findall(r"\b(?:st|ld)\.(?:release|acquire)\.\w+", body)
        expected = {"st.release.sys", "ld.acquire.sys"} if name.startswith("all_reduce_") else set()
        assert set(flags) == expected, name


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("sm_80", ("st.release.sys", "ld.acquire.sys")),
        ("gfx90a", ("buffer_wbl2", "buffer_invl2")),
        ("gfx942", ("buffer_wbl2 sc0 sc1", "buffer_inv sc0 sc1")),
    ],
)
def test_flags_of_messages(target: str, flags: tuple[str, str]) -> None:
    """Those of plans are of the whole system, too."""
    body = bodies(target)["move_slices"]
    assert all(flag in body for flag in flags)
    assert not re.search(r"\bflat_", body)


@pytest.mark.timeout(300)
def test_nvidia_registers() -> None:
    """As ptxas assigns them: no spills, and few enough for two groups of 512 threads on a multiprocessor."""
    log = FOLDER / "sm_90.log"
    if not log.exists():
        pytest.skip("no ptxas")
    said = re.findall(
        r"'onehop_(\w+)' for.*?(\d+) bytes spill stores.*?Used (\d+) registers", log.read_text(), re.DOTALL
    )
    assert len(said) == len(names())
    for name, spilled, registers in said:
        assert int(spilled) == 0, name
        assert int(registers) <= NVIDIA_REGISTERS or not name.startswith(EXACT), (name, registers)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_amd_waits_for_writes(target: str) -> None:
    """At barriers, for a flag that releases what other waves wrote, and between the write-back of a cache and it."""
    text = (FOLDER / f"{target}.s").read_text()
    assert ".amdhsa_code_object_version 5\n" in text, "the oldest ROCm that is allowed loads no later version"
    for name, body in bodies(target).items():
        lines = [line.split(";")[0].strip() for line in body.splitlines()]
        lines = [line for line in lines if line and not line.startswith((".", "s_or_b64", "s_mov"))]
        for number, line in enumerate(lines):
            if line.startswith("s_barrier"):
                assert re.match(r"s_waitcnt .*vmcnt\(0\)", lines[number - 1]), (
                    name,
                    lines[number - 3 : number + 1],
                )
            if line.startswith("buffer_wbl2"):
                before_flag = lines[number : number + 6]
                assert any(re.match(r"s_waitcnt .*vmcnt\(0\)", one) for one in before_flag), (
                    name,
                    before_flag,
                )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("target", "release", "acquire"),
    [("gfx90a", "buffer_wbl2", "buffer_invl2"), ("gfx942", "buffer_wbl2 sc0 sc1", "buffer_inv sc0 sc1")],
)
def test_amd(target: str, release: str, acquire: str) -> None:
    """The same; a fused multiply-add is a part of a division."""
    text = (FOLDER / f"{target}.s").read_text()
    for name, body in exact(target).items():
        fused = len(re.findall(r"\bv_(?:pk_)?(?:fma|fmac|mad|mac)_f\w+", body))
        assert fused <= 5 * body.count("v_div_fmas_f32"), name
        assert {"load", "store"} <= set(re.findall(r"\bglobal_(\w+)_dwordx4", body)), name
        assert not re.search(r"\bflat_(load|store|atomic)", body), (
            f"{name}: the compiler does not know that the memory is not shared memory"
        )
        if name.startswith("all_reduce_"):
            assert release in body, name
            assert acquire in body, name
        about = re.search(rf"\.amdhsa_kernel onehop_{name}\n(.*?)\.end_amdhsa_kernel", text, re.DOTALL)[1]
        assert re.search(r"\.amdhsa_float_denorm_mode_32 3", about), f"{name}: subnormal numbers must be kept"
        assert re.search(r"\.amdhsa_private_segment_fixed_size 0\b", about), f"{name}: spills"
        assert int(re.search(r"\.amdhsa_next_free_vgpr (\d+)", about)[1]) <= AMD_REGISTERS, name
