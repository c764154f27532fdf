"""Circuits on 1 to 64 GPUs: weak and strong scaling of phase estimation, strong scaling of the Ising model."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from onehop.machine import Machine, load_machine, permutation_traffic, simulate
from onehop.predict import predict_circuit
from onehop.quantum import Circuit, plan
from onehop.quantum.generators import evolution, qpe, tfim
from onehop_bench.papers.study import Curve, Study, changed_machine, published

_LARGEST = 64
_GENERATION = {"genesis": 2, "genesis-ib": 2, "perlmutter": 0, "a100-nvlink": 0, "a100-pcie": 0}
_TITLES = {
    "genesis": "Genesis, NVLink",
    "genesis-ib": "Genesis, InfiniBand",
    "perlmutter": "Perlmutter",
    "a100-nvlink": "A100, NVLink",
    "a100-pcie": "A100, PCIe",
}
_NODES = (8, 16, 32, 64)  # GPUs of more than one node
_HAMLIB_STEPS = 10
_PERLMUTTER_MEMORY = 80e9
# Title, circuit, and whether every GPU has 33 qubits instead of all together.
_CASES = {
    "qpe_weak": ("QPE weak", "qpe", True),
    "qpe_strong": ("QPE strong", "qpe", False),
    "hamlib_strong": ("TFIM strong", "hamlib", False),
}


@dataclass(frozen=True)
class Fit:
    """The number that is fitted beside a rate in genesis.toml: exchanges for one of onehop's.

    `interfaces` is not fitted: the share of their rate at which the interfaces of Perlmutter run.
    """

    exchanges: float
    interfaces: float = 1.0


@functools.cache
def _circuit(name: str, qubits: int) -> Circuit:
    if name == "qpe":
        return qpe(qubits)
    # HamLib's periodic triangular lattice of 33 sites. The benchmark appends the inverse circuit.
    model = tfim((3, qubits // 3), lattice="triangular", periodic=True)
    return evolution(model, qubits, steps=_HAMLIB_STEPS, order=1, mirror=True)


@functools.cache
def onehop_exchanges(name: str, qubits: int, gpus: int) -> int:
    """Return how often onehop's placement of the circuit exchanges amplitudes."""
    return plan(_circuit(name, qubits), gpus, "single", ranks_per_node=1, search_seconds=0).exchanges


@functools.cache
def _machine(name: str, interfaces: float) -> Machine:
    if name != "perlmutter":
        return load_machine(name)
    rate = load_machine(name).levels[1].bandwidth.value * interfaces
    # 33 qubits in single precision on one GPU of Perlmutter fit only into its nodes with 80 GB per GPU.
    return changed_machine(name, {1: {"bandwidth": rate}}, memory=_PERLMUTTER_MEMORY)


