"""The documentation is correct: its programs run, its commands exist, and the README shows the examples."""

import os
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from onehop.cli.commands import COMMANDS, Group
from onehop.cli.former import former_options
from onehop.options import fields_of
from ranks import Ranks, completed

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GENERATED = ROOT / "docs/reference/cli"  # helps of commands, which the site shows
PAGES = sorted([README, *(page for page in (ROOT / "docs").rglob("*.md") if page.parent != GENERATED)])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(rf"\bonehop ((?:{'|'.join(COMMANDS.commands)})\b[^`#)\n]*)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


# A block that imports onehop is a complete program and is run. Other blocks are fragments.
EXAMPLES = {
    f"{str(page.relative_to(ROOT)).replace('/', '-')}-{number}": block
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
    if re.search(r"^(from|import) .*onehop", block, re.M) and "onehop.launch" not in block
}
WITH_TORCH = [name for name, example in EXAMPLES.items() if "import torch\n" in example]
PACKAGES = ("pennylane", "cirq", "pytket")
RUN_EACH = """
    import pathlib, sys
    for name in sys.argv[1:]:
        exec(compile(pathlib.Path(name).read_text(), name, "exec"), {"__name__": "__main__"})
"""


@pytest.mark.timeout(600)
def test_examples_run_on_two_ranks(ranks: Ranks) -> None:
    """One after the other in one launch. The traceback names the one that fails."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    files = [
        ranks.script(example, f"{name}.py")
        for name, example in EXAMPLES.items()
        if name not in WITH_TORCH
        and not re.search(rf"^(from|import) ({'|'.join(missing) or '-'})", example, re.M)
    ]
    assert len(files) > 20
    ranks.onehop("launch", "-n", 2, ranks.script(RUN_EACH), *files, cwd=ranks.folder, status=0)


@pytest.mark.parametrize("name", WITH_TORCH)
def test_examples_with_torch_run_on_two_ranks(ranks: Ranks, name: str) -> None:
    pytest.importorskip(
        "torch", reason="there is no torch in this environment; `make setup-torch` brings one"
    )
    done = ranks.torchrun(ranks.script(EXAMPLES[name]))
    assert done.returncode == 0, done.stderr


def test_readme_shows_the_examples() -> None:
    (python,) = blocks(README, "python")
    assert (ROOT / "examples/halo.py").read_text().endswith(f'"""\n\n{python}')
    (cpp,) = blocks(README, "cpp")
    file = (ROOT / "examples/halo.cc").read_text()
    assert "".join(cpp.split()) in "".join(file.split())


def test_cpp_compiles(tmp_path: Path) -> None:
    """Compile all C++ blocks that include onehop as one source. Each `main` is renamed; fragments become functions."""
    compiler = next(
        filter(None, map(shutil.which, filter(None, [os.environ.get("CXX"), "g++-12", "g++", "clang++"]))),
        None,
    )
    if compiler is None:
        pytest.skip("no C++ compiler")
    includes, functions = set(), []
    for page in PAGES:
        for number, block in enumerate(blocks(page, "cpp")):
            found = set(re.findall(r"^#include .*$", block, re.M))
            if not any("onehop/" in line for line in found):
                continue
            includes |= found
            body = "\n".join(line for line in block.splitlines() if line not in found)
            name = f"{page.parent.name}_{page.stem}_{number}"
            functions.append(
                body.replace("int main(", f"int {name}(")
                if "int main(" in body
                else f"void {name}(const onehop::Group& group, int left, int right, "
                f"std::vector<double> values, std::vector<double> numbers) {{\n{{\n{body}\n}}\n}}"
            )
    assert len(functions) >= 4
    source = tmp_path / "docs.cc"
    source.write_text(
        "\n".join(
            ["#include <cstdio>", "#include <span>", "#include <vector>", *sorted(includes), *functions]
        )
    )
    completed([compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", source], status=0)


# Sizes of the pages that take too long for a test.
SMALLER = {
    "--qubits 24": "--qubits 10",
    "8x8x8x16": "4x4x4x4",
    "--sweeps 50": "--sweeps 2",
    "--keep 100": "--keep 30",
}


@pytest.mark.parametrize(
    "page", [README, *(ROOT / "docs/tutorials").glob("*.md")], ids=lambda page: page.stem
)
def test_commands_run(ranks: Ranks, page: Path) -> None:
    """The commands of the README and the tutorials run in their order; tests of their own run programs."""
    text = page.read_text()
    for long, short in SMALLER.items():
        text = text.replace(long, short)
    shell = "\n".join(found for language, found in BLOCK.findall(text) if language == "sh").replace(
        "\\\n", " "
    )
    for line in shell.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["onehop"] or words[1] == "launch":
            continue
        files = [
            str(one)
            for word in words[2:]
            for one in (sorted(ranks.folder.glob(word)) if "*" in word else [word])
        ]
        done = ranks.onehop(words[1], *files, cwd=ranks.folder)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_links_of_pages_outside_the_site() -> None:
    """Sphinx checks the links of the other pages."""
    for page in (
        README,
        ROOT / "CONTRIBUTING.md",
        ROOT / "packaging/README.md",
        *(ROOT / "notes").glob("*.md"),
    ):
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    """Every command on a page exists with all its options. Values of options may be placeholders."""
    joined = re.sub(r"\\\n *", " ", page.read_text())  # with lines that end in a backslash joined
    for text in COMMAND.findall(joined):
        words, command, path = shlex.split(text), COMMANDS, []
        while isinstance(command, Group) and words and words[0] in command.commands:
            path.append(words.pop(0))
            command = command.commands[path[-1]]
        if isinstance(command, Group):
            assert words in ([], ["..."]), f"no such command: onehop {text}"
            continue
        fields = fields_of(command.options)
        takes = {name: field for field in fields for name in (*field.names, field.option.off)}
        former = {each.old for each in former_options(" ".join(path)) if each.old != each.new}
        while words and (not command.ends_at_argument or words[0].startswith("-")):
            word = words.pop(0)
            if word == "--":  # the rest belongs to another program
                break
            assert word in takes or not word.startswith("-") or word in ("-", "--help"), (
                f"no {word}: onehop {text}"
            )
            assert word not in former or word in takes, f"former name {word}: onehop {text}"
            if word in takes and not takes[word].is_flag and takes[word].option.alone is None:
                del words[:1]


@pytest.mark.parametrize("page", ["docs/design/architecture.md", "docs/howto/extend.md"])
def test_files_exist(page: str) -> None:
    """Files and folders named on these pages exist. A name without a folder may be anywhere in the tree."""
    names = re.findall(r"`(\w[\w/.]*(?:\.(?:cc|cpp|h|py|toml)|/[\w/]*))`", (ROOT / page).read_text())
    assert len(names) > 10
    tree = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = set(tree.split())
    everything = {path.rpartition("/")[2] for path in files}
    for name in names:
        known = name in files or name in everything or (ROOT / name.rstrip("/")).is_dir()
        assert known or "NAME" in name, name
