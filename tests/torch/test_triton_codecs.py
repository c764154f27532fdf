"""The Triton kernels of the codecs, in Triton's interpreter, against the NumPy reference and the C++ codecs."""

import json

import pytest

from ranks import PYTHON_FOLDER, Ranks
from torch_program import WITHOUT_TORCH, outcomes

pytest.importorskip("torch", reason=WITHOUT_TORCH)

pytest.importorskip("triton", reason="there is no triton in this environment; `make setup-torch` brings it")

KERNELS = """
    import sys
    import numpy as np
    import torch
    sys.path.insert(0, sys.argv[1])
    import codec_reference as reference
    from onehop import _core
    from onehop.torch import triton_codecs

    rng = np.random.default_rng(1)
    extreme = rng.standard_normal(333).astype(np.float32)
    extreme[::7], extreme[3::11], extreme[5::13], extreme[40] = np.inf, -np.inf, np.nan, -np.nan
    extreme[64:96], extreme[70], extreme[100:132], extreme[200] = 0, -0.0, 3.4e38, 2.0**127
    cases = [
        rng.standard_normal(70).astype(np.float32),
        (rng.standard_normal(1500) * np.exp(rng.uniform(-80, 80, 1500))).astype(np.float32),
        extreme,
        np.frombuffer(rng.bytes(4 * 2000), np.float32).copy(),  # all kinds of bits
        np.float32(2.0) ** rng.integers(-149, -110, 330).astype(np.float32),
        np.float32([448, 464, 464.00003, 432, 416, 424, 2.0**-9, 2.0**-10, 1.5 * 2.0**-9, 0.015625]),  # ties
        np.zeros(0, np.float32),
    ]
    for codec in ("fp16", "bf16", "fp8", "q8", "q6", "q4", "q3"):
        for number, x in enumerate(cases):
            where = f"{codec}, case {number}"
            wire = torch.zeros(_core.encoded_bytes(codec, "float32", x.size), dtype=torch.uint8)
            triton_codecs.encode(codec, torch.from_numpy(x), wire)
            ours = wire.numpy()
            cpp = np.empty_like(ours)
            _core.encode(codec, "float32", x, cpp)
            assert np.array_equal(ours, cpp), where
            right = reference.encode(codec, x)
            if codec in ("fp16", "bf16"):  # NumPy gives NaN other bits
                ours, right = ours.view(np.uint16)[~np.isnan(x)], right.view(np.uint16)[~np.isnan(x)]
            assert np.array_equal(ours, right), where
            back, right = torch.zeros(x.size), np.zeros(x.size, np.float32)
            triton_codecs.decode_sum(codec, wire.view(1, -1), back)
            _core.decode(codec, "float32", cpp, right, False)
            assert np.array_equal(back.numpy().view(np.uint32), right.view(np.uint32)), where
        # Any bytes after a scale that is a number, and sums in order.
        wires = rng.integers(0, 256, (3, _core.encoded_bytes(codec, "float32", 100)), np.uint8)
        wires[:, 1 :: wires.shape[1] // 4] &= 0xBF
        total = torch.zeros(100)
        triton_codecs.decode_sum(codec, torch.from_numpy(wires), total, 3)
        with np.errstate(all="ignore"):
            parts = [reference.decode(codec, wire, 100) for wire in wires]
            right = (parts[0] + parts[1] + parts[2]) / np.float32(3)
        assert np.array_equal(total.numpy(), right, equal_nan=True), codec
    print("bit by bit")
"""

COMPILED = """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from onehop.torch import triton_codecs as kernels

    def compiled(kernel, target, pointers, constants):
        names = [name for name in kernel.arg_names if name not in constants]
        signature = {name: pointers.get(name, "fp32" if name == "divisor" else "i64") for name in names}
        source = ASTSource(kernel, {**signature, **dict.fromkeys(constants, "constexpr")},
                           {(kernel.arg_names.index(name),): value for name, value in constants.items()})
        return triton.compile(source, target=target, options={"enable_fp_fusion": False}).asm

    targets = [GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)]
    encode, decode = {"source": "*fp32", "wire": "*u8"}, {"wires": "*u8", "target": "*fp32"}
    for target in targets:
        texts = [
            compiled(kernels._encode_symmetric, target, encode, {"BITS": 6, "TOP": 31, "BYTES": 26, "BLOCKS": 32}),
            compiled(kernels._encode_fp8, target, encode, {"BYTES": 34, "BLOCKS": 32}),
            compiled(kernels._encode_half, target, encode, {"FP16": True, "NUMBERS": 1024}),
            compiled(kernels._decode_blocks, target, decode,
                     {"BITS": 6, "TOP": 31, "BYTES": 26, "BLOCKS": 32, "DIVIDE": True}),
            compiled(kernels._decode_halves, target, decode, {"FP16": True, "NUMBERS": 1024, "DIVIDE": False}),
        ]
        if target.backend == "cuda":
            for one in texts:
                # A fused product and sum, or flushed subnormal numbers, would give other bits.
                assert "fma." not in one["ptx"] and ".ftz" not in one["ptx"]
            assert "div.rn.f32" in texts[0]["ptx"]
    print("compiled")
"""

