"""Help pages: the usage of a command, its description, and its options with their values, ranges and defaults."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onehop.options import Field, Options

_COLUMN = 28  # where descriptions begin
_KEPT = re.compile(r"^(\s|- |\d+\. )", re.MULTILINE)  # lists and examples, whose lines stay


def _width() -> int:
    return max(shutil.get_terminal_size().columns, 40)


def _heading(text: str) -> str:
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        return f"\033[1m{text}\033[0m"
    return text


def _paragraphs(text: str) -> str:
    """Fill the lines of each paragraph."""
    filled = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if _KEPT.search(paragraph):
            filled.append(textwrap.indent(paragraph, "  "))
        else:
            filled.append(textwrap.fill(paragraph, _width(), break_on_hyphens=False))
    return "\n\n".join(filled)


def _rows(heading: str, rows: Iterable[tuple[str, str]], column: int = _COLUMN) -> str:
    """Return a heading and rows of two columns, of which the second one begins at `column`."""
    lines = [_heading(f"{heading}:")]
    for left, right in rows:
        text = textwrap.wrap(right, max(_width() - column, 30), break_on_hyphens=False) or [""]
        first = f"  {left}"
        if len(first) <= column - 2:
            lines.append(f"{first:{column}}{text.pop(0)}".rstrip())
        else:
            lines.append(first)
        lines += [" " * column + line for line in text]
    return "\n".join(lines)


def group_help(path: str, about: str, sections: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help of a group of commands, such as "onehop lattice", from their summaries by headings."""
    usage = f"{_heading('Usage:')} {path} [OPTIONS] COMMAND [ARGS]..."
    options = [("-h, --help", "Show this help and exit.")]
    if " " not in path:
        options.insert(0, ("-V, --version", "Print the version and exit."))
    column = max(14, *(len(name) + 4 for rows in sections.values() for name in rows))
    return "\n\n".join(
        [
            usage,
            _paragraphs(about),
            _rows("Options", options, column),
            *(_rows(title, rows.items(), column) for title, rows in sections.items()),
        ]
    )


def command_help(path: str, about: str, kind: type[Options]) -> str:
    """Return the help of a command, with `about` as its description and `kind` as the class of its options."""
    from onehop.options import fields_of

    fields = fields_of(kind)
    arguments = [field for field in fields if field.option.positional]
    names = [(field.option.metavar, field.default is ...) for field in arguments]
    words = "".join(f" {name}" if is_needed else f" [{name}]" for name, is_needed in names)
    parts = [f"{_heading('Usage:')} {path} [OPTIONS]{words}", _paragraphs(about)]
    if arguments:
        parts.append(_rows("Arguments", [(field.option.metavar, _text(field)) for field in arguments]))
    titles: dict[str, list[tuple[str, str]]] = {}
    for field in fields:
        if not field.option.positional:
            titles.setdefault(field.title, []).append((_names(field), _text(field)))
    own = titles.pop("Options", [])
    parts += [_rows(title, rows) for title, rows in {"Options": own, **titles}.items() if rows]
    parts.append(_rows("Help", [("-h, --help", "Show this help and exit.")]))
    return "\n\n".join(parts)


def _metavar(field: Field) -> str:
    """Return the value of an option as the help shows it."""
    if field.option.metavar:
        metavar = field.option.metavar
    elif field.option.choices:
        metavar = "|".join(map(str, field.option.choices))
    elif field.many is tuple:
        metavar = "AxBxC"
    else:
        metavar = {int: "N", float: "NUMBER", str: "TEXT"}[field.kind]
    return f"[{metavar}]" if field.option.alone is not None else metavar


def _names(field: Field) -> str:
    names = [*field.names, *([field.option.off] if field.option.off else [])]
    return ", ".join(names) + ("" if field.is_flag else f" {_metavar(field)}")


def _default(field: Field) -> str:
    if field.option.default:
        return field.option.default
    if field.option.positional or field.default in (None, "", ..., []) or field.default is False:
        return ""
    if field.default is True:
        return max(field.names, key=len)
    if isinstance(field.default, list):
        return (field.option.separator or " ").join(map(str, field.default))
    if isinstance(field.default, tuple):
        return "x".join(str(int(part)) for part in field.default)
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def _text(field: Field) -> str:
    """Return the help of an option with its default and its range."""
    default = _default(field)
    notes = [
        f"default: {default}" if default else "",
        "" if field.is_flag or field.many is tuple else field.range,
    ]
    if field.default is ... and not field.option.positional:
        notes.append("required")
    said = "; ".join(filter(None, notes))
    return f"{field.option.help} [{said}]" if said else field.option.help
