"""Subjects of PyTorch's tests that are not in its wheel, with gloo and onehop side by side; elastic restarts."""

import json
from pathlib import Path

import pytest

from ranks import Ranks
from torch_program import WITHOUT_TORCH, outcomes

pytest.importorskip("torch", reason=WITHOUT_TORCH)

SUBJECTS = Path(__file__).resolve().parents[1] / "support/torch_subjects.py"
RANKS = 4


def test_what_gloo_does_onehop_does(ranks: Ranks) -> None:
    """Objects, functional collectives, DTensor, fully_shard, checkpoints and pipelines, on four ranks."""
    arguments = [(ranks.folder, rank, RANKS) for rank in range(RANKS)]
    for code, output, errors in outcomes(ranks, str(SUBJECTS), arguments):
        assert code == 0, errors
        found = json.loads(output.splitlines()[-1])
        assert len(found) > 50
        assert {part: outcome for part, outcome in found.items() if outcome != "same"} == {}


ELASTIC = """
    import os, signal, sys
    from pathlib import Path
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as checkpoint
    import onehop.torch

    backend, place, kill = sys.argv[1:4]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    optimizer.step()
    moments = [torch.zeros_like(one) for one in model.parameters()]
    state = {"model": model.state_dict(), "moments": moments, "step": 0}
    if Path(place).exists():
        checkpoint.load(state, checkpoint_id=place)
        model.load_state_dict(state["model"])
        for one, moment in zip(model.parameters(), state["moments"]):
            optimizer.state[one]["momentum_buffer"] = moment
    for step in range(state["step"], 8):
        if kill == "kill" and attempt == 0 and step == 5 and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        generator = torch.Generator().manual_seed(10 * step + rank)
        optimizer.zero_grad()
        model(torch.randn(16, 20, generator=generator)).square().mean().backward()
        optimizer.step()
        if step == 3:
            moments = [optimizer.state[one]["momentum_buffer"] for one in model.parameters()]
            checkpoint.save({"model": model.state_dict(), "moments": moments, "step": 4}, checkpoint_id=place)
    if rank == 0:
        print(attempt, model.module.weight.double().sum().item().hex(), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's own threads now and then end with an abort
"""


def test_torchrun_restarts_after_a_killed_rank(ranks: Ranks) -> None:
    """Torchrun starts all ranks anew, and the result is that of gloo without a failure, bit by bit."""
    results = {}
    for backend, kill in (("onehop", "kill"), ("gloo", "none")):
        place = str(ranks.folder / f"checkpoint_{backend}_{kill}")
        done = ranks.torchrun("--max-restarts=2", ranks.script(ELASTIC), backend, place, kill)
        assert done.returncode == 0, done.stderr
        attempt, results[backend, kill] = done.stdout.split()
        assert int(attempt) == (kill == "kill")
    assert len(set(results.values())) == 1, results
