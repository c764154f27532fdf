"""Generated circuits against their definitions; lattices, Hamiltonians, Trotter errors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from brute_force import PAULI, sum_matrix
from onehop import BadInput
from onehop.quantum import Circuit, plan
from onehop.quantum.generators import (
    evolution,
    ghz,
    heisenberg,
    qaoa,
    qft,
    qpe,
    quantum_volume,
    random_circuit,
    tfim,
)
from onehop.quantum.graphs import lattice_bonds, random_regular_bonds
from onehop.quantum.io.hamlib import hamlib_names, read_hamlib, write_tfim_file
from onehop.quantum.observables import PauliSum
from onehop.quantum.trotter import add_trotter
from onehop.quantum.two_qubit import add_two_qubit_unitary, haar_unitary
from reference_circuit import distribution, final_state


def unitary_of(program: Circuit) -> np.ndarray:
    """Return the matrix of a circuit, column by column."""
    columns = []
    for number in range(1 << program.qubits):
        prepared = Circuit(program.qubits)
        for qubit in range(program.qubits):
            if number >> qubit & 1:
                prepared.x(qubit)
        columns.append(final_state(prepared + program))
    return np.array(columns).T


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference, up to a global phase."""
    phase = np.vdot(a, b)
    return float(np.abs(a * phase / abs(phase) - b).max())


@pytest.mark.parametrize("inverse", [False, True])
def test_qft(inverse: bool) -> None:
    y = np.arange(32)
    expected = np.exp((-1 if inverse else 1) * 2j * math.pi * 11 * y / 32) / math.sqrt(32)
    assert np.abs(final_state(qft(5, state=11, inverse=inverse)) - expected).max() < 1e-14
    assert qft(5, state="01011").to_qasm() == qft(5, state=11).to_qasm()


def test_qpe_finds_the_phase() -> None:
    assert distribution(qpe(6, phase=19 / 32))[19] == pytest.approx(1)
    assert distribution(qpe(6))[round(32 / 3)] == pytest.approx(1)
    between = distribution(qpe(6, phase=0.3))
    assert max(between, key=between.get) == round(0.3 * 32)


def test_ghz() -> None:
    state = final_state(ghz(4))
    assert np.abs(state[[0, 15]] - math.sqrt(0.5)).max() < 1e-15
    assert np.abs(state[1:15]).max() == 0


@pytest.mark.parametrize("make", [random_circuit, quantum_volume, qaoa])
def test_random_circuits_repeat_with_their_seed(make: object) -> None:
    assert make(6, seed=3).to_qasm() == make(6, seed=3).to_qasm()
    assert make(6, seed=3).to_qasm() != make(6, seed=4).to_qasm()
    assert np.linalg.norm(final_state(make(6))) == pytest.approx(1)


@pytest.mark.parametrize(
    "unitary",
    [haar_unitary(4, np.random.default_rng(seed)) for seed in range(4)]
    + [np.eye(4), np.diag([1, 1, 1, -1]), np.eye(4)[[0, 2, 1, 3]], np.kron(PAULI["X"], PAULI["Y"])],
)
def test_any_two_qubit_unitary(unitary: np.ndarray) -> None:
    program = Circuit(2)
    add_two_qubit_unitary(program, unitary.astype(complex), 0, 1)
    assert distance(unitary_of(program), unitary) < 1e-7


MODELS = {
    "triangular": (tfim((2, 3), lattice="triangular", periodic=True, field=0.7), 6),
    "chain": (heisenberg((4,), field=0.3), 4),
    "long strings": (PauliSum.parse("0.3 X0 Y1 Z2 - Z0*Z2 + 0.5Y1 + 2 + 0.7 X0 Z2 Y3"), 4),
}


@pytest.mark.parametrize("name", MODELS)
def test_trotter_error_falls_as_it_should(name: str) -> None:
    model, qubits = MODELS[name]
    exact = expm(-0.5j * sum_matrix(model, qubits))
    for order in (1, 2):
        made = [add_trotter(Circuit(qubits), model, 0.5, steps, order=order) for steps in (4, 8)]
        errors = [distance(unitary_of(one), exact) for one in made]
        assert 2**order * 0.85 < errors[0] / errors[1] < 2**order * 1.2
        assert errors[1] < 0.08


@pytest.mark.parametrize("order", [1, 2])
def test_mirror_ends_as_it_began(order: int) -> None:
    made = evolution(tfim((2, 3), periodic=True), 6, steps=3, order=order, state="010011", mirror=True)
    assert abs(final_state(made)[0b010011]) == pytest.approx(1)


def test_both_versions_of_openqasm_agree() -> None:
    from onehop.quantum.io.qasm import parse_qasm

    made = [
        quantum_volume(3),
        evolution(MODELS["long strings"][0], 4, steps=2),
        qft(4, inverse=True),
        qaoa(4),
    ]
    for one in made:
        expected = final_state(one)
        for version in (2, 3):
            assert distance(final_state(parse_qasm(one.to_qasm(version))), expected) < 1e-12
    measured = qpe(5)
    for version in (2, 3):
        assert distribution(parse_qasm(measured.to_qasm(version))) == pytest.approx(distribution(measured))


