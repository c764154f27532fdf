"""Print the table of docs/design/placement.md: the bytes that the placement moves, compared with its baselines.

placement_table.py [QUBITS]
"""

from __future__ import annotations

import sys

from onehop import quantum
from onehop.quantum import generators
from onehop.quantum.io import hamlib

QUBITS = int(sys.argv[1]) if len(sys.argv) > 1 else 24
RANKS = (2, 4, 8, 16, 32, 64)


def main() -> None:
    grid = (4, QUBITS // 4)
    programs = {
        "QFT": generators.qft(QUBITS),
        "QPE": generators.qpe(QUBITS),
        "TFIM 1-D, 10 steps": generators.evolution(hamlib.tfim((QUBITS,)), QUBITS),
        f"TFIM {grid[0]}x{grid[1]}, 10 steps": generators.evolution(hamlib.tfim(grid), QUBITS),
        "random, depth 20": generators.random_circuit(QUBITS),
        "quantum volume, depth 10": generators.quantum_volume(QUBITS, depth=10),
    }
    print("| | " + " | ".join(f"{ranks} ranks" for ranks in RANKS) + " |")
    print("|---" * (len(RANKS) + 1) + "|")
    for name, program in programs.items():
        circuit = program.to_circuit()
        cells = []
        for ranks in RANKS:
            p = quantum.plan(circuit, ranks).placement
            moved, others = p.fraction_moved, p.baselines
            ratios = [moved / others[k] if others[k] else 0 for k in ("gate_by_gate", "one_swap_at_a_time")]
            cells.append(f"{p.exchanges}: {moved:.2f} ({ratios[0]:.3f}, {ratios[1]:.3f})")
        print(f"| {name} | " + " | ".join(cells) + " |")


main()
