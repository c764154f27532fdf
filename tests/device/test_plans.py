"""Plans of arrays on devices, over ranks: against NumPy."""

import subprocess
import sys
from pathlib import Path

import pytest

from cards import environment
from ranks import Ranks

PROGRAM = """
    import numpy as np, onehop
    from onehop import device

    group = onehop.Group.world()

    class OfDlpack:
        def __init__(self, array):
            self.array, self.shape = array, array.shape

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    # Ghosts of a periodic grid are the cells of the whole array, as numpy.pad wraps them.
    whole = np.arange(12 * 10 * 6.0).reshape(12, 10, 6)
    schedule = onehop.halo(extents=whole.shape, grid=(group.size, 1, 1), width=((2, 1), (1, 1), (1, 2)),
                           periodic=True, corners=True, dtype=np.float64)
    size = 12 // group.size
    padded = np.pad(whole, ((2, 1), (1, 1), (1, 2)), mode="wrap")
    expected = padded[group.rank * size : (group.rank + 1) * size + 3]
    block = np.full_like(expected, -1)
    block[2:-1, 1:-1, 1:-2] = expected[2:-1, 1:-1, 1:-2]
    for kind in ("array", "dlpack"):
        held = device.array(block, "DEVICE")
        plan = onehop.Plan(schedule, group, [OfDlpack(held) if kind == "dlpack" and "DEVICE" == "cuda" else held])
        assert isinstance(plan, device.DevicePlan)
        with plan:
            assert plan.explain()["path"] == "kernel", plan.explain()
        plan.run()
        plan.wait()
        assert np.array_equal(held.numpy(), expected), kind
    counted = onehop.count(schedule).ranks[group.rank]
    assert (plan.counters.runs, plan.counters.bytes_sent) == (2, 2 * counted.bytes_sent)
    assert plan.staging_bytes >= 2 * counted.bytes_received
    total = onehop.allreduce(group, OfDlpack(held)) if "DEVICE" == "cuda" else onehop.allreduce(group, held)
    device.wait(group, total)

    def says(error, words, arrays, **more):
        try:
            onehop.Plan(schedule, group, arrays, **more)
        except error as found:
            assert words in str(found), found
        else:
            raise AssertionError(words)

    says(onehop.BadInput, "found slots", [held], slots=3)
    short = held if group.rank == 0 else device.array(block[1:], "DEVICE")
    says(onehop.Error, "expected %d bytes of array" % block.nbytes, [short])
    says(onehop.BadInput, "expected 1 arrays, found 2", [held, held])
    says(onehop.BadInput, "and array 1 on the processor's memory", [held, block])
    # Rank 1 has its array in the processor's memory, or one that no plan takes.
    says(onehop.Error, "", [held if group.rank == 0 else block])
    class Gaps:
        __cuda_array_interface__ = dict(shape=(2, 2), typestr="<f8", data=(64, False), strides=(8, 16), version=3)
    says(onehop.Error, "without gaps", [block if group.rank == 0 else Gaps()])
    group.barrier()
    print("right")
"""


@pytest.mark.parametrize("kind", ["processor", "cuda"])
def test_halos_over_ranks(kind: str, ranks: Ranks, tmp_path: Path) -> None:
    if kind == "cuda":
        ranks.environment = {**environment(kind, tmp_path), **ranks.environment}
    run = ranks.launch(2, PROGRAM.replace("DEVICE", kind))
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("right") == 2


def test_arrays_of_torch_keep_their_stream(tmp_path: Path) -> None:
    """A stand-in for a tensor on a card: the plan asks for torch's current stream at each call."""
    program = """
import sys, types
import numpy as np, onehop
from onehop import device

held = device.array(np.arange(8.0), "cuda")
streams = [device.array([0], "cuda")._device.make_stream() for _ in range(2)]
asked = []
class Tensor:
    device, shape, dtype = types.SimpleNamespace(type="cuda", index=0), held.shape, held.dtype
    is_contiguous = numel = lambda self: 8
    element_size = lambda self: 8
    data_ptr = lambda self: held.address
def current(of):
    asked.append(of)
    return types.SimpleNamespace(cuda_stream=streams[len(asked) % 2].native)
sys.modules["torch"] = types.SimpleNamespace(
    version=types.SimpleNamespace(hip=None), cuda=types.SimpleNamespace(current_stream=current))
schedule = onehop.permute_bits(3, local=3, permutation=[2, 1, 0], dtype="float64")
plan = onehop.Plan(schedule, onehop.Group.alone(), [Tensor()])
made = len(asked)
for _ in range(3):
    plan.run()
plan.wait()
assert len(asked) == made + 6
reversed = np.arange(8.0).reshape(2, 2, 2).transpose(2, 1, 0).reshape(-1)
assert np.array_equal(held.numpy(), reversed), held.numpy()
print("right")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment("cuda", tmp_path)
    )
    assert run.stdout == "right\n", run.stderr
