"""From an OpenQASM file to a plot: phase estimation with four counting qubits."""

import numpy as np

import onehop
from onehop import quantum
from onehop.figure import empty_figure, save_figure

QASM = """
OPENQASM 2.0;
include "qelib1.inc";
qreg q[5];
creg c[4];
x q[4];                                  // eigenstate |1> of the phase gate
h q[0]; h q[1]; h q[2]; h q[3];
cp(2*pi*0.3) q[0], q[4];                 // eigenvalue exp(2 pi i 0.3)
cp(4*pi*0.3) q[1], q[4];
cp(8*pi*0.3) q[2], q[4];
cp(16*pi*0.3) q[3], q[4];
swap q[0], q[3]; swap q[1], q[2];        // inverse Fourier transform
h q[0];
cp(-pi/2) q[1], q[0]; h q[1];
cp(-pi/4) q[2], q[0]; cp(-pi/2) q[2], q[1]; h q[2];
cp(-pi/8) q[3], q[0]; cp(-pi/4) q[3], q[1]; cp(-pi/2) q[3], q[2]; h q[3];
measure q[0] -> c[0]; measure q[1] -> c[1]; measure q[2] -> c[2]; measure q[3] -> c[3];
"""

group = onehop.Group.world()
circuit = quantum.parse_qasm(QASM)

plan = quantum.plan(circuit, 4)  # before anything runs
if group.rank == 0:
    print(f"exchanges on 4 ranks: {plan.exchanges}; bytes sent by each rank: {plan.bytes_per_rank}")

result = quantum.simulate(circuit, group, shots=1000, seed=7)  # collective
if group.rank == 0:
    counts = dict(sorted(result.counts.items(), key=lambda item: -item[1]))
    for outcome, shots in list(counts.items())[:3]:
        print(f"{outcome}  {shots:4d} shots  phase {int(outcome, 2) / 16:.4f}")
    figure = empty_figure(8, 3.8)
    axes = figure.subplots()
    shots = [counts.get(f"{k:04b}", 0) for k in range(16)]
    axes.bar(range(16), shots, color="#4c78a8", label="1000 shots")
    phases = np.linspace(-0.5, 15.5, 400) / 16 - 0.3
    window = (np.sin(16 * np.pi * phases) / (16 * np.sin(np.pi * phases))) ** 2
    axes.plot(np.linspace(-0.5, 15.5, 400), 1000 * window, color="#f58518", label="theory for phase 0.3")
    axes.axvline(16 * 0.3, color="black", linestyle="--", label="16 times the phase")
    axes.set(xlabel="outcome k, phase k/16", ylabel="shots", xticks=range(16))
    axes.legend()
    save_figure(figure, "circuit.svg")
