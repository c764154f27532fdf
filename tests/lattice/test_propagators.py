"""Propagators in files: the layouts of Chroma and MILC byte by byte, conventions, and files that contradict them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gauge_fields import random_gauge
from gauge_files import grid_file, lime_file, lime_parts, openqcd_spinor_file
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import (
    Geometry,
    Staggered,
    Wilson,
    read_propagator,
    read_vectors,
    write_gauge,
    write_propagator,
)
from onehop.lattice.conventions import CONVENTIONS, convention
from onehop.lattice.files.layout import scidac_checksums
from onehop.lattice.files.propagators import Quark, read_columns, write_columns
from threads import run_threads

EXTENTS = (4, 2, 2, 4)
KAPPA, MASS = 0.11, 0.4
ALONE = Group.alone()
GEOMETRY = Geometry(EXTENTS)
SITES = int(np.prod(EXTENTS))


def points(*inner: int) -> np.ndarray:
    count = int(np.prod(inner))
    found = np.zeros((count, *EXTENTS[::-1], *inner), complex)
    found.reshape(count, -1, count)[:, 0] = np.eye(count)
    return found


@pytest.fixture(scope="module")
def wilson() -> np.ndarray:
    return Wilson(random_gauge(ALONE, EXTENTS), KAPPA).solve(points(4, 3)).solution


@pytest.fixture(scope="module")
def staggered() -> np.ndarray:
    solve = Staggered(random_gauge(ALONE, EXTENTS)).solve
    return np.stack([solve(one, MASS).solution for one in points(3)])


def record(parts: Any, name: str, number: int = 0) -> bytes:
    return [data for part, data in parts if part == name][number]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_what_is_written_is_read(
    wilson: np.ndarray, staggered: np.ndarray, tmp_path: Path, name: str
) -> None:
    for number, basis in enumerate((None, "fnal")):
        path = str(tmp_path / f"{number}.lime")
        how: dict[str, Any] = {"kappa": KAPPA, "convention": name, "spin_basis": basis}
        write_propagator(path, wilson, GEOMETRY, ALONE, antiperiodic=True, **how)
        read = read_propagator(path, GEOMETRY, ALONE, antiperiodic=True, **how)
        np.testing.assert_allclose(read, wilson, atol=1e-13)
    if name != "openqcd":
        path = str(tmp_path / "s.lime")
        write_propagator(path, staggered, GEOMETRY, ALONE, convention=name)
        read = read_propagator(path, GEOMETRY, ALONE, convention=name)
        np.testing.assert_allclose(read, staggered, atol=1e-15)


def test_the_layout_of_chroma(wilson: np.ndarray, staggered: np.ndarray, tmp_path: Path) -> None:
    """One record of Propagator[spin][source spin][colour][source colour] at each site, x fastest; 2 kappa."""
    path = tmp_path / "w.lime"
    write_propagator(str(path), wilson, GEOMETRY, ALONE, kappa=KAPPA, convention="chroma")
    parts = lime_parts(path.read_bytes())
    data = np.frombuffer(record(parts, "scidac-binary-data"), ">c16").reshape(SITES, 4, 4, 3, 3)
    for column in (0, 5, 10):
        expected = 2 * KAPPA * wilson[column].reshape(SITES, 4, 3)
        np.testing.assert_array_equal(data[:, :, column // 3, :, column % 3], expected)
    about = record(parts, "scidac-private-record-xml").decode()
    for element in ("<colors>3<", "<spins>4<", "<typesize>2304<", "<datacount>1<", "<precision>D<"):
        assert element in about
    suma = re.search(r"<suma>(\w+)<", record(parts, "scidac-checksum").decode())
    raw = np.frombuffer(record(parts, "scidac-binary-data"), ">f8").reshape(SITES, -1)
    assert suma is not None
    assert int(suma[1], 16) == scidac_checksums(raw, np.arange(SITES))[0]
    path = tmp_path / "s.lime"
    write_propagator(str(path), staggered, GEOMETRY, ALONE, convention="chroma", precision=32)
    found = np.frombuffer(record(lime_parts(path.read_bytes()), "scidac-binary-data"), ">c8")
    expected = np.moveaxis(staggered, 0, -1).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_the_layout_of_milc(wilson: np.ndarray, staggered: np.ndarray, tmp_path: Path) -> None:
    """A scalar source, then a Dirac fermion for each spin and colour, with (1 + gamma) in the hopping term."""
    path = tmp_path / "w.lime"
    write_propagator(str(path), wilson, GEOMETRY, ALONE, kappa=KAPPA, convention="milc", precision=32)
    parts = lime_parts(path.read_bytes())
    about = record(parts, "scidac-file-xml").decode()
    assert re.search(r"<usqcdPropFile>.*<type>USQCD_DiracFermion_ScalarSource_TwelveSink</type>", about)
    source = np.frombuffer(record(parts, "scidac-binary-data"), ">c8")
    np.testing.assert_array_equal(source, np.eye(1, SITES)[0])
    gamma5 = np.diag([1, 1, -1, -1])
    for column in (0, 4, 11):
        text = record(parts, "scidac-record-xml", 1 + column).decode()
        assert f"<spin>{column // 3}</spin><color>{column % 3}</color>" in text
        data = np.frombuffer(record(parts, "scidac-binary-data", 1 + column), ">c8").reshape(SITES, 4, 3)
        expected = np.einsum("st,xtc->xsc", gamma5, wilson[column].reshape(SITES, 4, 3))
        np.testing.assert_allclose(data, expected * gamma5[column // 3, column // 3], rtol=1e-6, atol=1e-12)
    path = tmp_path / "s.lime"
    write_propagator(str(path), staggered, GEOMETRY, ALONE, convention="milc")
    parts = lime_parts(path.read_bytes())
    assert "USQCD_ColorVector_ScalarSource_ThreeSink" in record(parts, "scidac-file-xml").decode()
    t, z, y, x = np.indices(EXTENTS[::-1])
    expected = (-1.0) ** (t * (x + y + z))[..., None] * staggered[2]
    data = np.frombuffer(record(parts, "scidac-binary-data", 3), ">c16")
    np.testing.assert_array_equal(data, expected.ravel())


def test_columns_in_another_order_with_sources_between(wilson: np.ndarray, tmp_path: Path) -> None:
    """As in files of pairs: each solution behind a scalar source on one time slice, which is skipped."""
    path = tmp_path / "w.lime"
    how: dict[str, Any] = {"kappa": KAPPA, "convention": "milc"}
    write_propagator(str(path), wilson, GEOMETRY, ALONE, **how)
    parts = lime_parts(path.read_bytes())
    head, fields = parts[:2], [parts[at : at + 4] for at in range(2, len(parts), 4)]
    private = fields[0][0][1].replace(b"<recordtype>0<", b"<recordtype>2<")
    slice_source = [(fields[0][0][0], private), fields[0][1], ("scidac-binary-data", b"\0" * 256)]
    turned = [part for field in fields[:0:-1] for part in (*slice_source, *field)]
    path.write_bytes(lime_file([*head, *turned]))
    np.testing.assert_allclose(read_propagator(str(path), GEOMETRY, ALONE, **how), wilson, atol=1e-13)
    path.write_bytes(lime_file([*head, *turned[7:], *turned[:7], *turned[:7]]))
    with pytest.raises(BadInput, match="expected each spin and colour of 12 sources once"):
        read_propagator(str(path), GEOMETRY, ALONE, **how)
    path.write_bytes(lime_file([*head, *fields[0]]))
    with pytest.raises(BadInput, match="found only scalar sources"):
        read_propagator(str(path), GEOMETRY, ALONE, **how)


def test_a_file_of_chroma_says_what_it_is(wilson: np.ndarray, tmp_path: Path) -> None:
    """The header as Chroma nests it: the action, its kappa and boundary within the propagator."""
    path = tmp_path / "w.lime"
    write_propagator(str(path), wilson, GEOMETRY, ALONE, kappa=KAPPA, convention="chroma")
    header = (
        b"<Propagator><ForwardProp><FermionAction><FermAct>WILSON</FermAct><Kappa>0.11</Kappa><FermionBC><boundary>"
        b"1 1 1 -1</boundary></FermionBC></FermionAction></ForwardProp><PropSource></PropSource></Propagator>"
    )
    parts = [
        (name, header if name == "scidac-record-xml" else data)
        for name, data in lime_parts(path.read_bytes())
    ]
    path.write_bytes(lime_file(parts))

    def read(**changed: Any) -> np.ndarray:
        how: dict[str, Any] = {"kappa": KAPPA, "convention": "chroma", "antiperiodic": True}
        return read_propagator(str(path), GEOMETRY, ALONE, **how | changed)

    np.testing.assert_allclose(read(), wilson, atol=1e-13)
    with pytest.raises(
        BadInput, match=r"expected numbers in the convention milc, found 'chroma' in its header"
    ):
        read(convention="milc")
    with pytest.raises(BadInput, match=r"expected kappa 0\.12, found 0\.11 in its header"):
        read(kappa=0.12)
    with pytest.raises(BadInput, match=r"expected the boundary 1 in time, found '-1' in its header"):
        read(antiperiodic=False)
    with pytest.raises(BadInput, match=r"found USQCD_D3_DiracPropagator with 3 colours"):
        read(kappa=None)


def test_a_file_of_milc_says_what_it_is(staggered: np.ndarray, tmp_path: Path) -> None:
    """The lines with which MILC describes a field, as in its sample of a solution."""
    path = tmp_path / "s.lime"
    write_propagator(str(path), staggered, GEOMETRY, ALONE, convention="quda")
    about = (
        b"layout.boundary_conditions space: periodic time: antiperiodic\nasqtad_arg.sign MILC-convention\n"
    )
    changed = {"scidac-file-xml": about, "scidac-record-xml": b"answer = M^-1 source\0"}
    parts = [(name, changed.get(name, data)) for name, data in lime_parts(path.read_bytes())]
    path.write_bytes(lime_file(parts))
    how: dict[str, Any] = {"convention": "milc"}
    assert read_propagator(str(path), GEOMETRY, ALONE, antiperiodic=True, **how).shape == staggered.shape
    with pytest.raises(BadInput, match=r"expected the boundary 1 in time, found '-1'"):
        read_propagator(str(path), GEOMETRY, ALONE, antiperiodic=False, **how)
    with pytest.raises(BadInput, match=r"expected numbers in the convention onehop, found 'milc'"):
        read_propagator(str(path), GEOMETRY, ALONE)


def test_contradictions_and_wrong_shapes_are_refused(
    wilson: np.ndarray, staggered: np.ndarray, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.lime")
    write_propagator(path, wilson, GEOMETRY, ALONE, kappa=KAPPA, spin_basis="ukqcd", antiperiodic=False)

    def refused(match: str, call: Callable[..., Any], *args: Any, **how: Any) -> None:
        with pytest.raises(BadInput, match=match):
            call(*args, GEOMETRY, ALONE, **how)

    refused("the spin basis degrand-rossi, found 'ukqcd'", read_propagator, path, kappa=KAPPA)
    for name in set(CONVENTIONS) - {"onehop"}:
        how = {"kappa": KAPPA, "convention": name, "spin_basis": "ukqcd"}
        refused(f"the convention {name}, found 'onehop'", read_propagator, path, **how)
    refused(
        "boundary -1 in time",
        read_propagator,
        path,
        kappa=KAPPA,
        spin_basis="ukqcd",
        antiperiodic=True,
    )
    refused("expected 1 colour vectors per site", read_vectors, path)
    refused("expected the 12 columns", write_propagator, "x.lime", wilson[:3], kappa=KAPPA)
    refused("expected the 3 columns", write_propagator, "x.lime", wilson)
    refused(
        "with staggered quarks, found openqcd", write_propagator, "x.lime", staggered, convention="openqcd"
    )
    refused("exists already", write_propagator, path, staggered)
    refused("expected a precision of 32 or 64", write_propagator, "x.lime", staggered, precision=16)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Kappa", "0.12"),
        ("Kappa", "nan"),
        ("boundary", "1 1 1 1"),
        ("convention", "milc"),
        ("spin_basis", "chiral"),
    ],
)
def test_each_record_says_what_the_first_one_says(
    wilson: np.ndarray, tmp_path: Path, name: str, other: str
) -> None:
    path, how = tmp_path / "prop.lime", {"kappa": KAPPA, "convention": "quda", "antiperiodic": True}
    write_propagator(str(path), wilson, GEOMETRY, ALONE, **how)
    parts = lime_parts(path.read_bytes())
    number = max(at for at, (part, _) in enumerate(parts) if part == "scidac-record-xml")
    changed = re.sub(rf"<{name}>[^<]*".encode(), f"<{name}>{other}".encode(), parts[number][1])
    parts[number] = ("scidac-record-xml", changed)
    path.write_bytes(lime_file(parts))
    with pytest.raises(BadInput, match=rf"prop\.lime: expected .* found '?{other.split()[0]}.*in its header"):
        read_propagator(str(path), GEOMETRY, ALONE, **how)


def test_ranks_write_and_read_the_same_file(wilson: np.ndarray, tmp_path: Path) -> None:
    path = str(tmp_path / "w.lime")

    def work(group: Group) -> Any:
        geometry = Geometry(EXTENTS, (1, 1, 1, 2), ranks=2)
        mine = wilson[(slice(None), *geometry.block_slices(group.rank))]
        write_propagator(path, mine, geometry, group, kappa=KAPPA, convention="quda")
        return read_propagator(path, geometry, group, kappa=KAPPA, convention="quda") - mine

    for found in run_threads(2, work):
        assert abs(found).max() < 1e-14
    whole = read_propagator(path, GEOMETRY, ALONE, kappa=KAPPA, convention="quda")
    np.testing.assert_allclose(whole, wilson, atol=1e-14)


def test_twice_the_dagger_of_a_basis_is_a_spinor_of_onehop(wilson: np.ndarray) -> None:
    for name in CONVENTIONS:
        chosen = convention(name, "fnal")
        np.testing.assert_allclose(chosen.spinors_of_onehop(chosen.spinors(wilson)), wilson, atol=1e-14)


def solve(*words: object) -> None:
    assert main(["lattice", "solve", *map(str, words), "--tolerance", "1e-12"]) == 0


@pytest.mark.parametrize("name", ["milc", "chroma", "openqcd"])
def test_the_command_writes_and_reads_propagators_in_a_convention(tmp_path: Path, name: str) -> None:
    """A propagator as a source gives the second power of the inverse, in the spin basis of the program."""
    gauge = random_gauge(ALONE, EXTENTS)
    cfg, once, twice, one = (str(tmp_path / f"{stem}.lime") for stem in ("cfg", "once", "twice", "one"))
    write_gauge(cfg, gauge)
    common = (cfg, "--action", "clover", "--csw", 1.2, "--kappa", KAPPA, "--convention", name)
    common = (*common, "--output-precision", "double")
    solve(*common, "--source", "propagator", "-o", once)
    wilson = Wilson(gauge, KAPPA, csw=1.2)
    ours = wilson.solve(points(4, 3), tolerance=1e-12).solution
    found = read_propagator(once, GEOMETRY, ALONE, kappa=KAPPA, convention=name, antiperiodic=True)
    np.testing.assert_allclose(found, ours, atol=1e-10)
    solve(*common, "--source-file", once, "-o", twice)
    again = wilson.solve(ours, tolerance=1e-12).solution
    factor = convention(name).wilson_factor(KAPPA)
    found = read_propagator(twice, GEOMETRY, ALONE, kappa=KAPPA, convention=name)
    np.testing.assert_allclose(found, factor * again, atol=1e-10)
    solve(*common, "--spin", 2, "--colour", 1, "-o", one)
    quark = Quark(convention(name), wilson=True, kappa=KAPPA)
    column = read_columns(one, GEOMETRY, ALONE, quark)
    np.testing.assert_allclose(column[0], convention(name).propagator(ours, KAPPA)[7], atol=1e-10)
    assert (
        main(["lattice", "solve", *map(str, common[:-4]), "--convention", "quda", "--source-file", once]) == 2
    )


def test_the_command_writes_staggered_propagators_of_grid(staggered: np.ndarray, tmp_path: Path) -> None:
    cfg, prop, same = (str(tmp_path / f"{stem}.lime") for stem in ("cfg", "prop", "same"))
    write_gauge(cfg, random_gauge(ALONE, EXTENTS))
    common = (cfg, "--mass", MASS, "--source", "propagator", "--output-precision", "double")
    for name in ("grid", "milc", "quda"):
        solve(*common, "--convention", name, "-o", prop, "--overwrite")
        found = read_propagator(prop, GEOMETRY, ALONE, convention=name, antiperiodic=True)
        np.testing.assert_allclose(found, staggered, atol=1e-9)
    solve(*common, "--phases", "milc", "-o", same)
    found = read_propagator(same, GEOMETRY, ALONE, convention="milc")
    np.testing.assert_allclose(found, staggered, atol=1e-9)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("--mass 0.1 --convention milc --phases milc", "--phases contradicts --convention milc"),
        ("--mass 0.1 --convention openqcd", "with staggered quarks, found openqcd"),
        ("--mass 0.1 --spin-basis ukqcd", "--spin-basis is for --action wilson"),
        ("--mass 0.1 --source propagator --colour 1", "--colour is for one column"),
        ("--mass 0.1 --mass 0.2 --source propagator", "expected one --mass with --source propagator"),
        ("--mass 0.1 --shift 1 --convention milc", "--convention is for M x = b"),
        ("--action wilson --mass 0.1 --source-file a --spin 1", "--spin is for a point source"),
        ("--action wilson --mass 0.1 --convention cps", "expected --convention onehop, milc"),
    ],
)
def test_options_that_contradict_a_convention(
    capsys: pytest.CaptureFixture[str], words: str, match: str
) -> None:
    assert main(["lattice", "solve", "no.lime", *words.split()]) == 2
    assert match in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("name", "kappa"), [("chroma", KAPPA), ("milc", KAPPA), ("milc", None)])
def test_altered_headers_give_an_error_or_the_same_numbers(
    tmp_path: Path, name: str, kappa: float | None
) -> None:
    geometry, path = Geometry((2, 2, 2, 2)), tmp_path / "p.lime"
    inner = (3,) if kappa is None else (4, 3)
    columns = np.random.default_rng(1).normal(size=(int(np.prod(inner)), 2, 2, 2, 2, *inner)) + 0j
    write_propagator(str(path), columns, geometry, ALONE, kappa=kappa, convention=name)
    parts = lime_parts(path.read_bytes())
    refused = 0
    for at, (record_name, data) in enumerate(parts[:10]):
        elements = re.finditer(rb">([^<]*)<", data) if data.startswith(b"<?xml") else ()
        for element in elements:
            for value in (b"", b"-1", b"3", b"x", b"nan", b"9" * 999):
                changed = data[: element.start(1)] + value + data[element.end(1) :]
                path.write_bytes(lime_file([*parts[:at], (record_name, changed), *parts[at + 1 :]]))
                try:
                    found = read_propagator(
                        str(path), geometry, ALONE, kappa=kappa, convention=name, antiperiodic=True
                    )
                except BadInput:
                    refused += 1
                else:
                    np.testing.assert_allclose(found, columns, atol=1e-13)
    assert refused > 50


def test_spinor_fields_of_openqcd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(8)
    field = random.normal(size=(*EXTENTS[::-1], 4, 6)).view(complex)
    source, quark = tmp_path / "b.sfld", Quark(convention("openqcd"), wilson=True)
    source.write_bytes(openqcd_spinor_file(field))

    def block(group: Group) -> np.ndarray:
        geometry = Geometry(EXTENTS, (2, 1, 1, group.size // 2))
        found = read_columns(str(source), geometry, group, quark)
        write_columns(str(tmp_path / "again.sfld"), found, geometry, group, quark)
        np.testing.assert_array_equal(found[0], field[geometry.block_slices(group.rank)])

    run_threads(4, block)
    again, first = ((tmp_path / name).read_bytes() for name in ("again.sfld", "b.sfld"))
    assert (again[:16], again[24:]) == (first[:16], first[24:])  # the norm between them is a sum in any order
    gauge = random_gauge(ALONE, EXTENTS)
    write_gauge(str(tmp_path / "cfg.lime"), gauge)
    words = ["lattice", "solve", str(tmp_path / "cfg.lime"), "--action", "wilson", "--kappa", str(KAPPA)]
    words += ["--convention", "openqcd", "--source-file", str(source), "-o"]
    assert main([*words, str(tmp_path / "x.sfld")]) == 0
    solution = read_columns(str(tmp_path / "x.sfld"), GEOMETRY, ALONE, quark)[0]
    theirs = convention("openqcd")
    applied = Wilson(gauge, KAPPA).apply(theirs.spinors_of_onehop(solution)) / (2 * KAPPA)
    np.testing.assert_allclose(theirs.spinors(applied), field, atol=1e-8)
    for wrong, says in (
        (openqcd_spinor_file(field, norm=3.0), "expected spinors with the squared norm 3 of its header"),
        (openqcd_spinor_file(field, norm=np.inf), "expected spinors with the squared norm inf"),
        (openqcd_spinor_file(field * np.nan), "expected spinors with the squared norm nan"),
        (openqcd_spinor_file(field)[:-1], "bytes, found the extents 4x2x2x4"),
        (openqcd_spinor_file(field.swapaxes(0, 1)), "found the extents 4x2x4x2"),
        (b"", "found the extents 0x0x0x0 and 0 bytes"),
    ):
        source.write_bytes(wrong)
        with pytest.raises(BadInput, match=says):
            read_columns(str(source), GEOMETRY, ALONE, quark)
    words[words.index("openqcd")] = "chroma"
    assert main([*words, str(tmp_path / "y.sfld")]) == 2
    assert "with --convention openqcd, which openQCD's spinor fields have" in capsys.readouterr().err


def test_fields_of_grid(wilson: np.ndarray, tmp_path: Path) -> None:
    path, how = tmp_path / "g.lime", {"kappa": KAPPA, "convention": "grid"}
    theirs = 2 * KAPPA * wilson
    spinors = [("SpinVector4_ColourVector3", one) for one in theirs]
    whole = np.moveaxis(theirs.reshape(4, 3, *theirs.shape[1:]), (0, 1), (-3, -1))
    for fields in (spinors, [("SpinMatrix4_ColourMatrix3", whole)]):
        path.write_bytes(grid_file(fields, "D"))
        found = read_propagator(str(path), GEOMETRY, ALONE, **how)
        np.testing.assert_allclose(found, wilson, rtol=1e-14, atol=1e-14)
    path.write_bytes(grid_file(spinors, "F"))
    np.testing.assert_allclose(read_propagator(str(path), GEOMETRY, ALONE, **how), wilson, atol=1e-6)
    path.write_bytes(
        path.read_bytes().replace(np.array(theirs[3, 0, 0, 0, 0, 1, 0].real, ">f4").tobytes(), b"\0\0\0\1", 1)
    )
    with pytest.raises(BadInput, match="checksum"):
        read_propagator(str(path), GEOMETRY, ALONE, **how)
