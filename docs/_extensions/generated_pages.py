"""Write the pages that are generated from the program: the command line and the environment variables."""

import os
from pathlib import Path
from typing import Any

from onehop import _core
from onehop.cli.commands import leaves
from onehop.cli.help import command_help

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "build" / "generated"
COMMANDS = ROOT / "docs" / "reference" / "cli"  # Sphinx reads pages from docs only; git ignores this folder

# Pages with more about an environment variable than its entry in reference/environment.md.
MORE_ON_VARIABLES = {
    "ONEHOP_MEETING_KEY": "../design/security.md",
    "ONEHOP_MPI": "group.md#mpi",
    "ONEHOP_PEERS": "../performance/circuits.md",
    "ONEHOP_QASM_MEMORY_MIB": "quantum_circuits.md#openqasm-2-and-3",
    "ONEHOP_QASM_OPERATIONS": "quantum_circuits.md#openqasm-2-and-3",
    "ONEHOP_QASM_SECONDS": "quantum_circuits.md#openqasm-2-and-3",
    "ONEHOP_QSPI_TOGETHER": "../howto/compat_qspi.md",
    "ONEHOP_SHARE_BUFFERS": "../howto/compat_rdma_comlib.md#receiving-in-place",
    "ONEHOP_SIMD": "../howto/extend.md#add-a-kernel",
    "ONEHOP_TIMEOUT": "errors.md#a-rank-that-waits-for-ever",
    "ONEHOP_TUNING": "../howto/tuning.md",
}


def write_commands(_app: Any) -> None:
    """Write the pages of the commands, one for each, and their list, which reference/cli.md includes."""
    os.environ["COLUMNS"] = "100"
    rows, pages = ["| command | purpose |", "|---|---|"], {}
    for path, command in leaves():
        name, page = " ".join(["onehop", *path]), "_".join(path)
        shown = command_help(name, command.function.__doc__ or "", command.options)
        pages[page] = f"# {name}\n\n```text\n{shown}\n```\n"
        rows.append(f"| [`{name}`](cli/{page}.md) | {command.about} |".replace("<", "&lt;"))
    listed = "\n".join(f"{' '.join(['onehop', *path])} <cli/{'_'.join(path)}>" for path, _ in leaves())
    toctree = f"```{{toctree}}\n:hidden:\n\n{listed}\n```"
    _update(GENERATED / "cli.md", "\n".join(rows) + f"\n\n{toctree}\n")
    for old in COMMANDS.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for page, text in pages.items():
        _update(COMMANDS / f"{page}.md", text)


def _update(file: Path, text: str) -> None:
    """Write a file unless it has this text: Sphinx reads again what is newer than its last build."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def variable_section(variable: dict[str, str]) -> str:
    """Describe a variable that users set in a section of its own, which links and the search can find."""
    name, more = variable["name"], ""
    if name in MORE_ON_VARIABLES:
        more = f" [More]({MORE_ON_VARIABLES[name]})."
    return (
        f"### `{name}`\n\n{variable['meaning']}{more}\n\n"
        f"*Values*: {variable['values']}. *Default*: {variable['default']}. *Read in*: `{variable['read_in']}`."
    )


def variable_table(variables: list[dict[str, str]]) -> str:
    """Describe variables that users do not set in one table."""
    rows = ["| variable | meaning | values | read in |", "|---|---|---|---|"]
    for one in variables:
        cells = (f"`{one['name']}`", one["meaning"], one["values"], f"`{one['read_in']}`")
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def write_variables(_app: Any) -> None:
    """Write the reference of environment variables, which reference/environment.md includes."""
    by: dict[str, list[dict[str, str]]] = {"user": [], "launcher": [], "test": []}
    for one in _core.environment_variables():
        by[one["set_by"]].append(one)
    unknown = set(MORE_ON_VARIABLES) - {one["name"] for one in by["user"]}
    if unknown:
        raise SystemExit(f"docs: MORE_ON_VARIABLES names {', '.join(unknown)}, which users do not set")
    parts = [
        "## Variables that you set",
        *map(variable_section, by["user"]),
        "## Variables that onehop sets",
        "onehop sets these variables for the processes that it starts.",
        variable_table(by["launcher"]),
        "## Variables for tests",
        variable_table(by["test"]),
    ]
    GENERATED.mkdir(parents=True, exist_ok=True)
    (GENERATED / "environment.md").write_text("\n\n".join(parts) + "\n")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_commands)
    app.connect("builder-inited", write_variables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
