"""`make wheels` links with zig, which knows fewer options than the linkers of the other builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_zig_knows_the_options_of_the_linker(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler for wheels: make device")
    files = [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*.cmake")]
    options = {found for file in files for found in re.findall(r"LINKER:([^\s\")]+)", file.read_text())}
    assert any("version-script" in one for one in options)
    values = {"CMAKE_CURRENT_SOURCE_DIR": str(ROOT), "ONEHOP_CORE_NAME": "libcore.so"}
    named = re.compile(r"\$\{(\w+)\}")
    passed = ["-Wl," + named.sub(lambda name: values[name[1]], one) for one in sorted(options)]
    source = tmp_path / "empty.c"
    source.write_text("int PyInit__core(void) { return 0; }\n")
    line = ["cc", "-target", "x86_64-linux-gnu.2.28", "-shared", "-nostdlib", *passed]
    environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(tmp_path), "ZIG_LOCAL_CACHE_DIR": str(tmp_path)}
    zig = [sys.executable, "-m", "ziglang", *line, str(source), "-o", str(tmp_path / "empty.so")]
    done = subprocess.run(zig, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
