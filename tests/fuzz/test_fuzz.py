"""Inputs that were once mishandled stay refused, and the checks of the fuzz targets find what they are for."""

import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drive  # noqa: E402
import fuzz  # noqa: E402
import samples  # noqa: E402
from targets import NATIVE, TARGETS, arguments_of  # noqa: E402

import onehop  # noqa: E402
from onehop import BadInput, Schedule, _core  # noqa: E402
from onehop.machine import Machine  # noqa: E402
from onehop.quantum import PauliSum, parse_qasm  # noqa: E402
from ranks import completed  # noqa: E402

FORKED = ("state", "checkpoint", "hamlib", "measurements")
# The same readers in C++ through their bindings; Pauli texts have a reader of their own in each language.
BOUND = {
    "schedule": lambda text: onehop.verify_or_throw(Schedule.from_json(text)),  # one seed asks for terabytes
    "tuning": _core.check_tuning,
    "reduce_tables": _core.check_reduce_tables,
    "machine": Machine.from_json,
    "pauli": PauliSum.parse,
    "qasm": parse_qasm,
}


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in FORKED])
def test_samples_are_read_and_seeds_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = TARGETS[name]

    def read(data: bytes) -> None:
        target.read(data, tmp_path)
        if name == "schedule_file":  # one is of the right form, but asks for terabytes
            onehop.verify_or_throw(Schedule.from_json(data.decode()))

    for data in target.samples(tmp_path):
        target.read(data, tmp_path)
    for data in samples.seeds(name):
        begin = time.process_time()
        with pytest.raises(BadInput):
            read(data)
        assert time.process_time() - begin < fuzz.INPUT_SECONDS


@pytest.mark.parametrize("name", FORKED)
def test_samples_of_the_other_targets_are_read(name: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    for data in TARGETS[name].samples(tmp_path):
        TARGETS[name].read(data, tmp_path)


@pytest.mark.parametrize("name", NATIVE)
def test_readers_in_cpp_through_their_bindings(name: str, tmp_path: Path) -> None:
    read = BOUND[name]
    for data in NATIVE[name][0](tmp_path):
        read(data.decode())
    for data in samples.seeds(name):
        text = data.decode("utf-8", "replace")
        with pytest.raises(BadInput):
            read(text)


def test_damaged_hamiltonians_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    for data in samples.seeds("hamlib"):
        with pytest.raises(BadInput):
            TARGETS["hamlib"].read(data, tmp_path)


def test_too_much_memory_is_found(tmp_path: Path) -> None:
    """In a process of its own, because memory is compared with the peak of the process."""
    program = f"""if True:
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(HERE)!r})
        import drive
        def takes(count):
            return drive.limited(lambda data, folder: bytearray(b"x" * count), Path("."))
        takes(1 << 20)(b"x")
        print("allowed", flush=True)
        takes(3 * drive.ALLOWANCE)(b"x")
    """
    done = completed([sys.executable, "-c", program], cwd=tmp_path)
    assert done.stdout == "allowed\n"
    assert "MemoryError: reading 1 bytes took" in done.stderr


def test_bad_messages_are_found(tmp_path: Path) -> None:
    def complains(text: str) -> object:
        def read(data: bytes, folder: Path) -> None:
            raise BadInput(text)

        return read

    drive.limited(complains("expected 1, found 2"), tmp_path)(b"x")
    for text in (" ", "x" * 10_000):
        with pytest.raises(AssertionError):
            drive.limited(complains(text), tmp_path)(b"x")


def test_every_sample_of_a_command_line_is_run(tmp_path: Path) -> None:
    assert all(arguments_of(data.decode()) for data in samples.command_lines(tmp_path))
    for text in (
        "circuit random --qubits 100",
        "simulate halo --machine h1000",
        "plan --extent 8x800",
        "rails --min-piece 1e9",
        "rails --min-piece 1_0_0",
        "launch x",
    ):
        assert arguments_of(text) == []


def test_a_command_line_is_replayed_from_a_relative_path(tmp_path: Path) -> None:
    (tmp_path / "finding").write_text("machines --json")
    for name, code in (("finding", 0), ("nothing", 1)):
        completed(
            [sys.executable, HERE / "drive.py", "command_line", "--replay", name], cwd=tmp_path, status=code
        )


def test_no_seed_is_kept_twice() -> None:
    found = [file.read_bytes() for file in samples.SEEDS.glob("*/*")]
    assert len(set(found)) == len(found)
    assert {file.name for file in samples.SEEDS.iterdir()} <= {*TARGETS, *NATIVE} - {*samples.SHARED}


def test_a_wrong_target_is_named() -> None:
    done = completed([sys.executable, str(HERE / "fuzz.py"), "nonsense"], status=2)
    assert "found nonsense" in done.stderr