# -- lattices and Hamiltonians -------------------------------------------------------------------------------------


def test_lattices() -> None:
    assert lattice_bonds((4,)) == [(0, 1), (1, 2), (2, 3)]
    assert lattice_bonds((4,), periodic=True) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert lattice_bonds((2,), periodic=True) == [(0, 1)]
    assert len(lattice_bonds((4, 5))) == 3 * 5 + 4 * 4
    assert len(lattice_bonds((4, 5), periodic=True)) == 2 * 20
    assert len(lattice_bonds((4, 5), lattice="triangular")) == 3 * 5 + 4 * 4 + 3 * 4
    assert len(lattice_bonds((4, 5), lattice="triangular", periodic=True)) == 3 * 20
    assert (0, 6) in lattice_bonds((4, 5), lattice="triangular")


def test_random_graphs_are_regular() -> None:
    bonds = random_regular_bonds(10, 3, np.random.default_rng(0))
    assert np.bincount(np.array(bonds).ravel()).tolist() == [3] * 10
    assert len(set(bonds)) == 15


def test_ground_state_of_the_ising_chain() -> None:
    # Free fermions: periodic chain of even length at the critical field, E = -2 / sin(pi / 2n).
    model = tfim((6,), periodic=True)
    assert np.linalg.eigvalsh(sum_matrix(model, 6))[0] == pytest.approx(-2 / math.sin(math.pi / 12))


def test_hamlib_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    file = tmp_path / "tfim.hdf5"
    names = write_tfim_file(
        file, [((12,), "grid"), ((2, 3), "grid"), ((3, 3), "triangular")], fields=(0.5, 2)
    )
    assert sorted(hamlib_names(file)) == sorted(names)
    assert {
        "graph-1D-grid-pbc-qubitnodes_Lx-12_h-2",
        "graph-2D-grid-nonpbc-qubitnodes_Lx-2_Ly-3_h-0.5",
        "graph-2D-triag-pbc-qubitnodes_Lx-3_Ly-3_h-2",
    } <= set(names)
    assert read_hamlib(file, "/graph-1D-grid-pbc-qubitnodes_Lx-12_h-2") == (
        tfim((12,), periodic=True, field=2),
        12,
    )
    with h5py.File(file) as stored:
        text = stored["graph-1D-grid-pbc-qubitnodes_Lx-12_h-2"][()].decode()
    assert text.startswith("(1+0j) [Z0 Z1] +\n(1+0j) [Z0 Z11] +\n")
    assert text.endswith("(2+0j) [X11]")
    with pytest.raises(BadInput, match="has no Hamiltonian 'nothing'; it has graph"):
        read_hamlib(file, "nothing")
    with pytest.raises(BadInput, match="cannot read Hamiltonians"):
        read_hamlib(tmp_path / "none.hdf5", "x")
    with h5py.File(file, "a") as stored:
        stored.create_dataset("broken", data="(1+0j) [Z0 Q1]")
        stored.create_dataset("small", data="(1+0j) [Z0 Z5]").attrs["nqubits"] = 3
    with pytest.raises(BadInput, match=r"broken: observable .* found 'Q1'"):
        read_hamlib(file, "broken")
    with pytest.raises(BadInput, match="expected qubits below 3, its attribute nqubits, found qubit 5"):
        read_hamlib(file, "small")


# -- refused arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qpe(1), "at least 2 qubits"),
        (lambda: qpe(4, phase=1.5), "a phase in"),
        (lambda: qft(4, state="01"), "4 bits"),
        (lambda: qft(4, state=16), "found 16"),
        (lambda: ghz(0), "whole number from 1 to"),
        (lambda: qaoa(5), "no graph of 5 sites"),
        (lambda: qaoa(6, angles=[1]), "4 angles"),
        (lambda: tfim((2, 3, 4)), "one or two dimensions"),
        (lambda: tfim((4,), lattice="triangular"), "two dimensions"),
        (lambda: tfim((4,), lattice="kagome"), "expected a lattice"),
        (lambda: tfim((99999, 99999)), "at most 1048576 sites, found 9999800001"),
        (lambda: add_trotter(Circuit(4), tfim((4,)), 1, 0), "at least 1 Trotter step"),
        (lambda: add_trotter(Circuit(4), tfim((4,)), 1, 1, order=4), "order 1 or 2"),
        (lambda: add_trotter(Circuit(1), PauliSum.parse("(0+1j) X0"), 1, 1), "real weights"),
        (lambda: add_trotter(Circuit(2), tfim((4,)), 1, 1), "names qubit 3"),
        (lambda: Circuit(2).save("no/such/folder/x.qasm"), "cannot write the circuit"),
    ],
)
def test_bad_input_is_refused(make: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_the_former_way_to_a_circuit() -> None:
    circuit = qft(3)
    assert circuit.to_circuit() is circuit


def test_rotations_of_a_qft_share_sweeps() -> None:
    groups = [group for stage in plan(qft(16)).placement.groups() for group in stage]
    assert sum(group["sweeps"] for group in groups) < 1.5 * sum(group["rotations"] for group in groups)
