"""Eigenvectors of staggered quarks in files."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import together
from onehop.lattice.eigen import Eigenvectors, link_digest, parity_of
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
            arrays["scale"] = np.abs(reals).max(axis=(1, 2)) / _LARGEST
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
    with together(group, f"cannot read {path}"):
        about, arrays = _read_arrays(str(path))
        extents = tuple(about["extents"])
        if extents != tuple(geometry.extents):
            raise BadInput(
                f"{path}: expected eigenvectors on a lattice of {'x'.join(map(str, geometry.extents))}, found "
                f"{'x'.join(map(str, extents))}"
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
    rounding = float(about.get("rounding", 0))
    return Eigenvectors(arrays["values"], arrays["residuals"], own, about["applications"], digest, rounding)


def _read_arrays(path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the description and the arrays of a file of eigenvectors."""
    try:
        with zipfile.ZipFile(
            path
        ) as parts:  # as np.savez writes it, so that no array is longer than the file
            if any(part.compress_type != zipfile.ZIP_STORED for part in parts.infolist()):
                raise ValueError("its arrays are compressed")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != _FORMAT or not {"values", "residuals", "vectors"} <= arrays.keys():
            raise ValueError(about["format"])
        about["extents"] = [int(one) for one in about["extents"]]
        about["digest"] = complex(*map(float, about["digest"]))
        about["applications"] = about["applications"]
        is_finite = all(np.isfinite(array).all() for array in arrays.values())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # NumPy raises many kinds, errors of its tokenizer among them
        raise BadInput(
            f"{path}: expected a file of eigenvectors, which `onehop lattice eigen -o FILE` writes, found another or a "
            f"damaged one ({error})"
        ) from error
    if not is_finite:
        raise BadInput(f"{path}: expected finite numbers, found others; the file was altered")
    return about, arrays