def _places(name: str, gpus: int) -> list[int] | None:
    """Return the places of the ranks: on Perlmutter every node on a switch of its own, elsewhere consecutive ones."""
    if name != "perlmutter" or gpus <= 4:
        return None
    return [(rank // 4 * 4) * 4 + rank % 4 for rank in range(gpus)]


@functools.cache
def exchange_seconds(name: str, qubits: int, gpus: int, interfaces: float = 1.0) -> float:
    """Return the seconds in which all bits of the rank number change places with bits of the local index."""
    if gpus == 1:
        return 0.0
    ranks = gpus.bit_length() - 1
    local = qubits - ranks
    permutation = list(range(qubits))
    for bit in range(ranks):
        permutation[local + bit], permutation[local - 1 - bit] = local - 1 - bit, local + bit
    traffic = permutation_traffic(qubits, local=local, permutation=permutation, dtype="complex64")
    return simulate(traffic, _machine(name, interfaces), ranks=_places(name, gpus)).seconds


def _alone(name: str, circuit: str, qubits: int, gpus: int) -> float:
    """Return the seconds of computing: the paper's time of one GPU, scaled by gates and amplitudes of a rank."""
    figures = published()["circuits"]
    seconds = figures["ampere_seconds"][circuit]
    for step in ("a100_to_h100", "h100_to_gb200")[: _GENERATION[name]]:
        low, high = figures["generations"][step]
        seconds /= (low + high) / 2
    base = figures["qubits"]
    gates = len(_circuit(circuit, qubits)) / len(_circuit(circuit, base))
    return seconds * gates * 2.0 ** (qubits - base) / gpus


def seconds_of(fit: Fit, name: str, circuit: str, gpus: int, *, weak: bool) -> float:
    """Return the predicted seconds of a circuit on so many GPUs, 33 qubits in all (strong) or on each (weak)."""
    qubits = published()["circuits"]["qubits"] + (gpus.bit_length() - 1 if weak else 0)
    count = onehop_exchanges(circuit, qubits, gpus) * fit.exchanges
    exchange = exchange_seconds(name, qubits, gpus, fit.interfaces) if count else 0.0
    return _alone(name, circuit, qubits, gpus) + count * exchange


def efficiency_of(fit: Fit, gpus: int) -> float:
    """Return the parallel efficiency of weak scaling on Genesis with NVLink."""
    qubits = published()["circuits"]["qubits"] + gpus.bit_length() - 1
    return _alone("genesis", "qpe", qubits, gpus) / seconds_of(fit, "genesis", "qpe", gpus, weak=True)


def ratio_of(fit: Fit, slow: str, fast: str, circuit: str, gpus: int, *, weak: bool = False) -> float:
    """Return how much longer a circuit takes on one machine than on another."""
    return seconds_of(fit, slow, circuit, gpus, weak=weak) / seconds_of(fit, fast, circuit, gpus, weak=weak)


def _compare(study: Study, fit: Fit) -> None:
    """Add the statements of section 3 as rows. A range of the paper holds for all its numbers of nodes."""
    figures = published()["circuits"]
    at_4 = [figures["efficiency"]["weak_at_4"]]
    study.compare("efficiency, QPE weak, 4 GPUs", "", efficiency_of(fit, 4), at_4, fitted=True)
    for gpus in _NODES:
        case = f"efficiency, QPE weak, {gpus} GPUs"
        study.compare(case, "", efficiency_of(fit, gpus), figures["efficiency"]["weak"])
    for key, (title, circuit, weak) in _CASES.items():
        paper = figures["nvlink_over_infiniband"][key]
        for gpus in _NODES:
            ratio = ratio_of(fit, "genesis-ib", "genesis", circuit, gpus, weak=weak)
            case = f"InfiniBand over NVLink, {title}, {gpus} GPUs"
            is_fit = key == "qpe_weak" and gpus == 8
            study.compare(case, "x", ratio, paper[:1] if is_fit else paper, fitted=is_fit)
    over = figures["genesis_over_perlmutter"]
    for key, (title, circuit, weak) in _CASES.items():
        for gpus in _NODES:
            paper = over[key] if not weak else [over["qpe_weak_36"]] if gpus == 8 else over["qpe_weak_more"]
            ratio = ratio_of(fit, "perlmutter", "genesis", circuit, gpus, weak=weak)
            study.compare(f"Perlmutter over Genesis, {title}, {gpus} GPUs", "x", ratio, paper)
    for circuit, most in figures["nvlink_over_pcie_at_most"].items():
        ratio = max(ratio_of(fit, "a100-pcie", "a100-nvlink", circuit, gpus) for gpus in (2, 4, 8))
        study.compare(f"PCIe over NVLink, {_CASES[f'{circuit}_strong'][0]}, most", "x", ratio, [most])


def _predict(study: Study, fit: Fit) -> None:
    """Add what a cost of starting kernels would change, and weak scaling with onehop's own plan."""
    fast, slow = (
        seconds_of(fit, name, "qpe", _LARGEST, weak=False) * 1e3 for name in ("genesis", "genesis-ib")
    )
    figures = published()["circuits"]
    most = figures["nvlink_over_infiniband"]["qpe_strong"][1]
    case = f"QPE strong, {_LARGEST} GPUs: fixed time on both networks for the paper's {most}"
    study.predict(case, (slow - most * fast) / (most - 1), "ms")
    # The rate of interfaces that weak scaling would need, and what it does to the other columns.
    half = Fit(fit.exchanges, interfaces=0.5)
    for title, circuit, weak in _CASES.values():
        ratio = ratio_of(half, "perlmutter", "genesis", circuit, _LARGEST, weak=weak)
        case = f"Perlmutter over Genesis, {title}, {_LARGEST} GPUs, interfaces at half of their rate"
        study.predict(case, ratio, "x")
    qubits = figures["qubits"] + _LARGEST.bit_length() - 1
    for name in ("genesis", "genesis-ib"):
        found = predict_circuit(_circuit("qpe", qubits), name, _LARGEST, "single", search_seconds=0)
        alone = _alone(name, "qpe", qubits, _LARGEST)
        case = f"{_TITLES[name]}, QPE weak, {_LARGEST} GPUs, onehop's plan"
        study.predict(f"{case}: exchanges", found.exchange_seconds * 1e3, "ms", found.bound)
        share = 100 * alone / (alone + found.exchange_seconds)
        study.predict(f"{case}: efficiency", share, "%", found.bound)


def _draw_times(study: Study, fit: Fit) -> None:
    figures = published()["circuits"]
    for case, circuit, weak in _CASES.values():
        curves = []
        for style, (name, label) in enumerate(_TITLES.items()):
            most = 8 if name.startswith("a100") else _LARGEST
            counts = [count for count in figures["gpus"] if count <= most]
            seconds = [seconds_of(fit, name, circuit, count, weak=weak) for count in counts]
            curves.append(Curve(label, counts, seconds, style=style))
        paper = figures["ampere_seconds"][circuit]
        curves.append(Curve("A100, paper", [1], [paper], paper=True, style=3))
        title = f"{case.split()[0]}, 33 qubits {'a GPU' if weak else 'in all'}"
        study.draw(title, "GPUs", "time in s", curves, headroom=5.0 if weak else 1.0)


def _draw_ratios(study: Study, fit: Fit) -> None:
    figures = published()["circuits"]
    gpus = figures["gpus"][1:]
    over = figures["genesis_over_perlmutter"]
    perlmutter = over | {"qpe_weak": [over["qpe_weak_36"], *over["qpe_weak_more"]]}
    for title, slow, ranges in (
        ("Genesis, InfiniBand over NVLink", "genesis-ib", figures["nvlink_over_infiniband"]),
        ("Perlmutter over Genesis", "perlmutter", perlmutter),
    ):
        curves = []
        for style, (key, (label, circuit, weak)) in enumerate(_CASES.items()):
            ratios = [ratio_of(fit, slow, "genesis", circuit, count, weak=weak) for count in gpus]
            curves.append(Curve(f"{label}, model", gpus, ratios, style=style))
            # The paper gives ranges: their ends stand at the fewest and the most GPUs of more than one node.
            places = [8, 16, 64] if len(ranges[key]) == 3 else [8, 64]
            curves.append(Curve(f"{label}, paper", places, ranges[key], paper=True, style=style))
        study.draw(title, "GPUs", "ratio of times", curves, log_y=False, headroom=1.6)
    low, high = (100 * end for end in figures["efficiency"]["weak"])
    curves = [
        Curve("model", gpus, [100 * efficiency_of(fit, count) for count in gpus]),
        Curve("paper, least and most", [4, 64, 4, 64], [high, high, low, low], paper=True),
    ]
    study.draw("Genesis, NVLink, QPE weak", "GPUs", "efficiency in %", curves, log_y=False)


def circuits() -> Study:
    """Predict weak and strong scaling of circuits on Genesis, Perlmutter and servers with eight A100."""
    study = Study.of("circuits", columns=3)
    fit = Fit(study.fitted()[0])
    _compare(study, fit)
    _predict(study, fit)
    _draw_times(study, fit)
    _draw_ratios(study, fit)
    return study
