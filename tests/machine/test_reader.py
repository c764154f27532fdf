"""Machine files: those that are installed, and what the reader says about wrong ones."""

import json
import pickle
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import (
    Machine,
    figures_of,
    load_machine,
    machine_names,
    parse_machine,
    time_tables_of,
)

GOOD = """\
title = "two levels"

[sources]
paper = "A paper"

[memory]
bandwidth = { value = 1e11, basis = "published", source = "paper" }
size = { value = 1e9, basis = "published", source = "paper" }

[[level]]
name = "system"
of = "host"
routing = "torus"
extents = [4, 4]
topology = { basis = "published", source = "paper" }
latency = { value = 1e-6, basis = "measured", source = "paper", note = "Fig. 3" }
overhead = { value = 1e-7, basis = "guessed", source = "paper" }
bandwidth = { value = 1e10, basis = "published", source = "paper" }

[[level]]
name = "host"
of = "processor"
routing = "all_to_all"
extents = [2]
topology = { basis = "published", source = "paper" }
latency = { value = 1e-7, basis = "guessed", source = "paper" }
overhead = { value = 1e-7, basis = "guessed", source = "paper" }
bandwidth = { value = 1e10, basis = "guessed", source = "paper" }
"""


def complaint(text: str) -> str:
    with pytest.raises(BadInput) as found:
        parse_machine(text, "mine", "mine.toml")
    return str(found.value)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_levels_are_ordered_by_their_members_not_by_the_file() -> None:
    machine = parse_machine(GOOD, "mine")
    assert [level.name for level in machine.levels] == ["host", "system"]
    assert machine.processors == 32
    assert machine.levels[1].latency.source == "A paper; Fig. 3"
    assert machine.levels[1].latency.basis == "measured"
    assert machine.levels[1].topology == "published: A paper"
    assert Machine.from_json(machine.to_json()) == machine
    assert pickle.loads(pickle.dumps(machine)) == machine


MINUS = '{ value = -1, basis = "guessed", source = "paper" }'
# What is replaced, by what, and the error. Its line is the last one of the new text, or that of a part, or unsaid.
WRONG: list[tuple[str, str, str] | tuple[str, str, str, str | None]] = [
    ('routing = "torus"', 'routing = "ring"', "expected a routing"),
    ("extents = [4, 4]", "extents = [4, -4]", "found -4"),
    ("extents = [4, 4]", "extents = [4, 0]", "found 0"),
    ("extents = [4, 4]", 'extents = "4x4"', "an array"),
    ("extents = [4, 4]", "extents = [4, 4]\ntaper = [0.5]", "this is no fat tree"),
    ("extents = [4, 4]", "extents = [4, 4]\nlinks = 0", "of links of at least 1, or no key"),
    ("extents = [4, 4]", "extents = [4, 4]\ninterfaces = 0", "of interfaces of at least 1"),
    ("extents = [4, 4]", "extents = [4, 4]\ninterfaces = 6", "", None),
    ("value = 1e-6", "value = -1e-6", "found -1e-06"),
    ("value = 1e-6", "value = nan", "a finite number"),
    ("value = 1e-6", "value = 1" + "0" * 400, "a finite number"),
    ("value = 1e-6", "value = 1e300", "0 or a number from 1e-30 to 1e+30"),
    ("value = 1e-6", 'value = "fast"', "a number"),
    # NaN and infinity, for which JSON has no words, where no number belongs.
    ('routing = "torus"', "routing = nan", "expected a routing (one of: all_to_all, mesh, "),
    ('basis = "measured"', "basis = -inf", "expected a basis (one of: "),
    ("value = 1e-6", "value = 1e-6, unit = nan", 'the keys value, basis, source, note, found "unit"'),
    ('basis = "measured"', 'basis = "believed"', "expected a basis (one of: published, measured, guessed)"),
    ('"measured", source = "paper"', '"measured"', 'the key "source", found none'),
    ('"measured", source = "paper"', '"measured", source = "book"', 'found "book"'),
    ("latency = { value = 1e-6", "lateness = { value = 1e-6", 'found "lateness"'),
    ("overhead = { value = 1e-7", "# ", 'the key "overhead", found none', "[[level]]"),
    ('of = "host"', 'of = "node"', 'found "node"'),
    ('of = "host"', 'of = "processor"', "one level whose members are processor", None),
    ('of = "processor"', 'of = "system"', "a loop: system of host of system", None),
    ('name = "host"', 'name = "system"', '"system" twice', None),
    ("size = {", "# {", 'the key "size", found none', "[memory]"),
    ("[memory]", "[memories]", 'found "memories"', None),
    ("[memory]", "[arithmetic]\nhalf = 1\n[memory]", 'found "half"', "half"),
    ("[memory]", f"[arithmetic]\nsingle = {MINUS}\n[memory]", "found -1", "single"),
    ('title = "two levels"', "title = 3", "a text, found 3"),
    ('title = "two levels"', "title = ", "expected TOML"),
]