ALLREDUCE = """
    import sys
    import numpy as np
    import torch
    import torch.distributed as dist
    sys.path.insert(0, sys.argv[2])
    import codec_reference as reference
    import onehop.torch

    assert "triton" not in sys.modules
    rank, size = int(sys.argv[3]), int(sys.argv[4])
    dist.init_process_group(sys.argv[5], init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    for codec in ("fp16", "bf16", "fp8", "q8", "q6", "q4", "q3")[: 7 if size == 2 else 6]:
        for dtype, n in ((torch.float32, 500), (torch.bfloat16, 31), (torch.float64, 96)):
            x = [torch.from_numpy(np.random.default_rng(r).standard_normal(n)).to(dtype) for r in range(size)]
            chunk = -(-n // (32 * size)) * 32
            padded = np.zeros((size, size, chunk), np.float32)
            for r in range(size):
                padded[r].reshape(-1)[:n] = x[r].float().numpy()
            result = []
            for place in range(size):
                parts = [reference.decode(codec, reference.encode(codec, padded[r, place]), chunk) for r in range(size)]
                total = sum(parts[1:], parts[0]) / np.float32(size)
                result.append(reference.decode(codec, reference.encode(codec, total), chunk))
            expected = torch.from_numpy(np.concatenate(result)[:n]).to(dtype)
            for kernels in ("cpp", "triton") if n == 500 else ("auto",):
                mine = x[rank].clone()
                found = onehop.torch.compressed_allreduce(mine, None, codec, "mean", kernels=kernels)
                assert found is mine and torch.equal(mine, expected), (codec, dtype, kernels)
    strided = torch.ones(6, 10)[:, ::3]
    onehop.torch.compressed_allreduce(strided, codec="q4")
    assert (strided - size).abs().max() < 0.2 * size
    onehop.torch.compressed_allreduce(torch.ones(0))

    def raised(kind, *arguments, **options):
        try:
            onehop.torch.compressed_allreduce(*arguments, **options)
        except kind as error:
            return str(error)
        raise SystemExit(f"expected {kind.__name__}")

    for words, *arguments in (
        ("raw", torch.ones(3), None, "raw"), ("q5", torch.ones(3), None, "q5"), ("int32", torch.ones(3).int()),
        ("'max'", torch.ones(3), None, "q8", "max"), ("sparse", torch.ones(3).to_sparse()),
    ):
        assert words in raised(onehop.BadInput, *arguments)
    assert "'metal'" in raised(onehop.BadInput, torch.ones(3), kernels="metal")
    for wrong in ((torch.ones(40 + (rank == 1)),), (torch.ones(3), None, "q4" if rank == 1 else "q8"),
                  (torch.ones(3, dtype=torch.float16 if rank == 1 else torch.float32),),
                  (torch.ones(3), None, "q8", "mean" if rank == 1 else "sum")):
        assert "rank 1" in raised(onehop.Mismatch, *wrong)
    dist.barrier()
    print("all there", flush=True)
"""


SUPPORT = str(PYTHON_FOLDER.parent / "tests/support")


@pytest.mark.parametrize(
    ("source", "interpret"), [(KERNELS, True), (COMPILED, False)], ids=["run", "compile"]
)
def test_the_kernels(ranks: Ranks, source: str, interpret: bool) -> None:
    """The interpreter writes the bytes of the C++ codecs, and the code for GPUs has no fused operations."""
    environment = {"TRITON_CACHE_DIR": str(ranks.folder), "TRITON_INTERPRET": str(int(interpret))}
    ((code, output, errors),) = outcomes(ranks, ranks.script(source), [(SUPPORT,)], **environment)
    assert code == 0, errors
    assert output.strip() in ("bit by bit", "compiled")


@pytest.mark.parametrize(("size", "backend"), [(2, "gloo"), (3, "onehop")])
def test_a_compressed_all_reduce_over_any_group(ranks: Ranks, size: int, backend: str) -> None:
    arguments = [(ranks.folder / "store", SUPPORT, rank, size, backend) for rank in range(size)]
    for _, output, errors in outcomes(ranks, ranks.script(ALLREDUCE), arguments, TRITON_INTERPRET="1"):
        assert "all there" in output, errors


def test_the_check_for_cards_passes_in_the_interpreter(ranks: Ranks) -> None:
    ranks.environment["TRITON_INTERPRET"] = "1"
    module = ["-m", "onehop.torch.check_compression"]
    options = ["--device", "cpu", "--backend", "gloo", "--kernels", "triton", "--numbers", "300", "--json"]
    done = ranks.torchrun(*module, *options)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [row["codec"] for row in rows] == ["fp16", "bf16", "fp8", "q8", "q6", "q4", "q3"]
    assert all(row["wrong"] == 0 for row in rows)
    done = ranks.torchrun(*module, "--device", "cpu", "--numbers", "0")
    assert "expected --numbers of at least 1, found 0" in done.stderr
