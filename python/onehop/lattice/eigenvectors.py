"""Eigenvectors of staggered quarks in files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import together
from onehop.lattice.eigen import Eigenvectors, link_digest, parity_of
from onehop.lattice.files.blocks import check_regular
from onehop.lattice.files.write import write_from_one
from onehop.lattice.geometry import require_memory, sites_on_a_rank
from onehop.lattice.staggered import Staggered
from onehop.output import file_path

_FORMAT = "onehop eigenvectors 1"
_LARGEST = 32767


def write_eigenvectors(
    path: str, found: Eigenvectors, operator: Staggered, *, precision: str = "double", overwrite: bool = False
) -> None:
    """Write eigenvectors to a file (NumPy's npz). Collective; rank 0 writes.

    Parameters
    ----------
    path : str
        The file.
    found : Eigenvectors
        The eigenvectors.
    operator : Staggered
        Their operator.
    precision : {"double", "half"}
        "half" stores 16-bit integers with a scale for each vector, which adds errors of about 1e-5.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    BadInput
        On all ranks: the precision is unknown, or the file exists or cannot be written.
    """
    if precision not in ("double", "half"):
        raise BadInput(f"expected the precision double or half, found {precision!r}")
    group, geometry = operator.group, operator.geometry
    count = len(found.values)
    shape = (count, int((parity_of(geometry, group.rank) == 0).sum()), 3)
    with together(group):
        arrays = (found.values, found.residuals, found.vectors)
        if found.vectors.shape != shape or not all(np.isfinite(one).all() for one in arrays):
            raise BadInput(
                f"expected finite eigenvectors of shape {shape}, found {found.vectors.shape} or NaN"
            )
    require_memory(
        group, geometry.extents, 72.0 * count * sites_on_a_rank(geometry.extents, 1), "eigenvectors"
    )
    parts = group.allgather(np.ascontiguousarray(found.vectors).tobytes())

    def make() -> list[bytes]:
        whole = np.zeros((count, *geometry.shape, 3), np.complex128)
        for rank, part in enumerate(parts):
            mine = whole[(slice(None), *geometry.block_slices(rank))]
            mine[:, parity_of(geometry, rank) == 0] = np.frombuffer(part, np.complex128).reshape(count, -1, 3)
        even = whole[:, sum(np.indices(geometry.shape)) % 2 == 0]
        arrays: dict[str, NDArray[Any]] = {"values": found.values, "residuals": found.residuals}
        about: dict[str, Any] = {
            "format": _FORMAT,
            "extents": list(geometry.extents),
            "digest": [found.digest.real, found.digest.imag],
            "applications": found.applications,
        }
        if precision == "half":
            reals = even.view(np.float64)
            arrays["scale"] = np.maximum(np.abs(reals).max(axis=(1, 2)), 1e-300) / _LARGEST
            even = np.rint(reals / arrays["scale"][:, None, None]).astype(np.int16)
            about["rounding"] = float(arrays["scale"].max() * np.sqrt(reals[0].size / 12))
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, vectors=even, **arrays)
        return [buffer.getvalue()]

    write_from_one(str(file_path(path, "path")), group, make, overwrite)


def read_eigenvectors(path: str, operator: Staggered) -> Eigenvectors:
    """Read eigenvectors, and check that they are those of this operator. Collective: every rank reads the file.

    Raises
    ------
    BadInput
        The file does not exist, is no file of eigenvectors or damaged, or has eigenvectors of another lattice or of
        other links.
    """
    geometry, group = operator.geometry, operator.group
    with together(group, f"cannot read {path}"), _refusing_others(str(path)):
        needed = _bytes_to_read(str(path))
    require_memory(group, geometry.extents, needed, f"reading {path}, eigenvectors")
    with together(group, f"cannot read {path}"):
        with _refusing_others(str(path)):
            about, arrays = _read_arrays(str(path))
        extents = about["extents"]
        if extents != tuple(geometry.extents):
            raise BadInput(
                f"{path}: expected eigenvectors on a lattice of {'x'.join(map(str, geometry.extents))}, found "
                f"{'x'.join(map(str, extents)):.60}"
            )
        shape = (len(arrays["values"]), int(np.prod(extents)) // 2, 3)
        if arrays["vectors"].shape != (*shape[:2], 6 if "scale" in arrays else 3):
            raise BadInput(
                f"{path}: expected {shape[0]} vectors on {shape[1]} even sites, found an array of shape "
                f"{arrays['vectors'].shape}; the file was altered"
            )
    vectors = arrays["vectors"]
    if "scale" in arrays:
        vectors = (vectors * arrays["scale"][:, None, None]).view(np.complex128)
    whole = np.zeros((shape[0], *geometry.shape, 3), np.complex128)
    whole[:, sum(np.indices(geometry.shape)) % 2 == 0] = vectors
    mine = whole[(slice(None), *geometry.block_slices(group.rank))]
    digest, found = about["digest"], link_digest(operator)
    if not abs(digest - found) <= 1e-9 * abs(found):
        raise BadInput(
            f"{path}: expected eigenvectors of these links, whose digest is {found:.10g}, found those of others "
            f"with the digest {digest:.10g}; make them with the same gauge field, action, boundary and phases"
        )
    own = np.ascontiguousarray(mine[:, parity_of(geometry, group.rank) == 0])
    return Eigenvectors(
        arrays["values"], arrays["residuals"], own, about["applications"], digest, about["rounding"]
    )


@contextmanager
def _refusing_others(path: str) -> Iterator[None]:
    """Raise BadInput where a file is none of eigenvectors."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # NumPy raises many kinds, errors of its tokenizer among them
        raise BadInput(
            f"{path}: expected a file of eigenvectors, which `onehop lattice eigen -o FILE` writes, found another or a "
            f"damaged one ({' '.join(str(error).split()):.300})"
        ) from error


def _bytes_to_read(path: str) -> int:
    """Return the memory that reading the arrays takes. No array is longer than its part of the file."""
    check_regular(path)
    with zipfile.ZipFile(path) as parts:
        members = parts.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in members):  # np.savez does not compress
        raise ValueError("its arrays are compressed")
    if (claimed := sum(part.file_size for part in members)) > Path(path).stat().st_size:
        raise ValueError(f"its arrays have {claimed} bytes, more than the file")
    factor = 20 if "scale.npy" in {part.filename for part in members} else 4
    return factor * claimed


