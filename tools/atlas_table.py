"""Print the exchanges of Atlas's circuits (docs/design/placement.md) beside those of Atlas's published schedules.

    atlas_table.py FOLDER

FOLDER is a checkout of github.com/quantum-compiler/atlas with its folders `circuit` and `schedules`. Atlas needs an
exchange between two stages of a schedule.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from onehop import _core
from onehop.quantum import Circuit, load_qasm

MQT = ("ae", "dj", "ghz", "graphstate", "qft", "qftentangled", "qpeexact", "su2random", "wstate")
NWQ = ("bv", "ising", "qsvm", "vqc")
SIZES = {29: 2, 31: 8, 34: 64}  # qubits and ranks, with 28 local qubits
SECONDS = 1.0


def _stages(folder: Path, family: str, qubits: int) -> list[str]:
    paths = sorted(folder.glob(f"schedules/{family}{qubits}_28.stage*.schedule"))
    return [path.read_text() for path in paths]


def _first_bits(stage: str, qubits: int) -> list[int]:
    """Return the bit of each qubit in a stage, whose second line has the number of qubits and the qubit of each bit."""
    _, *order = json.loads(stage.splitlines()[1])
    return [order.index(qubit) for qubit in range(qubits)]


def _file(folder: Path, family: str, qubits: int) -> Path:
    if family in MQT:
        return folder / f"circuit/MQTBench_{qubits}q/{family}_indep_qiskit_{qubits}_no_swap.qasm"
    return folder / f"circuit/NWQBench/{family}_n{qubits}_no_swap.qasm"


def _gates_only(circuit: Circuit) -> Circuit:
    result = Circuit(circuit.qubits, circuit.clbits)
    for operation in circuit.operations:
        if operation.kind not in ("measure", "barrier"):
            result.add(operation)
    return result


def _row(folder: Path, family: str) -> str:
    cells = []
    for qubits, ranks in SIZES.items():
        stages = _stages(folder, family, qubits)
        circuit = load_qasm(_file(folder, family, qubits))
        free = _core.place_simulation(circuit, ranks, 16, SECONDS)
        bits = _first_bits(stages[0], qubits)
        given = _core.place(_gates_only(circuit), ranks, 16, SECONDS, bits)
        both = [f"{one.exchanges} ({one.exchanges_at_least()})" for one in (free, given)]
        cells += [str(len(stages) - 1), *both]
    return f"| {family} | " + " | ".join(cells) + " |"


def _gates(text: str) -> list[tuple[str, tuple[int, ...]]]:
    found = re.findall(r"^(u3\([^)]*\)|cx) (q\[.*\]);$", text, re.MULTILINE)
    numbers = [re.sub(r"\d+(\.\d+)?", lambda one: f"{float(one[0]):.9f}", name) for name, _ in found]
    qubits = [tuple(int(q) for q in re.findall(r"\d+", places)) for _, places in found]
    return [(number if "(" in number else "cx", where) for number, where in zip(numbers, qubits, strict=True)]


def _out_of_order(folder: Path, family: str, qubits: int) -> int:
    """Count pairs of a rotation and a CX on its qubit that a schedule runs in the opposite order."""
    circuit = _gates(_file(folder, family, qubits).read_text())
    # The last part of a stage repeats its gates.
    scheduled = [
        gate for text in _stages(folder, family, qubits) for gate in _gates(text[: text.rindex("@")])
    ]
    if sorted(circuit) != sorted(scheduled):
        raise SystemExit(f"{family}: the gates of the schedule are not those of the circuit")
    places = defaultdict(list)
    for place, gate in enumerate(scheduled):
        places[gate].append(place)
    at = [places[gate].pop(0) for gate in circuit]
    pairs = 0
    for later, (name, (qubit, *_)) in enumerate(circuit):
        if name != "cx":
            pairs += sum(qubit in circuit[i][1] and at[i] > at[later] for i in range(later))
    return pairs


def main() -> None:
    """Print the table, and what is wrong in the schedules of su2random."""
    folder = Path(sys.argv[1])
    print("| | " + " | ".join(f"{n} on {ranks}: Atlas | free | given" for n, ranks in SIZES.items()) + " |")
    print("|---" * (3 * len(SIZES) + 1) + "|")
    for family in sorted(MQT + NWQ):
        print(_row(folder, family), flush=True)
    wrong = [_out_of_order(folder, "su2random", qubits) for qubits in SIZES]
    print(
        f"su2random: {wrong} pairs of gates that do not commute are in the opposite order in Atlas's schedules"
    )


main()