@pytest.mark.parametrize("case", WRONG)
def test_every_error_names_the_line(case: tuple[str, ...]) -> None:
    old, new, expected, *parts = case
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    message = complaint(text)
    assert message.startswith("mine.toml, line ")
    assert expected in message
    if parts != [None]:
        line = line_of(text, parts[0]) if parts else line_of(text, new) + new.count("\n")
        assert message.startswith(f"mine.toml, line {line}: "), message


def test_lines_of_tables_in_any_form() -> None:
    """Brackets in strings and in lists open no table; a table may have the form of a header, with quotes or dots."""
    memory = GOOD[GOOD.index("[memory]") : GOOD.index("[[level]]")]
    dotted = """["memory"]
[memory.bandwidth]
value = 1e11
basis = "published"
source = "paper"
[memory.size]
value = 1e9
basis = "published"
source = "paper"

"""
    text = GOOD.replace('"A paper"', '"""\nA [paper]\n[level]\nname = 3\n"""  # """')
    text = text.replace(memory, dotted).replace("extents = [4, 4]", "extents = [\n  4,\n  4\n]")
    machine = parse_machine(text, "mine")
    assert (machine.memory.value, machine.processors) == (1e9, 32)
    for old, new, part in (
        ("1e11", "nan", "[memory.bandwidth]"),
        ("1e9", "-1", "[memory.size]"),
        ("  4,\n", "  0,\n", "extents ="),
        ('of = "host"', 'of = "node"', "of = "),
    ):
        wrong = text.replace(old, new, 1)
        assert complaint(wrong).startswith(f"mine.toml, line {line_of(wrong, part)}: "), old


def test_injection_through_no_interface() -> None:
    injection = 'injection = { value = 4e9, basis = "published", source = "paper" }'
    text = GOOD.replace("extents = [4, 4]", f"extents = [4, 4]\ninterfaces = 0\n{injection}", 1)
    expected = f"mine.toml, line {line_of(text, 'interfaces')}: level[0].interfaces: expected a whole number"
    assert complaint(text).startswith(expected)
    assert complaint(text).endswith("of at least 1, or no key, found 0")
    assert parse_machine(text.replace("interfaces = 0\n", ""), "mine").levels[1].interfaces == 0


def test_an_interface_without_injection_and_a_level_of_nothing() -> None:
    text = GOOD.replace("extents = [4, 4]", "extents = [4, 4]\ninterfaces = 6", 1)
    assert "the bandwidth that 6 interfaces share" in complaint(text)
    assert 'the key "level", found none' in complaint(GOOD[: GOOD.index("[[level]]")])
    assert "expected TOML" in complaint("[" * 5000)
    assert "expected TOML" in complaint('title = "never ends')


def test_every_installed_machine_can_be_read_and_every_number_has_a_source() -> None:
    names = machine_names()
    assert {"mira", "fugaku", "perlmutter", "a100-nvlink", "genesis", "h100", "frontier"} < set(names)
    assert len(names) >= 11
    for name in names:
        machine = load_machine(name)
        assert machine.name == name
        for _, key, figure in figures_of(machine):
            assert figure.source, (name, key)
            assert (figure.source.startswith("no source")) <= (figure.basis == "guessed"), (name, key, figure)
            assert figure.source != "no source", (name, key, "a guess says what it rests on")
        assert all(level.topology for level in machine.levels)


PAIRS = "[[64, 1e-8], [4096, 2e-7]]"
TABLES = GOOD.replace(
    "[[level]]",
    f'copies = {{ points = {PAIRS}, basis = "measured", source = "paper", note = "warm" }}\n'
    'updates = { points = [[64, 2e-8], [4096, 3e-7]], basis = "measured", source = "paper" }\n'
    'packed_pieces = { points = [[8, 1e-9], [64, 2e-9]], basis = "measured", source = "paper" }\n'
    'packed_piece = { value = 1e-9, basis = "measured", source = "paper" }\n\n[[level]]',
    1,
) + (
    'one_way = { points = [[8, 2.5e-7], [65536, 1e-5]], basis = "measured", source = "paper" }\n'
    'both_ways = { points = [[8, 3e-7], [65536, 2e-5]], basis = "measured", source = "paper" }\n'
)