# The types of the numbers in arrays, and their dimensions.
_ARRAYS = {"values": ("f8", 1), "residuals": ("f8", 1), "scale": ("f8", 1), "vectors": ("c16", 3)}


def _read_arrays(path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the description and the arrays of a file of eigenvectors, each of its type and finite."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(arrays.pop("about").tobytes())
    if (
        about["format"] != _FORMAT
        or not {"values", "residuals", "vectors"} <= arrays.keys() <= _ARRAYS.keys()
    ):
        raise ValueError(f"the format {about['format']} with the arrays {', '.join(arrays)}")
    for name, array in arrays.items():
        kind, dimensions = ("i2", 3) if name == "vectors" and "scale" in arrays else _ARRAYS[name]
        if array.dtype != np.dtype(kind) or array.ndim != dimensions or not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers of type {kind} in {dimensions} dimensions")
        if name != "vectors" and not (0 < len(array) == len(arrays["values"]) and array.min() >= 0):
            raise ValueError(f"{name}: expected a number of at least 0 for each eigenvalue")
    about["extents"] = tuple(int(one) for one in about["extents"])
    about["digest"] = complex(*map(float, about["digest"]))
    about["applications"], about["rounding"] = int(about["applications"]), float(about.get("rounding", 0))
    if not (0 <= about["rounding"] < 1 and arrays["values"].max() > 0):
        raise ValueError("expected eigenvalues above 0, and a rounding error from 0 to 1")
    return about, arrays
