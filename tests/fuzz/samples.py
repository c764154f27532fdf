"""Valid inputs for each fuzz target, from the same makers as the samples of the other tests."""

import functools
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from onehop import Group, _core, halo, permute_bits  # noqa: E402

# The makers of gauge files, as a module of its own with a small lattice: the fuzzer finds more in short files.
_SPEC = importlib.util.spec_from_file_location("fuzz_gauge_files", ROOT / "tests/support/gauge_files.py")
assert _SPEC is not None
gauge_files = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gauge_files)  # type: ignore[union-attr]
EXTENTS = gauge_files.EXTENTS = (2, 2, 2, 2)
HMC_SETTINGS = {"algorithm": "hmc", "beta": 5.5, "extent": list(EXTENTS)}
SEEDS = Path(__file__).with_name("seeds")
# Targets that read the same inputs as another, and its seeds.
SHARED = {"pauli": "observable", "schedule_file": "schedule", "links": "gauge"}


def seeds(target: str) -> Iterator[bytes]:
    """Yield the inputs in `seeds` that once were mishandled."""
    for file in sorted((SEEDS / SHARED.get(target, target)).glob("*")):
        yield file.read_bytes()


# -- circuits ----------------------------------------------------------------------------------------------------------


def openqasm(folder: Path) -> Iterator[bytes]:
    """Yield OpenQASM 2 and 3 programs."""
    for file in sorted((ROOT / "tests/data/qasm").glob("*.qasm")):
        yield file.read_bytes()
    yield (
        b'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\ncreg c[3];\n'
        b"gate g(a,b) x,y { rz(a/2) x; cx x,y; U(a,b,-pi) y; }\n"
        b"opaque o(a) x;\nh q;\ng(pi/3,sin(0.1)^2) q[0],q[1];\nbarrier q;\nmeasure q->c;\n"
        b"if(c==5) x q[2];\nreset q[0];\n"
    )
    yield (
        b'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[3] q;\nbit[3] c;\ngate g(a) x { rz(a/2) x; }\n'
        b"ctrl(2) @ x q[0], q[1], q[2];\ninv @ pow(0.5) @ s q[0];\nfor int i in [0:2] { g(0.5*i) q[1]; }\n"
        b"c[0] = measure q[0];\nif (c[0] == true) { x q[1]; } else { h q[1]; }\nbarrier q;\nreset q[0];\n"
        b"array[uint[4], 2] a = {c, 3};\ndef f(qubit r, int n) -> bit { if (n < 2) { return 1; } return measure r; }\n"
        b"while (a[1] > 0) { a[1] -= 1; c[2] = f(q[1], a[1]); }\nswitch (c) { case 1 { end; } default { x q; } }\n"
    )


def observables(folder: Path) -> Iterator[bytes]:
    """Yield sums of Pauli strings."""
    yield b"Z0 Z1 + 0.5*X2 - 2 I"
    yield b"(1+0j) [Z0 Z1] + (2.5e-1-1j) [X0 Y3]"
    yield b"Y0*Y3 - 1e-3 X61"


def _hdf5(folder: Path, make: object) -> bytes:
    file = folder / "sample.h5"
    file.unlink(missing_ok=True)
    make(file)  # type: ignore[operator]
    return file.read_bytes()


def states(folder: Path) -> Iterator[bytes]:
    """Yield state files."""
    from checkpointed_runs import mixed_circuit
    from onehop import quantum

    for precision in ("double", "single"):
        state = quantum.simulate(mixed_circuit(2), seed=1, precision=precision).state
        yield _hdf5(folder, state.save)


def checkpoints(folder: Path) -> Iterator[bytes]:
    """Yield checkpoints of circuits."""
    from checkpointed_runs import killed_at, mixed_circuit

    for step in (1, 5):
        yield _hdf5(folder, lambda file, step=step: killed_at(step, mixed_circuit(1), file, 1))


def resume(file: str) -> None:
    """Resume the run of `checkpoints` from a file."""
    from checkpointed_runs import OBSERVABLE, mixed_circuit
    from onehop import quantum

    quantum.simulate(mixed_circuit(1), shots=50, observables=[OBSERVABLE], checkpoint=file, every=1e9)


def hamlibs(folder: Path) -> Iterator[bytes]:
    """Yield files of Hamiltonians."""
    from onehop.quantum.io.hamlib import write_tfim_file

    yield _hdf5(folder, lambda file: write_tfim_file(file, [((4,), "grid")], fields=(1,)))


# -- lattices ----------------------------------------------------------------------------------------------------------


