"""Classes of options: what fields accept, what they say, and the keywords of the functions that take them."""

import importlib
import typing
from dataclasses import dataclass

import pytest

from onehop import BadInput
from onehop.options import Options, fields_of, option


@dataclass(kw_only=True)
class Sample(Options):
    number: int = option(3, "A number.", low=1, high=2**31 - 1)
    share: float = option(0.5, "A share.", above=0)
    kind: str = option("a", "A kind.", choices=("a", "b"))
    extent: tuple[int, ...] | None = option(None, "Extents.", length=2)
    periodic: tuple[bool, ...] = option((True,), "Boundaries.")
    speeds: list[float] = option([], "Speeds.", separator=",")
    inner: object = None


FIELDS = {field.name: field for field in fields_of(Sample)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("number", "7", 7),
        ("share", "1e-3", 1e-3),
        ("kind", "b", "b"),
        ("extent", "8x16", (8, 16)),
        ("periodic", "1x0", (True, False)),
        ("speeds", "1,2.5", [1, 2.5]),
    ],
)
def test_values(name: str, text: str, value: object) -> None:
    assert FIELDS[name].read(text) == value


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("number", "0", "as a whole number from 1 to 2^31-1"),
        ("number", "2.5", "as a whole number from 1 to 2^31-1"),
        ("number", "9" * 5000, "as a whole number"),
        ("share", "0", "above 0 and finite"),
        ("share", "nan", "above 0 and finite"),
        ("kind", "c", "a or b"),
        ("extent", "8", "as 2 numbers of 1 or more"),
        ("extent", "8x0", "as 2 numbers of 1 or more"),
        ("periodic", "2", "as 1 (periodic) or 0"),
        ("speeds", "1,fast", "as a finite number"),
    ],
)
def test_wrong_values_say_what_is_expected(name: str, text: str, rule: str) -> None:
    with pytest.raises(BadInput) as told:
        FIELDS[name].read(text)
    assert str(told.value).startswith(f"expected --{name} {rule}")
    assert str(told.value).endswith(f", found {text!r}")


def test_wrong_keywords_are_those_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"^solve\(\) got an unexpected keyword argument 'nmber'"):
        Sample.of("solve", {"nmber": 3})
    with pytest.raises(TypeError, match=r"^halo\(\) missing a required keyword argument: 'extents'"):
        importlib.import_module("onehop").halo(grid=(2, 2))


def test_a_part_has_the_options_alone() -> None:
    assert "inner" not in FIELDS
    assert Sample(number=5).part(Sample)["number"] == 5
    assert typing.get_type_hints(Sample)["number"] is int