def test_times_by_size_are_tables_of_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = parse_machine(TABLES, "mine")
    assert machine.copies.points == ((64, 1e-8), (4096, 2e-7))
    assert (machine.copies.basis, machine.copies.source) == ("measured", "A paper; warm")
    assert machine.updates.points == ((64, 2e-8), (4096, 3e-7))
    assert machine.levels[0].both_ways.seconds(8) == 3e-7
    assert machine.levels[1].one_way.points == ()
    assert machine.packed_piece.value == 1e-9
    assert machine.packed_pieces.points == ((8, 1e-9), (64, 2e-9))
    assert Machine.from_json(machine.to_json()) == machine
    assert [name for _, name, _ in time_tables_of(machine)] == [
        "one_way",
        "both_ways",
        "copies",
        "updates",
        "packed_pieces",
    ]
    file = tmp_path / "mine.toml"
    file.write_text(TABLES)
    assert main(["machines", str(file)]) == 0
    shown = capsys.readouterr().out
    assert letters("both ways of host, measured: A paper") in letters(shown)
    assert "64 KiB" in shown


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (PAIRS, "[[64, 1e-8, 3]]", "memory.copies.points[0]: expected a pair of bytes and seconds"),
        (PAIRS, "7", "memory.copies.points: expected an array"),
        (PAIRS, '[[64, "x"]]', "memory.copies.points[0][1]: expected a number"),
        (PAIRS, "[[64, 1e-8]]", "memory.copies: expected 2 to 64 points, found 1"),
        ("[4096, 2e-7]]", "[4096, 2e-9]]", "memory.copies: expected finite bytes above 0 that ascend"),
        ("[[64, 2e-8], ", "[[64.5, 2e-8], ", "memory.updates: expected whole numbers of bytes, found 64.5"),
        ("[[64, 2e-8], ", "[[64, 0], ", "memory.updates: expected finite bytes above 0"),
        ("one_way = {", "one_wey = {", "level[1]: expected only the keys"),
        ("[[8, 3e-7]", "[[-8, 3e-7]", "level[1].both_ways: expected finite bytes"),
        ("packed_piece = { value = 1e-9", "packed_piece = { value = -1", "packed_piece: expected a finite"),
    ],
)
def test_wrong_tables_are_refused(old: str, new: str, message: str) -> None:
    assert old in TABLES
    found = complaint(TABLES.replace(old, new))
    assert found.startswith("mine.toml, line ")
    assert message in found.replace("one_wey: ", ": ").replace("].: ", "]: ")


def test_own_files_and_wrong_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    assert load_machine(file).name == "mine"
    assert load_machine(str(file)) == load_machine(file)
    with pytest.raises(BadInput, match=r"expected a machine \(a100"):
        load_machine("mirra")
    with pytest.raises(BadInput, match="No such file"):
        load_machine(tmp_path / "none.toml")
    file.write_bytes(b'# a comment\ntitle = "\xff"')
    with pytest.raises(BadInput, match=r"mine.toml, line 2: expected text in UTF-8"):
        load_machine(file)


def test_the_command_lists_and_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "list.json"
    assert main(["machines", "--json", str(out)]) == 0
    assert [one["name"] for one in json.loads(out.read_text())["machines"]] == machine_names()
    assert main(["machines", "mira", "--json", str(out)]) == 0
    assert Machine.from_json(out.read_text()) == load_machine("mira")
    assert "1.8 GB/s" in capsys.readouterr().out
    assert main(["machines", "nowhere"]) == 2


def letters(text: str) -> str:
    """Return a text without the lines of a table and without the places where it breaks lines."""
    return "".join(one for one in text if one.isalnum())


def test_the_command_shows_every_source_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for name in machine_names():
        assert main(["machines", name]) == 0
        shown = letters(capsys.readouterr().out)
        machine = load_machine(name)
        for _, key, figure in figures_of(machine):
            assert letters(figure.basis + figure.source) in shown, (name, key)
        for level in machine.levels:
            assert letters(level.topology) in shown, (name, level.name)


def test_memory_is_shown_as_its_source_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    for name, expected in (("perlmutter", " 40 GB "), ("fugaku", " 8 GiB ")):
        assert main(["machines", name]) == 0
        assert expected in capsys.readouterr().out
