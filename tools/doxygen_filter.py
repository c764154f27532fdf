"""Print a header with its `//` comments converted to the `///` of Doxygen: INPUT_FILTER of docs/Doxyfile.

The first comment of a file describes the file. A comment after a member describes that member. A comment before several
functions or members without an empty line between them describes all of them: the others are described by "ditto",
which docs/_extensions/cpp_api.py resolves. Text in backticks becomes monospaced, *text* emphasised, and characters that
Doxygen would read as a command or a tag are escaped.
"""

import re
import sys
from pathlib import Path

# Lines that begin no function or member, and end the reach of a comment.
NO_MEMBER = re.compile(
    r"\s*(//|#|\}|\)|public:|private:|protected:|(class|struct|enum|union|namespace|using|typedef|friend|static_assert|extern)\b)"
)


def escape(text: str) -> str:
    """Escape comment text so that Doxygen shows it literally."""
    text = re.sub(r"([\\@<>&#$%])", r"\\\1", text)
    text = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)
    return re.sub(r"(?<![\w*])\*(\w[^*<>]*)\*(?![\w*])", r"<em>\1</em>", text)


def type_and_name(line: str) -> tuple[str, str] | None:
    """The type and the name of the function or member that begins at this line; None for special members."""
    line = re.sub(r"\[\[\w+\]\]|\b(inline|static|virtual|constexpr|explicit)\b", "", line).strip()
    found = re.match(r"(.+?[\s&*>])(\w+)(\(| = |;|\{)", line)
    if found is None or "operator" in line or re.search(r"\w&&\)|= default", line):
        return None
    return found[1].strip(), found[2]


def reaches(comment: str, first: tuple[str, str], line: str) -> bool:
    """Whether the comment before the function or member `first` also speaks of the one that begins at this line."""
    found = type_and_name(line)
    if found is None:
        return False
    lists_several = ";" in comment or ", and " in comment
    return found[0] == first[0] or (
        "(" in line and (lists_several or re.search(rf"\b{found[1]}\b", comment) is not None)
    )


def share_comments(text: str) -> str:
    """Write "// ditto" before each function or member that shares the comment of the one before it."""
    lines: list[str] = []
    comment, indent, template = "", -1, False  # indent: of the lines that the comment can reach
    first: tuple[str, str] | None = None
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if re.match(r"\s*// ", line):
            comment = line.strip() if first is not None or depth != indent else f"{comment} {line.strip()}"
            indent, first, template = depth, None, False
        elif not line.strip() or depth < indent or (NO_MEMBER.match(line) and line.strip() != "}"):
            indent = -1
        elif depth == indent and line.strip() != "}":
            here = line.split("  // ")[0]
            if line.lstrip().startswith("template"):
                template = True
                lines.append(line)
                continue
            if first is None:
                first = type_and_name(here)
                indent = -1 if first is None else indent
            elif here != line or not reaches(comment, first, here):
                indent = -1
            else:
                lines.insert(len(lines) - template, f"{' ' * depth}// ditto")
            template = False
        lines.append(line)
    return "\n".join(lines)


def is_detached(lines: list[str], number: int) -> bool:
    """Whether the comment at this line stands alone between empty lines. It then speaks of the member before it."""
    start = end = number
    while start and lines[start - 1].lstrip().startswith("//"):
        start -= 1
    while end + 1 < len(lines) and lines[end + 1].lstrip().startswith("//"):
        end += 1
    alone = not lines[start - 1].strip() and (end + 1 == len(lines) or not lines[end + 1].strip())
    return alone and lines[start - 2].rstrip().endswith((";", "}"))


def convert(text: str) -> str:
    """Return a header with its comments in the form that Doxygen reads."""
    text = re.sub(r"^(extern )?template [^<][^;]*;$", "", text, flags=re.M)  # explicit instantiations
    lines, first, started = [], True, False
    all_lines = share_comments(text).splitlines()
    for number, line in enumerate(all_lines):
        whole = re.fullmatch(r"(\s*)//+ ?(.*)", line)
        behind = re.fullmatch(r"(.*[;,{}].*?)\s*// (.*)", line)
        if whole and not whole[2].startswith("NOLINT"):
            if first and not started:
                lines.append("/// \\file")
                started = True
            behind_member = whole[1] and is_detached(all_lines, number)
            lines.append(f"{whole[1]}///{'<' if behind_member else ''} {escape(whole[2])}")
        elif behind and not re.search(r'NOLINT|"|^namespace ', behind[2]):
            lines.append(f"{behind[1]}  ///< {escape(behind[2])}")
            first = False
        else:
            lines.append(line)
            first = False
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(convert(Path(sys.argv[1]).read_text()))
