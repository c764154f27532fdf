"""Write the stub `onehop._keywords`: for each dataclass of options, the keywords of the functions that take them.

Such a function takes `**keywords: Unpack[HaloKeywords]`, which type checkers know as the fields of `HaloOptions`.
"""

import ast
import re
import sys
from pathlib import Path

HEAD = "from typing_extensions import Required, TypedDict\nfrom typing_extensions import Unpack as Unpack\n"


def field_text(field: ast.AnnAssign) -> str:
    """Return the line of a field; one without a default is required."""
    kind = ast.unparse(field.annotation)
    default = field.value.args[0] if isinstance(field.value, ast.Call) and field.value.args else field.value
    required = default is None or (isinstance(default, ast.Constant) and default.value is ...)
    return f"    {ast.unparse(field.target)}: {f'Required[{kind}]' if required else kind}"


def stub(package: Path) -> str:
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))}
    wanted = {
        f"{name}Options" for text in texts.values() for name in re.findall(r"Unpack\[(\w+)Keywords\]", text)
    }
    imports: set[str] = set()
    classes = []
    for text in (text for text in texts.values() if "Options(" in text):
        tree = ast.parse(text)
        sources = {
            alias.name: f"from {one.module} import {alias.name}"
            for one in ast.walk(tree)
            if isinstance(one, ast.ImportFrom)
            for alias in one.names
        }
        for one in tree.body:
            if not isinstance(one, ast.ClassDef) or one.name not in wanted:
                continue
            bases = [base.id for base in one.bases if isinstance(base, ast.Name) and base.id in wanted]
            base = bases[0].replace("Options", "Keywords") if bases else "TypedDict"
            fields = [field for field in one.body if isinstance(field, ast.AnnAssign)]
            names = {
                name.id
                for field in fields
                for name in ast.walk(field.annotation)
                if isinstance(name, ast.Name)
            }
            imports.update(sources[name] for name in names if name in sources)
            name = one.name.replace("Options", "Keywords")
            classes.append("\n".join([f"class {name}({base}, total=False):", *map(field_text, fields)]))
    return "\n".join([HEAD + "\n".join(sorted(imports)), *classes]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(stub(Path(sys.argv[1])), encoding="utf-8")