def _links() -> tuple[np.ndarray, float]:
    from onehop.lattice import Gauge, thermalize

    gauge = Gauge(Group.alone(), EXTENTS)
    thermalize(gauge, 5.5, 2, over_relaxations=0)
    return gauge.links, gauge.plaquettes().all


def gauge_fields(folder: Path) -> Iterator[bytes]:
    """Yield a gauge field in the five formats."""
    links, plaquette = _links()
    yield gauge_files.milc_file(links, ">")
    yield gauge_files.milc_file(links, "<")
    yield gauge_files.nersc_file(links, ">d", 3)
    yield gauge_files.nersc_file(links, "<f", 2)
    yield gauge_files.ildg_file(links, "")
    yield gauge_files.scidac_file(links, "")
    yield gauge_files.openqcd_file(links, "<", plaquette)


def lime_files(folder: Path) -> Iterator[bytes]:
    """Yield LIME files with a note, and without."""
    note = b"<scidacRecord><info>{&quot;a&quot;: 1}</info></scidacRecord>"
    yield gauge_files.lime_record("scidac-record-xml", note) + gauge_files.lime_record("x", b"abc")
    yield gauge_files.lime_record("ildg-format", b"<lx>2</lx>")


def vectors(folder: Path) -> Iterator[bytes]:
    """Yield colour vectors in SciDAC files, in both precisions."""
    from onehop.lattice import Geometry, write_vectors

    file = folder / "vectors"
    for precision in (32, 64):
        write_vectors(
            str(file),
            np.ones((1, *EXTENTS, 3), complex),
            Geometry(EXTENTS),
            Group.alone(),
            precision=precision,
            overwrite=True,
        )
        yield file.read_bytes()


def hmc_checkpoints(folder: Path) -> Iterator[bytes]:
    """Yield checkpoints of HMC."""
    from onehop.lattice import Gauge
    from onehop.lattice.checkpoint import Checkpoint, write_checkpoint

    gauge = Gauge(Group.alone(), EXTENTS)
    file = folder / "run.lime"
    history = [{"delta_h": 0.25, "accepted": True, "plaquette": gauge.plaquettes().all}]
    write_checkpoint(str(file), gauge, Checkpoint(HMC_SETTINGS, 1, history))
    yield file.read_bytes()


def propagators(folder: Path) -> Iterator[bytes]:
    """Yield propagators of staggered and Wilson quarks, and single spinors."""
    from onehop.lattice import Geometry, write_propagator

    file, how = str(folder / "columns"), {"precision": 32, "overwrite": True}
    staggered, wilson = (
        np.ones((count, *EXTENTS, *inner), complex) for count, inner in ((3, (3,)), (12, (4, 3)))
    )
    for columns, kappa, name in ((staggered, None, "milc"), (wilson, 0.11, "chroma")):
        write_propagator(file, columns, Geometry(EXTENTS), Group.alone(), kappa=kappa, convention=name, **how)
        yield Path(file).read_bytes()
    yield gauge_files.grid_file([("SpinVector4_ColourVector3", wilson[0])], "D")
    yield gauge_files.openqcd_spinor_file(wilson[0])


@functools.cache
def staggered() -> Any:
    """Return the operator of the eigenvectors."""
    from onehop.lattice import Gauge, Staggered

    return Staggered(Gauge(Group.alone(), EXTENTS))


def eigenvectors(folder: Path) -> Iterator[bytes]:
    """Yield files of eigenvectors in both precisions."""
    from onehop.lattice.eigen import lowest_eigenvectors
    from onehop.lattice.eigenvectors import write_eigenvectors

    file = folder / "eigenvectors"
    found = lowest_eigenvectors(staggered(), count=2)
    for precision in ("double", "half"):
        write_eigenvectors(str(file), found, staggered(), precision=precision, overwrite=True)
        yield file.read_bytes()


def measurements(folder: Path) -> Iterator[bytes]:
    """Yield measurements with a digest and without."""
    from onehop.lattice.measurements import Measurements, write_measurements

    about = {"file": "1.lime", "number": 1, "checksums": {"suma": "1"}, "hash": "2"}
    series = {"plaquette": np.ones(1), "flow/charge": np.ones((1, 2)), "correlators/pion": np.ones((1, 2))}
    found = Measurements({"quarks": "hisq"}, EXTENTS, [about], [0.1, 0.2], series)
    data = _hdf5(folder, lambda file: write_measurements(str(file), found))
    yield data
    yield data.rpartition(b"\nonehop sha256 ")[0]


def campaigns(folder: Path) -> Iterator[bytes]:
    """Yield campaign files."""
    yield (ROOT / "examples/campaign/campaign.toml").read_bytes()
    yield b"[thermalize]\nextent = [4, 4, 4, 4]\nkeep = 2\noutput = 'run'\n"


