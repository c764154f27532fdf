"""Blocks of arrays in files, and files that shrink while they are read."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge_files import EXTENTS, ildg_file, milc_file, nersc_file, openqcd_file, scidac_file
from onehop import BadInput, Group
from onehop.lattice import Gauge, Geometry, read_gauge, read_links, read_vectors, write_vectors
from onehop.lattice.files import lime, scidac
from onehop.lattice.files import read as reader
from onehop.lattice.files.blocks import first_bytes, read_block
from onehop.lattice.files.headers import nersc
from onehop.lattice.files.layout import site_numbers
from onehop.lattice.files.lime_headers import text_of
from threads import refused_on


@pytest.fixture(scope="module")
def array_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "array"
    path.write_bytes(b"head" + np.arange(5000, dtype=">i4").tobytes())
    return path


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_block_as_by_numpy(array_file: Path, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    cut = data.draw(st.integers(1, len(shape)))
    slices = []
    for extent in shape[:cut]:
        first = data.draw(st.integers(0, extent - 1))
        slices.append(slice(first, data.draw(st.integers(first + 1, extent))))
    whole = np.arange(5000, dtype=">i4")[: int(np.prod(shape))].reshape(shape)
    found = read_block(str(array_file), ">i4", 4, shape, slices)
    np.testing.assert_array_equal(found, whole[tuple(slices)])
    assert found.dtype == whole.dtype


def test_numbers_of_sites_as_by_numpy() -> None:
    whole = np.arange(np.prod(EXTENTS)).reshape(EXTENTS[::-1])
    slices = (slice(1, 3), slice(0, 6), slice(1, 2), slice(2, 4))
    np.testing.assert_array_equal(site_numbers(EXTENTS, slices), whole[slices].ravel())


FILES: dict[str, Callable[[Gauge], bytes]] = {
    "milc": lambda g: milc_file(g.links, "<"),
    "nersc": lambda g: nersc_file(g.links, ">d"),
    "ildg": lambda g: ildg_file(g.links, ">"),
    "scidac": lambda g: scidac_file(g.links, ">"),
    "openqcd": lambda g: openqcd_file(g.links, "<", g.plaquettes().all),
}
SAYS = "was cut off while it was read"


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_shrinks_while_it_is_read_is_an_error_on_all_ranks(
    gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Rank 1 finds the file shortened after its header was read; with a mapped file the process would end."""
    path = tmp_path / "field"
    data = FILES[name](gauge)
    path.write_bytes(data)
    real = reader.read_header

    def shrinks(file: str, *extents: Any) -> Any:
        layout = real(file, *extents)
        os.truncate(path, len(data) // 2)
        return layout

    for module, read in (
        (reader, lambda g: read_gauge(str(path), g)),
        (scidac, lambda g: read_links(str(path), g)),
    ):
        path.write_bytes(data)
        monkeypatch.setattr(module, "read_header", shrinks)
        with pytest.raises(BadInput, match=SAYS):
            read(Group.alone())
        monkeypatch.setattr(module, "read_header", real)

    path.write_bytes(data)
    both = real(str(path))
    os.truncate(path, len(data) // 2)  # the first half, which rank 0 reads, is still there
    monkeypatch.setattr(reader, "read_header", lambda *_: both)
    refused_on(2, SAYS, lambda group: read_gauge(str(path), group, (1, 1, 1, 2)))


def test_vectors_of_a_file_that_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, geometry = tmp_path / "x.lime", Geometry(EXTENTS)
    write_vectors(str(path), np.ones((2, *geometry.shape, 3), complex), geometry, Group.alone())
    real = scidac.messages

    def shrinks(file: str) -> Any:
        found = real(file)
        os.truncate(path, path.stat().st_size // 2)
        return found

    monkeypatch.setattr(scidac, "messages", shrinks)
    with pytest.raises(BadInput, match=r"was cut off|cut off while"):
        read_vectors(str(path), geometry, Group.alone())


def test_a_rank_that_cannot_read_the_file_is_heard_by_all(
    gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, here, real = str(tmp_path / "field"), local(), reader.read_header
    Path(path).write_bytes(FILES["ildg"](gauge))

    def header(*arguments: Any) -> Any:
        if here.rank == 1:
            raise FileNotFoundError(errno.ENOENT, "gone")
        return real(*arguments)

    def read_on(group: Group) -> None:
        here.rank = group.rank
        read_gauge(path, group)

    monkeypatch.setattr(reader, "read_header", header)
    refused_on(2, "cannot read", read_on)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """Every reader opens its file more than once, and a pipe would never answer."""
    pipe = str(tmp_path / "field")
    os.mkfifo(pipe)
    record = lime.Record("ildg-format", 144, 8)
    for read in (
        lambda: list(lime.records(pipe)),
        lambda: text_of(pipe, record),
        lambda: nersc(pipe, b"BEGIN_HEADER"),
        lambda: read_block(pipe, "<f8", 0, (4, 2), [slice(0, 4)]),
        lambda: first_bytes(pipe),
    ):
        with pytest.raises(BadInput, match="expected a file, found a folder, a pipe or a device"):
            read()
