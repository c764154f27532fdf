"""Write the man page onehop.1: man_page.py python/onehop VERSION FILE. The package need not be built."""

import ast
import sys
import types
from pathlib import Path


def _package(name: str, folder: Path) -> None:
    """Let modules of a package be imported without its __init__.py, which needs the extension."""
    module = types.ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def _summary(command: "object", package: Path) -> str:
    """Return the first sentence of a group or of a command, from its source."""
    if not hasattr(command, "place"):  # a group
        return command.about
    if command.summary:
        return command.summary
    module, _, name = command.place.partition(":")
    source = (package / "cli" / f"{module.lstrip('.').replace('.', '/')}.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            return first.partition(". ")[0].rstrip(".") + "."
    raise SystemExit(f"no function {name} in {module}")


def _roff(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("\n.", "\n\\&.")


def page(package: Path, version: str) -> str:
    """Return the page, with the commands in the sections of the help."""
    _package("onehop", package)
    _package("onehop.cli", package / "cli")
    from onehop.cli.commands import COMMANDS, Group

    lines = [
        f'.TH ONEHOP 1 "" "onehop {version}"\n.SH NAME\nonehop \\- {_roff(COMMANDS.about.rstrip("."))}',
        ".SH SYNOPSIS\n.B onehop\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n.SH COMMANDS",
    ]
    for title, names in COMMANDS.sections.items():
        lines.append(f".SS {title}")
        for name in names:
            command = COMMANDS.commands[name] if name != "bench" else COMMANDS.parts[name]
            lines.append(f".TP\n.B onehop {name}\n{_roff(_summary(command, package))}")
            if isinstance(command, Group) and isinstance(command.parts, dict):
                for part, one in command.parts.items():
                    lines.append(f".TP\n.B onehop {name} {part}\n{_roff(_summary(one, package))}")
    lines += [
        '.SH OPTIONS\n.TP\n.BR \\-h ", " \\-\\-help\nAfter a command: its options, as \\fBonehop help\\fR.',
        '.TP\n.BR \\-V ", " \\-\\-version\nPrint the version.',
        ".SH EXIT STATUS\n0: success; 1: failure; 2: bad input; 3: a lost peer; 130: Ctrl\\-C.",
        ".SH ENVIRONMENT\n.B onehop docs environment\nlists the variables.",
        ".SH SEE ALSO\n.B onehop docs\nlists the pages of the documentation.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(page(Path(sys.argv[1]).resolve(), sys.argv[2]), encoding="utf-8")