# -- texts and messages ------------------------------------------------------------------------------------------------


def machine_files(folder: Path) -> Iterator[bytes]:
    """Yield the machine files of the package that are short."""
    for file in sorted((ROOT / "python/onehop/machine/files").glob("*.toml")):
        if len(data := file.read_bytes()) < 8192:
            yield data


def machines(folder: Path) -> Iterator[bytes]:
    """Yield machines as JSON."""
    from onehop.machine import load_machine, machine_names

    for name in machine_names():
        yield load_machine(name).to_json().encode()


def schedules(folder: Path) -> Iterator[bytes]:
    """Yield schedules of several patterns."""
    yield halo(extents=(4, 4), grid=(2, 1)).to_json().encode()
    yield halo(extents=(4,), grid=(2,), codec="fp16", dtype="float32", periodic=False).to_json().encode()
    yield permute_bits(4, local=2, permutation=[3, 1, 2, 0]).to_json().encode()


def tunings(folder: Path) -> Iterator[bytes]:
    """Yield the built-in tuning."""
    yield _core.built_in_tuning().encode()


def reduce_tables(folder: Path) -> Iterator[bytes]:
    """Yield the built-in tables of the all-reduce."""
    yield _core.built_in_reduce_tables().encode()


def messages(folder: Path) -> Iterator[bytes]:
    """Yield messages between processes."""
    from onehop import BadInput, serialization
    from onehop.quantum import Circuit, PauliSum
    from onehop.quantum.circuit import Condition
    from onehop.quantum.noise.channel import channel
    from onehop.quantum.run.records import to_message
    from onehop.quantum.run.serialization import pack
    from onehop.quantum.run.task import Outcome, Saved, Task
    from onehop.quantum.steps import Program, Save

    circuit = Circuit(2, 2).h(0).cx(0, 1).measure(0, 0)
    program = Program(Circuit(2, 2), readout=[(1, 0.1, 0.2)])
    program.set_state(np.array([0, 1, 0, 0], complex), [1, 0])
    program.mark(0)
    program.channel(channel("amplitude_damping", 0.1).kraus, [1], "damping", Condition([0], 1))
    program.save(Save("expval", "value", "average", observable=PauliSum.parse("X0 Z1")), [0, 1])
    program.misread(np.eye(4), [0, 1])
    program.jump(0, Condition([1, 0], 3))
    yield to_message("task", Task(program.circuit, 10, 3, (), "double", program, "density_matrix"))
    saved = {"value": Saved("probabilities", "list", True, {"0x1": [np.ones(2)]})}
    yield to_message("outcome", Outcome([3], [1], np.zeros(1, np.uint32), [0.5], saved=saved))
    yield pack(circuit)
    yield to_message("task", Task(circuit, 10, 3, (PauliSum.parse("Z0 + 0.5*X1"),), "double"))
    yield serialization.encode_error(BadInput("expected this, found that"))


# -- command lines -----------------------------------------------------------------------------------------------------


def command_files(folder: Path) -> None:
    """Write the files that the command lines name."""
    (folder / "s.json").write_bytes(next(schedules(folder)))
    (folder / "c.qasm").write_bytes(
        b'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[2];\nh q[0];\ncx q[0],q[1];\n'
    )


def command_lines(folder: Path) -> Iterator[bytes]:
    """Yield command lines without `onehop`."""
    yield b"schedule halo --extent 8x8 --grid 2x2 --width 1x2:0 --periodic 1x0 --json -"
    yield b"schedule "
    yield b"schedule permutation --bits 4 --local 2 --swap 0:3 --json"
    for word in ("show", "count", "verify"):
        yield f"schedule {word} s.json --json".encode()
    yield b"circuit random --qubits 4 --depth 3 --seed 7"
    yield b"machines --json"
    yield b"machines h100"
    yield b"map --per-host 2,2 --grid 2x2 --periodic --bytes 8x8 --costs 1x2 --seed 3 --json"
    yield b"rails --ranks 2x2 --rails 3 --faces 4x4 --speeds 1,1,2 --min-piece 2 --skip-inside --json"
    yield b"simulate halo --machine h100 --grid 2x2 --extent 8x8 --json"
    yield b"simulate allreduce --machine a100-pcie --ranks 4 --elements 64"
    yield b"simulate s.json --machine mira"


def dictionary(words: tuple[str, ...]) -> str:
    """Return words in the format of libFuzzer's dictionaries."""
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word.encode()) + '"\n' for word in words)
