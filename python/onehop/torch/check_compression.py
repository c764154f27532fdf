"""Check `compressed_allreduce` on the devices at hand: every result must be that of the C++ codecs, bit by bit.

torchrun --nproc-per-node 2 -m onehop.torch.check_compression --device cuda
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

from onehop.codec import CODECS, TABLE, encoded_bytes
from onehop.torch.compressed import compressed_allreduce
from onehop.torch.device_codecs import KERNELS, decode_sum, encode

_REPETITIONS = 5


def numbers_of(rank: int, numbers: int) -> torch.Tensor:
    """Random numbers of a rank, of very different magnitudes, with infinities, NaN and zeros among them."""
    generator = torch.Generator().manual_seed(1000 + rank)
    x = torch.randn(numbers, generator=generator)
    x *= torch.exp(torch.empty(numbers).uniform_(-20, 20, generator=generator))
    for place, value in ((5, float("inf")), (700, float("-inf")), (1500, float("nan")), (1501, 0.0)):
        x[place + rank :: 4001] = value
    return x


def expected(codec: str, size: int, numbers: int) -> torch.Tensor:
    """The sum over all ranks as the C++ codecs give it, computed by this rank alone."""
    chunk = -(-numbers // (size * 32)) * 32
    wires = []
    for rank in range(size):
        padded = torch.zeros(size * chunk)
        padded[:numbers] = numbers_of(rank, numbers)
        wires.append(encode(codec, padded, "cpp").view(size, -1))
    result = torch.empty(size * chunk)
    for place, part in enumerate(result.split(chunk)):
        decode_sum(codec, torch.stack([wire[place] for wire in wires]), part, 1, "cpp")
        decode_sum(codec, encode(codec, part, "cpp").view(1, -1), part, 1, "cpp")
    return result[:numbers]


def _seconds(call: Any, device: torch.device) -> float:
    """The shortest of some runs."""
    times = []
    for _ in range(_REPETITIONS):
        dist.barrier()
        begin = time.perf_counter()
        call()
        if device.type != "cpu":
            torch.accelerator.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


def check(codec: str, device: torch.device, numbers: int, kernels: str, raw: float) -> dict[str, Any]:
    """Reduce with a codec: whether the result is right, and the time beside that of a plain all-reduce."""
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = numbers_of(rank, numbers).to(device)
    compressed_allreduce(tensor, codec=codec, kernels=kernels)
    found, right = tensor.cpu(), expected(codec, size, numbers)
    same = (found.view(torch.int32) == right.view(torch.int32)) | (found.isnan() & right.isnan())
    seconds = _seconds(
        lambda: compressed_allreduce(tensor, codec=codec, kernels=kernels, check=False), device
    )
    return {
        "codec": codec,
        "wrong": int((~same).sum()),
        "bytes_per_number": encoded_bytes(codec, "float32", numbers) / numbers,
        "milliseconds": 1000 * seconds,
        "over_raw": seconds / raw,
    }


def main() -> int:
    """Run the check on the ranks that torchrun has started; 1 if a number is wrong on any rank."""
    parser = argparse.ArgumentParser(
        prog="python -m onehop.torch.check_compression", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--device", default="cuda", help="type of the device of the tensors (default: cuda)")
    parser.add_argument(
        "--backend", help="backend of torch.distributed (default: what torch takes for the device)"
    )
    parser.add_argument("--numbers", type=int, default=1 << 22, help="numbers per rank (default: 4194304)")
    parser.add_argument("--kernels", choices=KERNELS, default="auto", help="what encodes (default: auto)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.numbers < 1:
        parser.error(f"expected --numbers of at least 1, found {options.numbers}")
    device = torch.device(options.device)
    if device.type != "cpu":
        if (
            not torch.accelerator.is_available()
            or device.type != torch.accelerator.current_accelerator().type
        ):
            parser.error(
                f"expected --device cpu, or the type of a device of this machine, found {options.device}"
            )
        torch.accelerator.set_device_index(torch.distributed.get_node_local_rank(0))
    dist.init_process_group(options.backend)
    plain = numbers_of(dist.get_rank(), options.numbers).to(device)
    raw = _seconds(lambda: dist.all_reduce(plain), device)
    ranks = dist.get_world_size()
    codecs = [codec for codec in CODECS[1:] if ranks <= TABLE[codec].most_ranks]
    rows = [check(codec, device, options.numbers, options.kernels, raw) for codec in codecs]
    wrong = torch.tensor([row["wrong"] for row in rows], device=device)
    dist.all_reduce(wrong)
    for row, everywhere in zip(rows, wrong.tolist(), strict=True):
        row["wrong"] = everywhere
    if dist.get_rank() == 0:
        _show(rows, options.json)
    dist.destroy_process_group()
    return int(wrong.sum().item() > 0)


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    print(f"{'codec':6} {'wrong numbers':>14} {'bytes/number':>13} {'ms':>9} {'over raw':>9}")
    for row in rows:
        print(
            f"{row['codec']:6} {row['wrong']:14} {row['bytes_per_number']:13.3f} "
            f"{row['milliseconds']:9.3f} {row['over_raw']:9.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
