"""Print a header with its `//` comments converted to the `///` of Doxygen: INPUT_FILTER of docs/Doxyfile.

The first comment of a file describes the file. A comment after a member describes that member. Text in backticks
becomes monospaced, and characters that Doxygen would read as a command or a tag are escaped.
"""

import re
import sys
from pathlib import Path


def escape(text: str) -> str:
    """Escape comment text so that Doxygen shows it literally."""
    text = re.sub(r"([\\@<>&#$%])", r"\\\1", text)
    return re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)


def convert(text: str) -> str:
    """Return a header with its comments in the form that Doxygen reads."""
    text = re.sub(r"^(extern )?template [^<][^;]*;$", "", text, flags=re.M)  # explicit instantiations
    lines, first, started = [], True, False
    for line in text.splitlines():
        whole = re.fullmatch(r"(\s*)//+ ?(.*)", line)
        behind = re.fullmatch(r"(.*[;,{}].*?)\s*// (.*)", line)
        if whole and not whole[2].startswith("NOLINT"):
            if first and not started:
                lines.append("/// \\file")
                started = True
            lines.append(f"{whole[1]}/// {escape(whole[2])}")
        elif behind and "NOLINT" not in behind[2] and '"' not in behind[2]:
            lines.append(f"{behind[1]}  ///< {escape(behind[2])}")
            first = False
        else:
            lines.append(line)
            first = False
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(convert(Path(sys.argv[1]).read_text()))
