"""Starting is quick because little is imported. The times themselves are measured by hand (docs/howto/install.md)."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onehop
from onehop.cli import main
from onehop.cli.commands import leaves
from ranks import completed


def modules_after(source: str) -> set[str]:
    """Return the modules that a new Python has imported after running a program."""
    program = f"import sys\n{source}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_import_does_not_import_numpy() -> None:
    found = modules_after("import onehop")
    assert "onehop._core" in found
    assert not found & {"numpy", "dataclasses", "onehop.schedule", "onehop.quantum"}
    assert "numpy" in modules_after("import onehop; onehop.Plan")


def test_sources_without_the_extension_say_how_to_build_it(tmp_path: Path) -> None:
    for file in Path(onehop.__path__[0]).glob("*.py"):
        tmp_path.joinpath("onehop").mkdir(exist_ok=True)
        tmp_path.joinpath("onehop", file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-c", "import onehop"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert "extension is not built for this Python: run `make build`" in done.stderr.splitlines()[-1]


def test_help_imports_no_command() -> None:
    found = modules_after("from onehop.cli import main; main(['--help'])")
    assert not found & {"numpy", "qiskit", "onehop.options", "onehop.cli.quantum", "onehop.cli.schedule"}


def test_dir_lists_the_public_names_and_modules_only() -> None:
    modules = {module.name for module in pkgutil.iter_modules(onehop.__path__)}
    assert {*dir(onehop)} - modules == {*onehop.__all__}
    assert {*dir(onehop.launch)} == {*onehop.launch.__all__}
    for package in (onehop, onehop.launch):
        assert all(getattr(package, name) is not None for name in package.__all__)
    assert onehop.topology.Grid is not None
    assert onehop.predict.predict_solver is not None
    with pytest.raises(AttributeError, match="module 'onehop' has no attribute 'nonsense'"):
        _ = onehop.nonsense


@pytest.mark.parametrize(("path", "command"), [(" ".join(path), command) for path, command in leaves()])
def test_the_short_help_begins_like_that_of_the_command(path: str, command: Any) -> None:
    assert (command.function.__doc__ or "").split()[0] == command.about.split()[0], path


@pytest.mark.parametrize("path", [path for path, _ in leaves()], ids=" ".join)
def test_every_command_knows_the_option_that_a_typo_meant(
    path: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--help"]) == 0
    option = max(re.findall(r"^  (?:-\w, )?(--[a-z-]{3,})", capsys.readouterr().out, re.MULTILINE), key=len)
    assert main([*path, option[:-2] + option[-1]]) == 2
    assert f"(did you mean {option}?)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], *(["schedule"], ["lattice"], ["quantum"], ["quantum", "circuit"], ["quantum", "hamlib"])],
    ids=lambda words: " ".join(words) or "onehop",
)
def test_a_group_without_a_command_prints_its_help_and_an_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert ("Commands" if words else "Shell and help:") in shown.out
    assert "error: `" + " ".join(["onehop", *words]) + "` needs a command" in shown.err


def test_onehop_torch_without_torch_says_what_to_do() -> None:
    program = "import sys; sys.modules['torch'] = None; import onehop.torch"
    done = completed([sys.executable, "-c", program])
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: onehop.torch needs PyTorch with torch.distributed")
    assert "pip install torch" in last


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_traceback(closed: str, tmp_path: Path) -> None:
    """And whatever would be printed does not land in a file that is written."""
    file = tmp_path / "halo.json"
    options = f"schedule halo --extent 8x8 --grid 2x1 -o {file}"
    shell = f"{sys.executable} -m onehop {options} {closed}"
    done = completed(["sh", "-c", shell], status=0)
    assert "Traceback" not in done.stdout + done.stderr
    onehop.Schedule.from_json(file.read_text())
