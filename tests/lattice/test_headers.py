"""Gauge files with contradictory headers or with NaN links are refused, with the values and the place."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gauge_files import (
    EXTENTS,
    ildg_file,
    lime_file,
    lime_parts,
    milc_file,
    nersc_file,
    openqcd_file,
    scidac_file,
)
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import (
    Gauge,
    Geometry,
    read_gauge,
    read_links,
    read_vectors,
    write_gauge,
    write_vectors,
)
from threads import refused_on


def rebuilt(path: Path, pattern: str, text: str) -> None:
    """Replace every match of the pattern in the texts of a LIME file; at least one must match."""
    parts = lime_parts(path.read_bytes())
    texts = [
        name for name, data in parts if not name.endswith("binary-data") and re.search(pattern.encode(), data)
    ]
    assert texts
    changed = [
        (name, re.sub(pattern.encode(), text.encode(), data) if name in texts else data)
        for name, data in parts
    ]
    path.write_bytes(lime_file(changed))


CONTRADICTIONS = [
    (r"<dims>4 2 6 4 <", "<dims>2 4 6 4 <", r"<lx>, <ly>, <lz>, <lt> are 4x2x6x4, but <dims> is 2x4x6x4"),
    (r"<dims>4 2 6 4 <", "<dims>4 2 6 <", r"4x2x6x4, but <dims> is 4x2x6;"),
    (r"<lx>4</lx><ly>2<", "<lx>2</lx><ly>4<", r"are 2x4x6x4, but <dims> is 4x2x6x4"),
    (
        r"<plaq>[^<]*<",
        "<plaq>1.799912345678<",
        r"plaquette 1\.799912346 of its .* header, found .* from the links, which differs by more than 1e-07",
    ),
    (r"<plaq>[^<]*<", "<plaq>nan<", "plaquette nan"),
    (r"<plaq>[^<]*<", "<plaq>1.2.3<", "expected numbers in its header"),
    (r"<linktr>[^<]*<", "<linktr>0.5123456789<", r"link trace 0\.5123456789 of its .* header"),
    (r"<precision>D<", "<precision>F<", "expected the precision D .* for 64 bits .* found F"),
    (r"<precision>64<", "<precision>32<", "expected the precision F .* for 32 bits .* found D"),
    (r"USQCD_D3_", "USQCD_F3_", "letter of the datatype D .* found F"),
    (r"<datacount>4<", "<datacount>1<", "<datacount> 4 and <colors> 3 .* found 1 and 3"),
    (r"<colors>3<", "<colors>2<", "<datacount> 4 and <colors> 3 .* found 4 and 2"),
    (r"<typesize>144<", "<typesize>72<", "typesize x datacount 576 .* found 288"),
    (r"<typesize>144<", "<typesize>many<", "expected numbers as <typesize>"),
    ("<spacetime>4<", "<spacetime>3<", "<spacetime> is '3', but <dims> has 4"),
    ("<volfmt>0<", "<volfmt>1<", "whole field in one file"),
    ("<dims>", "<dims", "element <dims> that is not complete"),
    ("<recordtype>0<", "<recordtype>2<", "a field on all sites"),
    ("ColorMatrix", "ColorVector", "kind of field ColorMatrix .* found ColorVector"),
    ("<plaq>", "<plaq", "element <plaq> that is not complete"),
    ("<linktr>", "<ln>D</in", "element <linktr> that is not complete"),
    ("<sumb>", "<x>", "element <sumb> that is not complete"),
    ("sumb", "sumc", "found no sumb"),
    (r"su3gauge", "u1gauge", "expected <field> su3gauge .* found u1gauge"),
]


@pytest.mark.parametrize(("pattern", "text", "says"), CONTRADICTIONS)
def test_an_ildg_header_that_contradicts_itself(
    gauge: Gauge, tmp_path: Path, pattern: str, text: str, says: str
) -> None:
    path = tmp_path / "cfg.lime"
    write_gauge(str(path), gauge)
    rebuilt(path, pattern, text)
    with pytest.raises(BadInput, match=says):
        read_gauge(str(path))
    refused_on(2, says, lambda group: read_gauge(str(path), group, (1, 1, 1, 2)))


def test_averages_of_either_normalization_and_with_few_digits(gauge: Gauge, tmp_path: Path) -> None:
    path, plaquette, trace = tmp_path / "cfg.lime", gauge.plaquettes().all, gauge.link_trace()
    for scale in (1, 3):
        for digits in ("%.12g", "%e"):
            write_gauge(str(path), gauge, overwrite=True)
            rebuilt(path, r"<plaq>[^<]*<", f"<plaq>{digits % (scale * plaquette)}<")
            rebuilt(path, r"<linktr>[^<]*<", f"<linktr>{digits % (scale * trace)}<")
            assert read_gauge(str(path))[1].plaquettes.all == plaquette
    for word in ("missing", ""):
        rebuilt(path, r"<plaq>[^<]*<", f"<plaq>{word}<")
        read_gauge(str(path))
    rebuilt(path, r"<plaq>[^<]*<", f"<plaq>{2 * plaquette}<")
    with pytest.raises(BadInput, match="expected the plaquette"):
        read_gauge(str(path))
    # A header with six digits may be off by half a unit in the last digit, but not by a whole one.
    file = tmp_path / "cfg.nersc"
    for change, good in ((0, True), (1.6e-6, False)):
        data = nersc_file(gauge.links, ">d", 3, plaquette)
        data = re.sub(rb"PLAQUETTE = [0-9.]+", b"PLAQUETTE = %.6f" % (plaquette + change), data)
        file.write_bytes(data)
        if good:
            read_gauge(str(file))
        else:
            with pytest.raises(BadInput, match="expected the plaquette"):
                read_gauge(str(file))


def test_scidac_records_that_contradict_themselves(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    for pattern, text, says in (
        (r"<typesize>72<", "<typesize>36<", "typesize x datacount 288 .* found 144"),
        (r"<precision>F<", "<precision>D<", "contradicts itself"),
    ):
        path.write_bytes(scidac_file(gauge.links, ">"))
        rebuilt(path, pattern, text)
        with pytest.raises(BadInput, match=says):
            read_gauge(str(path))
    geometry, group = Geometry((4, 4, 4, 4), ranks=1), Group.alone()
    vectors = tmp_path / "x.lime"
    for pattern, text, says in (
        ("<typesize>24<", "<typesize>48<", "typesize x datacount 24 .* found 48"),
        ("USQCD_F3", "USQCD_D3", "letter of the datatype F .* found D"),
    ):
        write_vectors(str(vectors), np.ones((1, 4, 4, 4, 4, 3)), geometry, group, overwrite=True)
        rebuilt(vectors, pattern, text)
        with pytest.raises(BadInput, match=says):
            read_vectors(str(vectors), geometry, group)


def test_nersc_and_milc_headers_that_contradict_the_file(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    whole = nersc_file(gauge.links, ">d", 3, gauge.plaquettes().all)
    for data, says in (
        (whole.replace(b"PLAQUETTE", b"LINK_TRACE"), "expected the link trace"),
        (whole.replace(b"CHECKSUM", b"DIMENSION_2 = 4\nCHECKSUM"), "DIMENSION_2 is '2' and '4'"),
        (whole.replace(b"IEEE64", b"IEEE32"), "3 rows of 32-bit numbers, found"),
        (whole.replace(b"_3x3", b""), "2 rows of 64-bit numbers, found"),
        (whole + bytes(8), "expected [0-9]+ bytes for the lattice"),
        (milc_file(gauge.links, "<") + bytes(4), "expected [0-9]+ bytes for the lattice"),
        (openqcd_file(gauge.links, "<", gauge.plaquettes().all + 0.01), "expected the plaquette"),
    ):
        path.write_bytes(data)
        with pytest.raises(BadInput, match=says):
            read_gauge(str(path))


@pytest.mark.parametrize("value", [np.nan, np.inf, complex(0, -np.inf)])
def test_links_that_are_not_finite_are_refused_with_the_first_place(
    gauge: Gauge, tmp_path: Path, value: complex
) -> None:
    links = gauge.links
    links[3, 4, 1, 0, 0, 0, 0] = value  # (x, y, z, t) = (0, 1, 4, 3)
    links[1, 5, 0, 2, 3, 2, 1] = value  # (2, 0, 5, 1), which is earlier in the file
    links[1, 5, 0, 2, 2, 2, 1] = value
    path = tmp_path / "cfg"
    says = r"finite links.*\(x, y, z, t\) = \(2, 0, 5, 1\) in direction z"
    files = (
        milc_file(links, "<"),
        nersc_file(links, ">d", 3),
        ildg_file(links, ">"),
        scidac_file(links, ">"),
    )
    for data in (*files, openqcd_file(links, "<")):
        path.write_bytes(data)
        for tolerance in (1e-4, np.inf):
            with pytest.raises(BadInput, match=says):
                read_gauge(str(path), tolerance=tolerance)
        with pytest.raises(BadInput, match=says):
            read_links(str(path), Group.alone())
    refused_on(4, says, lambda group: read_gauge(str(path), group, (2, 1, 1, 2), tolerance=np.inf))


def test_nothing_is_written_for_bad_input(
    gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    links = gauge.links
    links[0, 0, 0, 0, 0] = np.nan
    Path("nan.lime").write_bytes(ildg_file(links, ">"))
    for tolerance in ("inf", "1e300"):
        words = f"lattice convert nan.lime -o out.lime --tolerance {tolerance} --json out.json"
        assert main(words.split()) == 2
        assert "Traceback" not in capsys.readouterr().err
    holder = Gauge(Group.alone(), EXTENTS)
    holder.set_links(gauge.links * 1e8)  # averages of these are finite ...
    large = gauge.links
    large[0, 0, 0, 0, 0, 0, 0] = 1e39  # ... but single precision cannot hold this
    holder.set_links(large)
    with pytest.raises(BadInput, match="finite numbers"):
        write_gauge("out.lime", holder, precision=32)
    assert [one.name for one in tmp_path.iterdir()] == ["nan.lime"]
    # Rounding moves links slightly away from SU(3), which must not count as an error of the written file.
    Path("good.lime").write_bytes(ildg_file(gauge.links, ">"))
    words = "lattice convert good.lime -o out.lime --tolerance 1e-10 --precision single --json out.json"
    assert main(words.split()) == 0
    assert json.loads(Path("out.json").read_text())["precision"] == 32


def test_a_tolerance_is_above_0(gauge: Gauge, tmp_path: Path) -> None:
    write_gauge(str(tmp_path / "cfg.lime"), gauge)
    for tolerance in (0, -1, np.nan):
        with pytest.raises(BadInput, match="expected a tolerance above 0"):
            read_gauge(str(tmp_path / "cfg.lime"), tolerance=tolerance)
