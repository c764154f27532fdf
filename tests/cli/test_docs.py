"""`onehop docs` and the man page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.cli.commands import COMMANDS, leaves
from onehop.cli.docs import pages, programs

ROOT = Path(__file__).parents[2]


def test_pages_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^howto/launch +Launching$", listed, re.MULTILINE)
    assert len(listed.splitlines()) == len(pages()) + 3
    for page in ("launch", "howto/launch", "docs/howto/launch.md"):
        assert main(["docs", page]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("# Launching\n")
        assert ".md)" not in shown
    files = [*pages().values(), *programs().values()]
    assert sum(file.stat().st_size for file in files) <= 1 << 20  # bytes of the wheel


def test_pages_show_programs_and_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    for page in pages():
        assert main(["docs", page]) == 0
        shown = capsys.readouterr().out
        assert "```{" not in shown, page
        assert ".md)" not in shown, page
    assert main(["docs", "tutorials/halo"]) == 0
    shown = capsys.readouterr().out
    script = (ROOT / "docs/tutorials/halo.py").read_text()
    parts = re.findall(r"```py\n(.*?)\n```", shown, re.DOTALL)
    assert len(parts) == 4
    assert all(part in script for part in parts)
    assert parts[-1] == script.rstrip()
    assert main(["docs", "halo.py"]) == 0
    assert capsys.readouterr().out == script
    assert main(["docs", "notebook_noise"]) == 0
    assert "quantum.NoiseModel().add(" in capsys.readouterr().out
    assert main(["docs", "environment"]) == 0
    assert "ONEHOP_TIMEOUT: " in capsys.readouterr().out


def test_pages_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "lanch"]) == 2
    assert "did you mean howto/launch" in capsys.readouterr().err
    assert main(["docs", "../../README"]) == 2
    assert "`onehop docs` lists them" in capsys.readouterr().err


def test_helps_name_pages_that_exist() -> None:
    sources = [*(ROOT / "python/onehop").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    named = {name for one in sources for name in re.findall(r"`onehop docs ([a-z]\w+)`", one.read_text())}
    assert named >= {"codecs", "density", "engine"}
    assert named <= {name.partition("/")[2] for name in pages()}


def test_the_man_page_has_every_command(tmp_path: Path) -> None:
    out = tmp_path / "onehop.1"
    command = [sys.executable, "-I", "-S", ROOT / "tools/man_page.py", ROOT / "python/onehop", "1.2.3", out]
    subprocess.run(command, check=True)
    text = out.read_text()
    assert text.startswith('.TH ONEHOP 1 "" "onehop 1.2.3"\n')
    for path, _ in leaves(COMMANDS):
        name = " ".join(path[:2] if path[0] != "bench" else path[:1])
        assert f"\n.B onehop {name}\n" in text
