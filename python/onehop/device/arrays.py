"""Arrays in the memory of a device: those of onehop, and those of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.array_memory import element_count, element_type
from onehop.error import BadInput

_KINDS = {"processor": 1, "cuda": 2, "hip": 10}  # DLPack's numbers of devices
_TYPES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}  # and of types


class Array:
    """An array in the memory of a device. `array` makes one.

    Attributes
    ----------
    shape : tuple of int
        Its extents; the elements are in the order of C.
    dtype : numpy.dtype
        The type of its elements.
    device : str
        Where it is, such as "cuda:0" or "processor".
    """

    def __init__(self, shape: Sequence[int], dtype: Any, device: str) -> None:
        self.shape, self.dtype, self.device = tuple(shape), np.dtype(dtype), device
        self._device = _core.Device.named(device)
        self._memory = self._device.allocate(element_count(self.shape) * self.dtype.itemsize)

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self._memory.address

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self._memory.bytes

    def numpy(self) -> np.ndarray:
        """Copy the array to the memory of the processor."""
        found = np.empty(self.shape, self.dtype)
        self._device.copy_out(_core.Memory(found.view(np.uint8).reshape(-1)), self.address)
        return found

    def new_empty(self, shape: Sequence[int]) -> Array:
        """Make an array of this type on this device, with any contents."""
        return Array(shape, self.dtype, self.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device.kind != "cuda":
            raise AttributeError(f"this array is on {self.device}, not on a card of the kind cuda")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": 1,  # what sums and plans do is in the default stream
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _KINDS[self._device.kind], self._device.index

    def __dlpack__(self, *, stream: int | None = None, **_options: Any) -> Any:
        if stream not in (None, -1):
            self._device.follow_default(stream)
        kind = self.dtype.name.rstrip("0123456789")
        code = next((code for code, name in _TYPES.items() if name == kind), None)
        if code is None:
            raise BufferError(f"DLPack hands out arrays of numbers, not of {self.dtype}")
        return _core.device_capsule(
            self._memory, self.shape, code, 8 * self.dtype.itemsize, *self.__dlpack_device__()
        )


def array(numbers: Any, device: str = "cuda", dtype: Any = None) -> Array:
    """Copy numbers to a device.

    Parameters
    ----------
    numbers : array_like
        The numbers.
    device : str
        "cuda", "hip", with a number such as "cuda:1" for another card, or "processor".
    dtype : dtype
        The type of the elements; None: that of `numbers`.

    Raises
    ------
    BadInput
        There is no such device.
    Error
        There is no driver, or the device has too little memory.
    """
    values = np.asarray(numbers, dtype, order="C")
    found = Array(values.shape, values.dtype, device)
    found._device.copy_in(found.address, _core.Memory(values.view(np.uint8).reshape(-1), False))
    return found


@dataclass(frozen=True)
class Place:
    """Where an array of any library is: its device, address and stream, and what it holds."""

    device: str
    address: int
    shape: tuple[int, ...]
    type: str
    stream: int = 0
    bytes: int = 0


def device_array(value: Any) -> Place | None:
    """Return the place of an array on a device; None for an array in the processor's memory, and for anything else.

    Raises
    ------
    BadInput
        The array is on a device, but has gaps, or its library does not say where it is.
    """
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, Array):
        return Place(value.device, value.address, value.shape, value.dtype.name, 0, value.nbytes)
    kind = getattr(getattr(value, "device", None), "type", "")  # of a tensor of torch
    if kind:
        return _of_torch(value) if kind == "cuda" and hasattr(value, "data_ptr") else None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(value, interface)
    find = getattr(value, "__dlpack_device__", None)
    if find is not None and find()[0] in (_KINDS["cuda"], _KINDS["hip"]):
        return _of_dlpack(value)
    return None


def torch_stream(tensor: Any) -> int:
    """Return the current stream of torch on the device of a tensor."""
    import torch

    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def _of_dlpack(value: Any) -> Place:
    """Return the place of an array whose library orders what it has begun before the default stream."""
    kind, index, address, shape, code, bits, dense = _core.device_tensor(value)
    if not dense:
        raise BadInput("expected an array without gaps, in the order of C; make a contiguous copy")
    if code not in _TYPES:
        raise BadInput(f"expected an array of numbers, found a type with the number {code} of DLPack")
    name = {number: name for name, number in _KINDS.items()}[kind]
    return Place(
        f"{name}:{index}", address, shape, f"{_TYPES[code]}{bits}", 0, element_count(shape) * bits // 8
    )


def _of_torch(tensor: Any) -> Place:
    import torch

    if not tensor.is_contiguous():
        raise BadInput("expected a tensor without gaps, in the order of C; call contiguous() first")
    kind = "hip" if getattr(torch.version, "hip", None) else "cuda"
    stream = torch_stream(tensor)
    name = f"{kind}:{tensor.device.index or 0}"
    size = tensor.numel() * tensor.element_size()
    return Place(name, tensor.data_ptr(), tuple(tensor.shape), element_type(tensor), stream, size)


def _of_interface(value: Any, interface: dict[str, Any]) -> Place:
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides, expected = interface.get("strides"), dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if extent > 1 and stride != expected:
            raise BadInput("expected an array without gaps, in the order of C; make a contiguous copy")
        expected *= extent
    address, read_only = interface["data"]
    if read_only:
        raise BadInput("expected an array that can be written, found one that is read-only")
    if interface.get("mask") is not None:
        raise BadInput("expected an array without a mask")
    count, reason = _core.device_count("cuda")
    index = _core.device_holder("cuda", address) if element_count(shape) > 0 else min(count, 1) - 1
    if index < 0:
        reason = reason or "no card holds its address"
        raise BadInput(
            f"expected a {type(value).__name__} in the memory of a card that onehop can use: {reason}"
        )
    size = element_count(shape) * dtype.itemsize
    stream = interface.get("stream") or 0
    return Place(f"cuda:{index}", address, shape, dtype.name, 0 if stream == 1 else stream, size)
