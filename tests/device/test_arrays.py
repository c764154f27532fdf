"""Arrays on devices: copies, and arrays of other libraries."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import onehop
from cards import environment
from onehop import BadInput, Error, device

OTHER_LIBRARY = """
import numpy as np, onehop
from onehop import device

def says(error, words, call):
    try:
        call()
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"expected {error}")

assert [card.name for card in device.available()] == ["cuda:0", "cuda:1"]
assert device.available()[1].memory == 1 << 30 and device.why_none("cuda") == ""
numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
held = device.array(numbers, "cuda:1")
assert np.array_equal(held.numpy(), numbers)

class Foreign:
    def __init__(self, **more):
        self.shape, self.dtype = held.shape, held.dtype
        self.__cuda_array_interface__ = {**held.__cuda_array_interface__, **more}

place = device.device_array(Foreign(stream=2))
assert (place.device, place.address, place.shape, place.type, place.stream) == (
    "cuda:1", held.address, (3, 4), "float32", 2)
assert device.device_array(Foreign(strides=(16, 4))).bytes == 48
says(onehop.BadInput, "without gaps", lambda: device.device_array(Foreign(strides=(32, 4))))
says(onehop.BadInput, "read-only", lambda: device.device_array(Foreign(data=(held.address, True))))
says(onehop.BadInput, "no card holds its address", lambda: device.device_array(Foreign(data=(4096, False))))
group = onehop.Group.alone()
says(onehop.BadInput, "found it in the processor's memory",
     lambda: onehop.allreduce(group, held, out=np.empty((3, 4), np.float32)))
says(onehop.BadInput, "found it in cuda:0", lambda: onehop.allreduce(group, held, out=device.array(numbers, "cuda:0")))
says(onehop.BadInput, "with the shape and type (3, 4), float32",
     lambda: onehop.allreduce(group, held, out=device.array(numbers[0], "cuda:1")))
assert np.array_equal(onehop.allreduce(group, Foreign(), out=held).numpy(), numbers)
says(onehop.BadInput, "as before in this group, found one on cuda:0",
     lambda: onehop.allreduce(group, device.array(numbers, "cuda:0")))
says(onehop.BadInput, "the codec q8 is not for int32",
     lambda: onehop.allreduce(group, device.array(np.arange(3, dtype=np.int32), "cuda:1"), codec="q8"))
says(onehop.Error, "of free memory on cuda:1", lambda: device.Array((1 << 30,), np.float64, "cuda:1"))
says(onehop.BadInput, "from 0 to 1, found 2", lambda: device.array(numbers, "cuda:2"))
print("right")
"""


def test_other_libraries_and_wrong_arrays(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", OTHER_LIBRARY],
        capture_output=True,
        text=True,
        env=environment("cuda", tmp_path),
    )
    assert run.stdout == "right\n", run.stderr


ONE_CARD = """
import ctypes, os
import numpy as np, onehop
from onehop import device

held = device.array(np.ones(3, np.float32), "cuda:1")
class Foreign:
    __cuda_array_interface__ = held.__cuda_array_interface__
class Masked:
    __cuda_array_interface__ = {**held.__cuda_array_interface__, "mask": held}
assert device.device_array(Foreign()).device == "cuda:1"
try:
    device.device_array(Masked())
except onehop.BadInput as error:
    print(error)
calls = ctypes.CDLL(os.environ["ONEHOP_CUDA"]).standin_calls
print(calls(b"cuDevicePrimaryCtxRetain"), "context")
# Who takes it in a stream of its own waits there for what is in the default stream.
stream = held._device.make_stream()
held.__dlpack__(stream=stream.native)
print(calls(b"cuStreamWaitEvent"), "wait")
"""


def test_an_array_makes_no_context_on_other_cards(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ONE_CARD], capture_output=True, text=True, env=environment("cuda", tmp_path)
    )
    assert run.stdout == "expected an array without a mask\n1 context\n1 wait\n", run.stderr


def test_arrays_on_the_processor() -> None:
    numbers = np.arange(6, dtype=np.int64).reshape(2, 3)
    held = device.array(numbers, "processor")
    assert np.array_equal(held.numpy(), numbers)
    assert held.nbytes == 48
    assert not hasattr(held, "__cuda_array_interface__")
    assert held.new_empty((4,)).dtype == np.int64
    assert np.array_equal(onehop.allreduce(onehop.Group.alone(), held).numpy(), numbers)
    assert onehop.collectives.should_allreduce(held)


def test_arrays_that_are_not_on_devices() -> None:
    assert device.device_array(np.ones(3)) is None
    assert device.device_array([1, 2]) is None
    on_cpu = SimpleNamespace(device=SimpleNamespace(type="cpu"))
    assert device.device_array(on_cpu) is None
    on_card = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
    with pytest.raises(BadInput, match="hands out no memory to write to"):
        device.device_array(on_card)
    with pytest.raises(BadInput, match=r"the processor's memory"):
        device.allreduce(onehop.Group.alone(), np.ones(3))


def test_machine_without_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_CUDA", "none")
    monkeypatch.setenv("ONEHOP_HIP", "/nowhere/libamdhip64.so")
    assert device.available() == []
    assert device.why_none("cuda") == "ONEHOP_CUDA=none switches the CUDA driver off"
    assert "no HIP runtime was found (/nowhere/libamdhip64.so" in device.why_none("hip")
    with pytest.raises(Error, match="expected a card for device"):
        device.array(np.ones(3), "cuda")
    with pytest.raises(BadInput, match='expected a device as "cuda"'):
        device.array(np.ones(3), "gpu")
