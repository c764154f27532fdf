"""The command line of one command: words become the options of its dataclass.

A value is the word after its option, whatever it begins with (`--observable -Z0`, `--mass -1e-3`), which argparse does
not allow; and former spellings are translated here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from onehop.cli.common import check_plot
from onehop.cli.former import WITHOUT_EFFECT, Former, former_options, say_renamed
from onehop.error import BadInput
from onehop.options import Field, Options, fields_of
from onehop.output import check_file_target

AnyOptions = TypeVar("AnyOptions", bound=Options)


class HelpWanted(Exception):
    """The command line has --help."""


def parse(
    kind: type[AnyOptions], words: Sequence[str], path: str, *, ends_at_argument: bool = False
) -> AnyOptions:
    """Return the options, of the dataclass `kind`, that the words after the name of the command `path` give.

    With `ends_at_argument`, all words after the first argument are arguments, whatever they begin with. Raises
    BadInput, or HelpWanted.
    """
    line = Line(fields_of(kind), path)
    try:
        line.split(words, ends_at_argument)
        line.translate_values()
        values = line.values()
    except BadInput as error:
        if line.both_names:
            raise
        raise BadInput(f"{error}; see `onehop {path} --help`") from None
    line.check_outputs(values)
    line.check_targets(values)
    options = kind(**values)
    object.__setattr__(options, "_given", frozenset(values))
    return options


class Line:
    """A command line while it is read.

    `given` has the options in their order: the name that was used, the field, and the value as text. `arguments` are
    the words without an option.
    """

    def __init__(self, fields: Sequence[Field], path: str) -> None:
        self.path = path
        self.fields = fields
        self.former = former_options(path)
        self.named = {name: field for field in fields if not field.option.positional for name in field.names}
        self.off = {field.option.off: field for field in fields if field.option.off}
        self.given: list[tuple[str, Field, str]] = []
        self.arguments: list[str] = []
        self.both_names = False

    def split(self, words: Sequence[str], ends_at_argument: bool) -> None:
        """Tell options, their values and arguments apart."""
        left = list(reversed(words))
        while left:
            word = left.pop()
            if word == "--":
                self.arguments += reversed(left)
                return
            if word.startswith("-") and word != "-":
                self._option(word, left)
                continue
            self.arguments.append(word)
            if ends_at_argument:
                self.arguments += reversed(left)
                return

    def _option(self, word: str, left: list[str]) -> None:
        """Read an option, and its value from the words that are left, of which the last one is next."""
        name, equals, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:
            name, equals, value = word[:2], "=", word[2:]
        if name in ("-h", "--help"):
            raise HelpWanted
        if word in WITHOUT_EFFECT.get(self.path, ()):
            say_renamed(word, None)
            return
        former = self._former_name(name)
        if former is None and name not in self.named and name not in self.off:
            raise BadInput(f"no such option: {name}{self._similar(name)}")
        field = self.off.get(name) or self.named[name if former is None else former.new]
        if field.is_flag or (former is not None and former.flag is not None):
            if equals:
                raise BadInput(f"option {name} does not take a value")
            text = (
                former.flag
                if former is not None and former.flag is not None
                else "0"
                if name in self.off
                else "1"
            )
        elif equals:
            text = value
        else:
            text = self._value(name, field, left)
        self.given.append((name, field, text))

    def _former_name(self, name: str) -> Former | None:
        return next(
            (each for each in self.former if each.old == name != each.new and not each.is_conditional), None
        )

    def _value(self, name: str, field: Field, left: list[str]) -> str:
        if field.option.alone is not None and not (left and self._may_be_value(field, left[-1])):
            takes_arguments = any(each.option.positional for each in self.fields)
            if takes_arguments or not left or left[-1].startswith("-"):
                return field.option.alone
        if not left:
            raise BadInput(f"option {name} requires an argument")
        text = left.pop()
        if self.path.startswith("lattice ") and field.many is tuple and text.isdigit():
            numbers = [text]
            while left and left[-1].isdigit():
                numbers.append(left.pop())
            if len(numbers) > 1:
                text = "x".join(numbers)
                say_renamed(f"{name} {' '.join(numbers)}", f"{name} {text}")
        return text

    def _may_be_value(self, field: Field, word: str) -> bool:
        """Whether a word is the value of an option before it that needs none."""
        if field.option.choices or field.many is tuple:
            try:
                field.read(self._present_value(field, word))
            except BadInput:
                return False
            return True
        return word == "-" or not (word.startswith("-") or word.endswith(".qasm"))

    def _present_value(self, field: Field, text: str) -> str:
        """Return the present form of a value, which may be a former one: `4,4` is 4x4."""
        if field.many is tuple:
            text = text.replace(",", "x")
        for former in self.former:
            if former.new in field.names and former.values:
                parts = text.split("x") if field.many is tuple else [text]
                return "x".join(former.values.get(part.lower(), part) for part in parts)
        return text

    def translate_values(self) -> None:
        """Say what former spellings are called now, and replace them."""
        texts = {name: text for name, _, text in self.given}
        notes = []
        for number, (name, field, text) in enumerate(self.given):
            former = self._former_name(name)
            for each in self.former:
                if each.old == name and each.is_conditional and each.applies(text, texts):
                    former, field = each, self.named[each.new]
            if former is not None and former.new in texts:
                self.both_names = True
                raise BadInput(
                    f"expected {former.new} or its former name {name}, found both; leave {name} out"
                )
            present = self._present_value(field, text)
            if former is not None:
                beside = f" with {' '.join(former.beside)}" if former.beside else ""
                flag = "" if former.flag is None else f" {former.flag}"
                notes.append((f"{name}{beside}", f"{former.new}{flag}"))
            elif present != text:
                notes.append((f"{name} {text}", f"{name} {present}"))
            self.given[number] = (name, field, present)
        for old, new in notes:
            say_renamed(old, new)

    def values(self) -> dict[str, Any]:
        """Return the values of the fields that are given."""
        found: dict[str, Any] = {}
        for name, field, text in self.given:
            if field.is_flag:
                found[field.name] = text == "1"
            elif field.many is list and not field.option.separator:
                found.setdefault(field.name, []).append(field.read(text, name))
            else:
                found[field.name] = field.read(
                    text, max(field.names, key=len) if name in field.names else name
                )
        self._assign_arguments(found)
        for field in self.fields:
            if field.default is ... and field.name not in found:
                raise BadInput(f"missing option {field.long}")
        return found

    def _assign_arguments(self, found: dict[str, Any]) -> None:
        left = list(reversed(self.arguments))
        for field in self.fields:
            if not field.option.positional:
                continue
            if field.many is list:
                words, left = left[::-1], []
                if words:
                    found[field.name] = [field.read(word) for word in words]
            elif left:
                found[field.name] = field.read(left.pop())
            if field.default is ... and field.name not in found:
                raise BadInput(f"missing argument {field.long!r}")
        if left:
            raise BadInput(f"unexpected argument {left[-1]!r}")

    def _similar(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, [*self.named, *self.off, "--help"], 1)
        return f" (did you mean {near[0]}?)" if near else ""

    def check_outputs(self, values: dict[str, Any]) -> None:
        """Raise BadInput if an option names a file to write that another argument names as well."""
        outputs, inputs = [], []
        for field in self.fields:
            value = values.get(field.name)
            if field.kind is not str or value is None:
                continue
            texts = value if isinstance(value, list) else [value]
            if field.option.writes:
                outputs += [(field, text) for text in texts]
            if not field.option.writes or field.option.writes == "checkpoint":
                inputs += texts
        _check_pairs(outputs)
        if values.get("overwrite"):
            return  # the user says so
        for field, target in outputs:
            if field.option.writes == "checkpoint":
                continue
            for text in inputs:
                if target and _same_file(target, text):
                    raise BadInput(
                        f"expected {field.long} with another file than {text}, which this command reads, found the "
                        "same file: name another one"
                    )

    def check_targets(self, values: dict[str, Any]) -> None:
        """Raise BadInput if a file cannot be written, before the work starts: a long run shall not fail at its end.

        A command with `overwrite` checks its files by itself.
        """
        checks_itself = any(field.name == "overwrite" for field in self.fields)
        for field in self.fields:
            target, writes = values.get(field.name), field.option.writes
            is_screen = target == "-" and "-" in (field.default, field.option.alone)
            if not writes or target is None or is_screen:
                continue
            if field.name == "plot":
                check_plot(target)
            elif not checks_itself and writes != "checkpoint":
                check_file_target(target, field.long)


def _check_pairs(outputs: Sequence[tuple[Field, str]]) -> None:
    """Raise BadInput if two options write to one file: the second would replace, or remove, what the first wrote."""
    ordered = sorted(outputs, key=lambda each: each[0].option.writes != "checkpoint")
    for number, (field, target) in enumerate(ordered):
        for other, place in ordered[:number]:
            if target and place and _same_new_file(target, place):
                raise BadInput(
                    f"expected {field.long} with another file than {other.long}, found {target} for both: name another "
                    "one"
                )


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or is no path at all
        return False


def _same_new_file(one: str, other: str) -> bool:
    """Whether both name one file, which need not exist yet. Standard output and devices may be named twice."""
    places = [Path(name) for name in (one, other)]
    try:
        if "-" in (one, other) or any(place.is_relative_to("/dev") or place.is_fifo() for place in places):
            return False
        return places[0].resolve() == places[1].resolve() or _same_file(one, other)
    except (OSError, ValueError, RuntimeError):  # no path at all, or links in a circle
        return False
