"""Functions whose arguments are of another type: an error of onehop in one line, and none of Python's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onehop
from onehop import codec, collectives, lattice, lossless, machine, predict, topology
from onehop import quantum as q
from onehop.launch import command_of, current_launch, find_mpi_launcher, launch
from onehop.machine import rails
from onehop.quantum.noise import channel as noise

WRONG = ["x", b"x", None, 2.5j, object(), np.array(3), np.datetime64("2020-01-01"), [Path], {}, float("nan"), -7,
         np.array(["a"]), np.ones((2, 3)), 2**70, "\ud800"]  # fmt: skip
GROUP = onehop.Group.alone()
GAUGE = lattice.Gauge(GROUP, [4, 4, 4, 4])
STAGGERED, WILSON = lattice.Staggered(GAUGE), lattice.Wilson(GAUGE)
LOW = lattice.lowest_eigenvectors(STAGGERED, count=1, residual=1e-2)
SOURCE = np.ones((4, 4, 4, 4, 3), complex)
SPINORS = np.ones((4, 4, 4, 4, 4, 3), complex)
HALO = {"extents": [8], "grid": [2], "width": 1, "periodic": [True], "fields": 1}
SCHEDULE = onehop.halo(**HALO)
ARRAY = np.zeros(8)
BITS = {
    "bits": 4,
    "local": 3,
    "pairs": [(0, 3)],
    "element_bytes": 16,
    "dtype": None,
    "codec": "raw",
    "rank": 0,
}
GRID = {"extents": [4, 4, 4, 4], "grid": [1, 1, 1, 1], "map": None, "hosts": None}
SOLVER = {"tolerance": 1e-2, "iterations": 1, "precision": "double", "sloppy_precision": "single",
          "reproducible": False, "half_halo": False, "progress": None}  # fmt: skip
SOLVES = {"tolerance": 1e-2, "iterations": 3, "progress": None}
CIRCUIT = q.Circuit(2, 2).h(0)
RUN = {"circuit": CIRCUIT, "group": GROUP, "shots": 1, "seed": 1, "precision": "double", "observables": [],
       "progress": None, "every": 600, "profile": False, "threads": 1, "staging": 0, "search_seconds": 0.1,
       "method": "auto", "state_folder": None, "checkpoint": None, "device": "cpu"}  # fmt: skip
MATRIX, PAULIS = q.DensityMatrix(1), q.PauliSum.parse("Z0")
QUBITS = {"qubits": [0]}
WIRE = codec.encode("q8", np.ones(8, np.float32))

# Functions with arguments that they take.
CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (onehop.halo, HALO),
    (onehop.halo_block, {**HALO, "rank": 0}),
    (onehop.patterns.allgather, {"ranks": 2, "elements": 4, "element_bytes": 8, "only_rank": 0}),
    (onehop.count, {"schedule": SCHEDULE}),
    (onehop.verify, {"schedule": SCHEDULE, "limit": 1}),
    (onehop.merge, {"parts": [SCHEDULE.part(0), SCHEDULE.part(1)]}),
    (onehop.permute_bits, BITS),
    (onehop.permute_bits_one_swap_at_a_time, BITS),
    (onehop.ArraySpec, {"name": "a", "elements": 4, "element_bytes": 8, "type": "bytes"}),
    (onehop.Plan, {"schedule": onehop.patterns.allgather(1, 8, 8), "group": GROUP, "arrays": [ARRAY], "verify": False}),
    (onehop.allreduce, {"group": GROUP, "array": ARRAY, "op": "sum", "codec": "raw", "algorithm": "auto", "out": None,
                        "compress_above": 0}),
    (onehop.reduce_scatter, {"group": GROUP, "array": ARRAY, "op": "sum", "codec": "raw", "out": None}),
    (onehop.broadcast, {"group": GROUP, "array": ARRAY, "root": 0}),
    (onehop.barrier, {"group": GROUP}),
    (onehop.gather, {"group": GROUP, "array": ARRAY, "root": 0, "lengths": None, "out": None}),
    (onehop.scatter, {"group": GROUP, "array": ARRAY, "root": 0, "lengths": None, "out": None}),
    (onehop.reduce, {"group": GROUP, "array": ARRAY, "root": 0, "op": "sum", "out": None}),
    (onehop.scan, {"group": GROUP, "array": ARRAY, "op": "sum", "exclusive": False, "out": None}),
    (onehop.patterns.allreduce, {"ranks": 2, "elements": 4, "dtype": "float32", "op": "sum", "algorithm": "one_shot"}),
    (onehop.patterns.broadcast, {"ranks": 2, "elements": 4, "element_bytes": 8, "root": 0}),
    (onehop.patterns.reduce_scatter, {"ranks": 2, "elements": 4, "dtype": "float32", "op": "sum"}),
    (onehop.patterns.alltoall, {"ranks": 2, "elements": 4, "element_bytes": 8}),
    (onehop.patterns.scan, {"ranks": 2, "elements": 4, "dtype": "float32", "op": "sum"}),
    (collectives.allgather, {"group": GROUP, "array": ARRAY, "out": None}),
    (collectives.all_to_all, {"group": GROUP, "array": ARRAY, "out": None}),
    (collectives.should_allreduce, {"array": ARRAY, "codec": "raw", "op": "sum"}),
    (onehop.Poisson, {"group": GROUP, "extents": (4, 4), "mass": 1.0, "seed": 1}),
    (GROUP.split, {"color": 0, "key": 0}),
    (GROUP.allgather, {"mine": b"x"}),
    (GROUP.empty, {"shape": (2,), "dtype": float}),
    (GROUP.channels, {"send": None, "receive": None, "slots": 0, "slot_bytes": 0, "transport": "auto"}),
    (onehop.Group.from_store, {"store": None, "rank": 0, "size": 1, "prefix": "a"}),
    (onehop.Group.from_allgather, {"rank": 0, "size": 1, "allgather": lambda mine: [mine]}),
    (onehop.Group.from_mpi, {"comm": None}),
    (codec.encode, {"codec": "q8", "array": np.ones(8, np.float32), "dtype": None}),
    (codec.decode, {"codec": "q8", "wire": WIRE, "out": np.ones(8, np.float32), "dtype": None, "add": False}),
    (codec.encoded_bytes, {"codec": "q8", "dtype": "float32", "elements": 8}),
    (codec.element_type, {"dtype": "float32"}),
    (lossless.encode, {"array": np.ones(8, np.float32), "dtype": None}),
    (lossless.decode, {"wire": lossless.encode(np.ones(8, np.float32)), "out": np.ones(8, np.float32)}),
    (lossless.most_bytes, {"dtype": "float32", "elements": 8}),
    (lattice.Gauge, {"group": GROUP, **GRID}),
    (lattice.Geometry, {**GRID, "ranks": 1, "lanes": 1, "width": 1, "parities": 2}),
    (lattice.Geometry.best_grid, {"extents": [4, 4], "ranks": 1, "width": 1}),
    (lattice.Field, {"geometry": GAUGE.geometry, "group": GROUP, "numbers": (3,), "precision": "double"}),
    (lattice.Field(GAUGE.geometry, GROUP).beside, {"direction": 0, "distance": 1}),
    (lattice.Field(GAUGE.geometry, GROUP).faces, {"parity": 0}),
    (GAUGE.set_links, {"links": GAUGE.links}),
    (lattice.thermalize, {"gauge": GAUGE, "beta": 6.0, "sweeps": 0, "seed": 1, "over_relaxations": 0, "first": 0,
                          "progress": None}),
    (lattice.hybrid_monte_carlo, {"gauge": GAUGE, "beta": 6.0, "trajectories": 0, "length": 0.1, "steps": 1,
                                  "integrator": "leapfrog", "seed": 1, "first": 0, "progress": None}),
    (lattice.Hmc, {"gauge": GAUGE, "beta": 6.0, "length": 0.1, "steps": 1, "integrator": "omelyan", "seed": 1}),
    (lattice.Hmc(GAUGE, 6.0, steps=1).reverse, {"number": 0}),
    (lattice.gradient_flow, {"gauge": GAUGE, "time": 0.01, "step": 0.01, "tolerance": None, "every": 1,
                             "progress": None}),
    (lattice.Flow, {"gauge": GAUGE}),
    (lattice.Flow(GAUGE).step_within, {"epsilon": 0.01, "tolerance": 0.1}),
    (lattice.polyakov_loop, {"gauge": GAUGE}),
    (lattice.field_strength, {"gauge": GAUGE}),
    (lattice.clover_leaves, {"gauge": GAUGE}),
    (lattice.clover_blocks, {"strength": lattice.clover_leaves(GAUGE), "weight": 0.1, "inverse": False}),
    (lattice.Staggered, {"gauge": GAUGE, "action": "staggered", "u0": 1.0, "antiperiodic": True, "lanes": 8,
                         "threads": 1, "phases": "standard"}),
    (lattice.Wilson, {"gauge": GAUGE, "kappa": 0.1, "csw": 0.0, "antiperiodic": True, "recon": 18,
                      "precision": "double", "lanes": 0, "threads": 1}),
    (STAGGERED.solve, {"source": SOURCE, "mass": 1.0, **SOLVER}),
    (STAGGERED.dslash, {"fields": SOURCE}),
    (STAGGERED.apply, {"fields": SOURCE, "mass": 1.0}),
    (WILSON.solve, {"source": SPINORS, **SOLVER, "method": "cgnr", "schwarz": 0}),
    (STAGGERED.apply_mdagm, {"fields": SOURCE, "mass": 1.0}),
    (STAGGERED.solve_shifts, {"source": SOURCE, "mass": 1.0, "shifts": [0.1], **SOLVER}),
    (STAGGERED.filter, {"field": SOURCE, "degree": 2, "low": 1.0, "high": 4.0}),
    (lattice.Staggered.of_links, {"group": GROUP, "extents": [4, 4, 4, 4], "fat": GAUGE.links, "long": GAUGE.links}),
    (WILSON.precondition, {"fields": SPINORS, "dagger": False}),
    (WILSON.dslash, {"fields": SPINORS, "dagger": False}),
    (WILSON.apply, {"fields": SPINORS, "dagger": False}),
    (lattice.lowest_eigenvectors, {"operator": STAGGERED, "count": 1, "residual": 1e-2, "degree": 0,
                                   "applications": 1000, "progress": None}),
    (lattice.deflated_solve, {"operator": STAGGERED, "source": SOURCE, "mass": 1.0, "low": LOW, **SOLVER}),
    (lattice.write_eigenvectors, {"path": "none/none", "found": LOW, "operator": STAGGERED}),
    (lattice.read_eigenvectors, {"path": "none", "operator": STAGGERED}),
    (lattice.wilson_kappa, {"mass": 0.1}),
    (lattice.read_gauge, {"path": "none", "group": GROUP, "grid": None, "tolerance": 1e-4, "width": 1}),
    (lattice.read_links, {"path": "none", "group": GROUP, "grid": None, "width": 1}),
    (lattice.read_vectors, {"path": "none", "geometry": GAUGE.geometry, "group": GROUP}),
    (
        lattice.write_vectors,
        {
            "path": "none/none",
            "vectors": SOURCE[None],
            "geometry": GAUGE.geometry,
            "group": GROUP,
            "precision": 32,
            "note": "a",
            "overwrite": False,
        },
    ),
    (
        lattice.write_gauge,
        {"path": "none/none", "gauge": GAUGE, "file_format": "ildg", "precision": 32, "note": ""},
    ),
    (lattice.smearing.ape, {"gauge": GAUGE, "alpha": 0.1, "steps": 0, "space_only": False}),
    (lattice.smearing.stout, {"gauge": GAUGE, "rho": 0.1, "steps": 0, "space_only": False}),
    (lattice.smearing.fat_links, {"gauge": GAUGE, "weights": "asqtad", "u0": 1.0, "precision": "double"}),
    (lattice.smearing.hisq_links, {"gauge": GAUGE, "naik_epsilon": 0.0, "precision": "double"}),
    (lattice.smearing.path_weights, {"name": "asqtad", "u0": 1.0, "naik_epsilon": 0.0}),
    (lattice.mesons.staggered_mesons, {"gauge": GAUGE, "operator": STAGGERED, "mass": 1.0, **SOLVES}),
    (lattice.mesons.wilson_mesons, {"gauge": GAUGE, "operator": WILSON, **SOLVES}),
    (lattice.mesons.chiral_condensate, {"gauge": GAUGE, "operator": STAGGERED, "mass": 1.0, "noise_vectors": 1,
                                        "seed": 1, **SOLVES}),
    (lattice.mesons.effective_mass, {"correlator": np.array([8.0, 4, 3, 4]), "distance": 1}),
    (machine.load_machine, {"name": machine.machine_names()[0]}),
    (machine.parse_machine, {"text": "x", "name": "m", "file": "f"}),
    (machine.allreduce_traffic, {"ranks": 2, "elements": 4, "dtype": "float32", "algorithm": "two_shot"}),
    (machine.halo_traffic, HALO),
    (machine.message_traffic, {"ranks": 2, "rounds": [[(0, 1, 8)]]}),
    (machine.permutation_traffic, {"bits": 4, "local": 3, "permutation": [3, 1, 2, 0], "dtype": "complex128",
                                   "codec": "raw", "shared": False}),
    (machine.goal, {"schedule": SCHEDULE, "compute_ns": 1, "copy_ns_per_byte": 0}),
    (machine.loggops, {"schedule": SCHEDULE, "latency": 1, "overhead": 1, "gap": 1, "gap_per_byte": 1,
                       "overhead_per_byte": 1, "compute_ns": 1, "copy_ns_per_byte": 0}),
    (machine.traffic_of, {"schedule": SCHEDULE}),
    (machine.simulate, {"schedule": SCHEDULE, "machine": machine.machine_names()[0], "ranks": None, "compute": 0.0,
                        "accuracy": 0.1, "slots": 2}),
    (machine.load_machine("mira").job, {"processors": 4}),
    (rails.schedule_rails, {"schedule": SCHEDULE, "ranks_per_host": 2, "rails": 2, "cut": False}),
    (rails.assign_rails, {"messages": [(0, 1, 9)], "rails": 2, "speeds": [1, 2]}),
    (rails.halo_messages, {"faces": [4, 4], "ranks": [2, 2], "inside": False}),
    (machine.machine_rails, {"schedule": SCHEDULE, "machine": machine.machine_names()[0], "ranks": None,
                             "rule": "optimum", "min_piece": 1}),
    (machine.trace_rounds, {"file": "none", "ranks": 2, "codec": "raw", "dtype": "float32", "algorithm": "auto",
                            "machine": None}),
    (topology.Grid, {"extents": (2, 2), "periodic": False, "bytes": None}),
    (topology.HostLayout, {"host_of_rank": [0, 0], "groups": [], "costs": [], "torus": []}),
    (topology.machine_hosts, {"machine": machine.machine_names()[0], "ranks": 2, "costs": None}),
    (topology.switch_hosts, {"file": "none", "per_host": [1], "names": ["n0"], "costs": [1], "hosts": 1}),
    (topology.map_schedule, {"schedule": SCHEDULE, "hosts": topology.HostLayout([0, 0]), "refine": True, "seed": 1,
                             "steps": 1}),
    (topology.renumber, {"schedule": SCHEDULE, "rank_at": [1, 0]}),
    (predict.predict_circuit, {"circuit": CIRCUIT, "machine": machine.machine_names()[0], "ranks": 1,
                               "precision": "double", "places": None, "search_seconds": 0.01}),
    (predict.predict_solver, {"extents": [8, 8, 8, 8], "machine": machine.machine_names()[0], "ranks": 1,
                              "grid": None, "action": "hisq", "precision": "double", "recon": 18, "sums": "direct"}),
    (launch, {"ranks": None, "command": ["true"]}),
    (launch, {"ranks": 0, "command": ["true"]}),
    (command_of, {"program": "a.py", "arguments": ["x"], "module": False}),
    (current_launch, {"environment": {}}),
    (find_mpi_launcher, {"mpi": "none"}),
    (q.Circuit, {"qubits": 2, "clbits": 2}),
    (q.simulate, RUN),
    (q.compile, {"circuit": CIRCUIT, "group": GROUP, "reproducible": False}),
    (q.simulate_density, {"circuit": CIRCUIT, "noise": None, "shots": 1, "seed": 1}),
    (q.simulate_trajectories, {"circuit": CIRCUIT, "group": GROUP, "noise": None, "trajectories": 1, "shots": 1,
                               "seed": 1, "memory": 0}),
    (q.plan, {"circuit": CIRCUIT, "ranks": 1, "ranks_per_node": None, "ranks_per_host": None}),
    (q.plan_density, {"circuit": CIRCUIT, "ranks": 1, "precision": "double", "noise": None, "ranks_per_node": None,
                      "ranks_per_host": None}),
    (q.lindblad, {"matrix": q.DensityMatrix(1), "hamiltonian": "Z0", "jumps": [(np.eye(2), [0])], "time": 0.1,
                  "steps": 1}),
    (q.parameter_shift, {"circuit": q.Circuit(1).rx(q.Parameter("a"), 0), "bindings": [0.1], "observables": ["Z0"],
                         "evaluate": lambda bound, sums: [0.0], "weights": [1.0]}),
    (q.Condition, {"clbits": [0], "value": 1, "negated": False}),
    (q.Circuit(2).compose, {"other": CIRCUIT, "qubits": [1, 0], "clbits": None}),
    (q.Circuit(2).control, {"number": 1, "values": 0}),
    (q.Circuit(2).h(0).power, {"exponent": 0.5}),
    (q.Circuit(2).draw, {"output": "text", "width": 80}),
    (q.Circuit(2).to_qasm, {"version": 3}),
    (q.Circuit(2).unitary, {"matrix": np.eye(2) + 0j, "qubits": [0], "controls": [1], "control_values": 1}),
    (q.Circuit(2).diagonal, {"values": np.ones(2) + 0j, "qubits": [0], "controls": [1], "control_values": 1}),
    (q.Circuit(2).generated, {"generator": np.eye(2) + 0j, "angle": 0.1, "qubits": [0]}),
    (q.Circuit(2).pauli_rotation, {"paulis": "XY", "angle": 0.1, "qubits": [0, 1], "controls": [],
                                   "control_values": None}),
    (q.Circuit(2).global_phase, {"angle": 0.1, "controls": [0]}),
    (q.Circuit(2).permutation, {"targets": [1, 0]}),
    (q.Circuit(2, 2).measure, {"qubits": [0], "clbits": [1]}),
    (q.Circuit(2, 2).reset, QUBITS),
    (q.Circuit(2).barrier, QUBITS),
    (q.Circuit(2).h(0).operation, {"index": 0}),
    (q.Circuit(2).cp, {"angle": 0.1, "control": 0, "target": 1}),
    (q.Circuit(2).gate, {"name": "rx", "qubits": [0], "parameters": [0.1]}),
    (q.Circuit(2, 2).rx, {"angle": 0.1, "qubit": 0}),
    *((getattr(state, name), QUBITS) for state in (q.State(2), q.DensityMatrix(2))
      for name in ("probabilities", "density_matrix", "partial_trace", "entropy")),
    (q.State(2).expectation, {"observable": "Z0"}),
    (q.State(1).fidelity, {"other": q.State(1)}),
    (q.State(1).inner_product, {"other": q.State(1)}),
    (q.State.load, {"file": "none"}),
    (q.State(1).save, {"file": "none/none", "group": None, "attributes": None}),
    (MATRIX.set_matrix, {"matrix": np.eye(2) / 2 + 0j}),
    (MATRIX.apply, {"channel": q.channel("bit_flip", 0.1), **QUBITS}),
    (MATRIX.run, {"circuit": q.Circuit(1), "noise": None}),
    (MATRIX.collapse, {"qubit": 0, "value": 0, "probability": 1.0}),
    (MATRIX.entropy, {"base": 2}),
    (MATRIX.sample, {"shots": 1}),
    (MATRIX.measure, QUBITS),
    (MATRIX.set_basis_state, {"index": 0}),
    (noise.depolarizing, {"probability": 0.1, "qubits": 1}),
    (noise.thermal_relaxation, {"t1": 2.0, "t2": 2.0, "time": 0.1, "excited": 0.1}),
    (q.load_qasm, {"file": "none"}),
    (q.gradients, {"circuit": q.Circuit(1).rx(q.Parameter("a"), 0), "bindings": [0.1], "observables": ["Z0"],
                   "group": GROUP, "noise": None}),
    (q.imaginary_time, {"state": q.State(1), "hamiltonian": "Z0", "time": 0.1, "steps": 1}),
    (q.State, {"qubits": 1, "precision": "double", "group": GROUP}),
    (q.State(1).set_amplitudes, {"amplitudes": [1, 0], "normalize": False}),
    (q.State(1).set_basis_state, {"index": 0}),
    (q.State(1).sample, {"shots": 1, "seed": 1, "bases": None}),
    (q.DensityMatrix, {"qubits": 1, "group": GROUP}),
    (q.gate, {"name": "rx", "qubits": [0], "parameters": [0.1]}),
    (q.channel, {"name": "bit_flip"}),
    (q.NoiseModel().add, {"what": "bit_flip", "gates": ["x"], "qubits": [0]}),
    (q.NoiseModel().readout, {"one_for_zero": 0.1, "qubits": [0]}),
    (q.NoiseModel().after, {"operation": CIRCUIT.operations[0]}),
    (q.NoiseModel().check_names, {"circuit": CIRCUIT}),
    (q.NoiseModel().on, QUBITS),
    (q.NoiseModel.parse, {"text": "bit_flip=0.1"}),
    (q.Channel, {"kraus": [np.eye(2)]}),
    (q.PauliSum, {"terms": []}),
    (q.PauliSum.parse, {"text": "Z0"}),
    (PAULIS.require, {"qubits": 1}),
    (q.PauliTerm, {"coefficient": 1.0, "paulis": ((0, "X"),)}),
    (q.Parameter, {"name": "a"}),
    (q.Expression, {"terms": {"a": 1.0}, "constant": 0.0}),
    (q.parse_qasm, {"text": "OPENQASM 3; qubit q;", "name": "a", "folder": "."}),
]  # fmt: skip


# Arguments that are not read with the values of the others, or not before their object is used.
UNREAD = {"Circuit.diagonal.values", "Geometry.ranks", "Grid.bytes", "Grid.extents", "Grid.periodic",
          "Group.channels.slot_bytes", "Group.channels.slots", "PauliSum.terms", "PauliTerm.coefficient",
          "command_of.module", "path_weights.naik_epsilon", "predict_circuit.places",
          "should_allreduce.array", "should_allreduce.codec", "should_allreduce.op", "simulate.every",
          "thermalize.beta", "thermalize.progress", "thermalize.seed"}  # fmt: skip


def wrong_calls(function: Callable[..., Any], good: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each call of a function with one wrong argument whose error is none of onehop's, or that has none."""
    for name in good:
        for wrong in WRONG:
            try:
                function(**{**good, name: wrong})
            except onehop.Error as error:
                if "\n" in str(error):
                    yield f"{name}={wrong!r}", str(error)
            except Exception as error:
                yield f"{name}={wrong!r}", f"{type(error).__name__}: {error}"
            else:
                if type(wrong) in (object, list, complex) and f"{function.__qualname__}.{name}" not in UNREAD:
                    yield f"{name}={wrong!r}", "no error"


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: CALLS[number][0].__qualname__)
def test_another_type_is_an_error_of_onehop(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dict(wrong_calls(*CALLS[number])) == {}
    assert {one.name for one in tmp_path.iterdir()} <= {"x"}  # a path of another type names no file


# Arguments whose numbers need not be finite: data that are moved, reduced or multiplied, and times to search for.
# Circuits are checked when they run.
_ANY_NUMBERS = {"field", "fields", "array", "out", "search_seconds", "correlator", "constant"}
# Without effect at these values of the others, or possible.
_UNUSED = {("thermalize", "beta"), ("Staggered", "u0"), ("path_weights", "naik_epsilon"),
           ("thermal_relaxation", "t1")}  # fmt: skip


def not_finite(value: Any) -> Iterator[Any]:
    """Yield a number, an array or a list of numbers with NaN or an infinity in it."""
    for bad in (float("nan"), float("inf"), -float("inf")):
        if isinstance(value, float):
            yield bad
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            for place in (0, 5 % value.size, -1):
                array = value.copy()
                array.flat[place] = bad
                yield array
        elif isinstance(value, list) and value and isinstance(value[0], int | float):
            yield [bad, *value[1:]]


def test_numbers_that_are_not_finite_are_refused() -> None:
    taken, tried = [], 0
    for function, good in CALLS:
        for name, value in good.items():
            if (
                name in _ANY_NUMBERS
                or "Circuit." in function.__qualname__
                or (function.__qualname__, name) in _UNUSED
            ):
                continue
            for bad in not_finite(value):
                tried += 1
                try:
                    function(**{**good, name: bad})
                except onehop.Error:
                    continue
                taken.append((function.__qualname__, name, bad))
    assert taken == []
    assert tried > 150


def test_options_that_are_not_finite_are_refused() -> None:
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(
            onehop.BadInput, match=r"residual: expected a number above 0 and finite, found (nan|inf)"
        ):
            lattice.lowest_eigenvectors(STAGGERED, count=1, residual=wrong)


def test_a_field_strength_in_another_convention_is_refused() -> None:
    with pytest.raises(onehop.BadInput, match="expected anti-Hermitian matrices"):
        lattice.clover_blocks(1j * lattice.clover_leaves(GAUGE) + np.eye(3), 0.1)
