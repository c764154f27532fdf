"""The fuzz targets of the readers in Python: how to read an input, and samples to start from.

A target reads one input and returns, or raises `BadInput`. Any other exception is a finding, and so is an input that
takes longer than fuzz.py allows, or much more memory than it is long (`limited` in drive.py).
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import samples

from onehop import BadInput, Error, Group

ROOT = Path(__file__).resolve().parents[2]
EXTENTS = samples.EXTENTS


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes
    ----------
    read : callable
        Reads the input of type bytes; the second argument is an empty folder, for readers of files.
    samples : callable
        Yields valid inputs, given an empty folder.
    longest : int
        The longest input that the fuzzer makes.
    words : tuple of str
        What the fuzzer puts into inputs.
    """

    read: Callable[[bytes, Path], object]
    samples: Callable[[Path], Iterator[bytes]]
    longest: int = 4096
    words: tuple[str, ...] = ()


def _text(data: bytes) -> str:
    """Decode a text whose reader gets text, not bytes; other bytes become lone surrogates, as in arguments."""
    return data.decode("utf-8", "surrogateescape")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(" | "))


def _file(data: bytes, folder: Path) -> str:
    file = folder / "input"
    file.write_bytes(data)
    return str(file)


# -- circuits ----------------------------------------------------------------------------------------------------------


def _observable(data: bytes, folder: Path) -> None:
    from onehop.quantum import PauliSum

    found = PauliSum.parse(_text(data))
    assert PauliSum.parse(str(found)).qubits == found.qubits


# -- HDF5 --------------------------------------------------------------------------------------------------------------


def _state(data: bytes, folder: Path) -> None:
    from onehop.quantum import State

    State.load(_file(data, folder))


def _checkpoint(data: bytes, folder: Path) -> None:
    samples.resume(_file(data, folder))


def _hamlib(data: bytes, folder: Path) -> None:
    from onehop.quantum.io.hamlib import hamlib_names, read_hamlibs

    file = _file(data, folder)
    list(read_hamlibs(file, hamlib_names(file)))


# -- lattices ----------------------------------------------------------------------------------------------------------


def _gauge(data: bytes, folder: Path) -> None:
    from onehop.lattice import read_gauge

    assert np.isfinite(read_gauge(_file(data, folder), tolerance=float("inf"))[0].links).all()


def _links(data: bytes, folder: Path) -> None:
    from onehop.lattice.files import read_links

    assert np.isfinite(read_links(_file(data, folder), Group.alone())[0]).all()


def _lime(data: bytes, folder: Path) -> None:
    from onehop.lattice.files import lime, read_note

    file = _file(data, folder)
    read_note(file)
    for record in lime.records(file):
        assert 0 <= record.offset <= record.offset + record.length <= len(data)


def _vectors(data: bytes, folder: Path) -> None:
    from onehop.lattice import Geometry
    from onehop.lattice.files import read_vectors

    assert np.isfinite(read_vectors(_file(data, folder), Geometry(EXTENTS), Group.alone())).all()


def _hmc(data: bytes, folder: Path) -> None:
    from onehop.lattice.checkpoint import read_checkpoint

    read_checkpoint(_file(data, folder), Group.alone(), None, samples.HMC_SETTINGS)


def _propagator(data: bytes, folder: Path) -> None:
    from onehop.lattice import Geometry
    from onehop.lattice.files.propagators import PropagatorOptions, read_columns

    file = _file(data, folder)
    for kappa, name in ((None, "milc"), (0.11, "chroma"), (0.11, "grid"), (0.11, "openqcd")):
        quark = PropagatorOptions(kappa=kappa, convention=name).quark()
        try:
            found = read_columns(file, Geometry(EXTENTS), Group.alone(), quark)
        except BadInput:
            continue
        assert np.isfinite(found).all()


def _eigenvectors(data: bytes, folder: Path) -> None:
    from onehop.lattice.eigenvectors import read_eigenvectors

    assert np.isfinite(read_eigenvectors(_file(data, folder), samples.staggered()).vectors).all()


def _measurements(data: bytes, folder: Path) -> None:
    from onehop.lattice.measurements import read_measurements

    json.dumps(read_measurements(_file(data, folder)).parts(), allow_nan=False)


def _campaign(data: bytes, folder: Path) -> None:
    from onehop.cli.lattice.plan import CampaignFile

    CampaignFile(_file(data, folder)).work(500)


# -- texts and messages ------------------------------------------------------------------------------------------------


def _machine(data: bytes, folder: Path) -> None:
    from onehop.machine import load_machine

    file = folder / "machine.toml"
    file.write_bytes(data)
    load_machine(file)


def _schedule(data: bytes, folder: Path) -> None:
    from onehop.cli.schedule import load_schedule

    load_schedule(_file(data, folder))


def _message(data: bytes, folder: Path) -> None:
    from onehop import serialization
    from onehop.quantum.run.records import from_message
    from onehop.quantum.run.serialization import unpack
    from onehop.quantum.run.task import Outcome, Task

    def error(one: bytes) -> object:
        return serialization.decode_error(serialization.decode(one, "error"))

    def task(one: bytes) -> object:
        return from_message(serialization.decode(one, "task"), Task)

    def outcome(one: bytes) -> object:
        return from_message(serialization.decode(one, "outcome"), Outcome)

    for read in (task, outcome, unpack, error):
        try:
            read(data)
        except BadInput:
            continue


# -- the command line --------------------------------------------------------------------------------------------------

# Commands that start programs or compute for long are left out. So are paths: commands write where they are told.
_COMMANDS = ("schedule", "circuit", "plan", "machines", "map", "rails", "simulate", "hamlib")

# Sizes that a command may take at its word, and then computes for long. The machines h100 and a100 are none.
_LARGE = re.compile(r"(?<!\b[ah])\d{3}|[\d.]e\d|\d_\d", re.IGNORECASE)


def _no_program(*_: object, **__: object) -> None:
    raise Error("fuzzed commands start no programs")


def arguments_of(text: str) -> list[str]:
    """Return the arguments of a command line, or none if it is not to be run."""
    try:
        arguments = shlex.split(text)
    except ValueError:
        return []
    if not arguments or arguments[0] not in _COMMANDS or any(mark in text for mark in ("/", "~", "..", "\0")):
        return []
    return [] if _LARGE.search(text) else arguments


def _command_line(data: bytes, folder: Path) -> None:
    from onehop.cli import main

    if not (arguments := arguments_of(_text(data))):
        return
    samples.command_files(folder)
    os.chdir(folder)
    output, errors = io.StringIO(), io.StringIO()
    output.buffer = io.BytesIO()  # type: ignore[attr-defined]
    popen, subprocess.Popen = subprocess.Popen, _no_program  # type: ignore[assignment,misc]
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            code = main(arguments)
    finally:
        subprocess.Popen, sys.stdin = popen, stdin  # type: ignore[misc]
    assert code in (0, 1, 2), f"exit code {code}"
    assert code == 0 or errors.getvalue().strip(), f"exit code {code} without a message"
    assert "Traceback" not in errors.getvalue(), errors.getvalue()


_JSON = _words('" | { | } | [ | ] | : | , | null | 1e999 | -1 | 9223372036854775807 | 1e-400 | \\ud800')
_QASM = _words(
    'OPENQASM 2.0; | OPENQASM 3.0; | include "qelib1.inc"; | include "stdgates.inc"; | qreg q[3]; | '
    "creg c[3]; | qubit[3] q; | bit[3] c; | gate g(a) x { | opaque | barrier | measure | reset | "
    "if(c==1) | for int i in | ctrl(2) @ | negctrl @ | inv @ | pow(2) @ | pi | while | def | cx "
    "q[0],q[1]; | rz(pi/4) | -> | [0:2] | 99999999999 | 1e999 | /* | */ | // | U(0,0,0) | switch | "
    "const int n = | input angle | gphase(1)"
)
_XML = _words(
    "<lx>2</lx> | <precision> | </precision> | <suma> | </suma> | <dims> | <colors>3 | -1 | 0x | 1e9"
)

TARGETS = {
    "observable": Target(
        _observable, samples.observables, 512, ("X0", "Y1", "Z2", "*", "+", "1e999", "(1+0j) [")
    ),
    "state": Target(_state, samples.states, 8192),
    "checkpoint": Target(_checkpoint, samples.checkpoints, 16384),
    "hamlib": Target(_hamlib, samples.hamlibs, 8192),
    "gauge": Target(
        _gauge, samples.gauge_fields, 16384, (*_XML, "DIMENSION_1 = 2\n", "CHECKSUM = ", "END_HEADER\n")
    ),
    "links": Target(_links, samples.gauge_fields, 16384, _XML),
    "lime": Target(
        _lime, samples.lime_files, 4096, ("\x45\x67\x89", "scidac-record-xml", "<info>", "</info>")
    ),
    "vectors": Target(_vectors, samples.vectors, 8192, _XML),
    "hmc_checkpoint": Target(_hmc, samples.hmc_checkpoints, 16384, (*_XML, *_JSON)),
    "propagator": Target(_propagator, samples.propagators, 32768, (*_XML, "<convention>milc</convention>")),
    "eigenvectors": Target(_eigenvectors, samples.eigenvectors, 8192, ("'shape': (2, 24, 3)", *_JSON)),
    "measurements": Target(_measurements, samples.measurements, 32768, _JSON),
    "campaign": Target(
        _campaign, samples.campaigns, 2048, ("[measure]", "keep = ", "[", "true", "1e999", "2x2x2x2")
    ),
    "machine_file": Target(
        _machine, samples.machine_files, 8192, ("[[level]]", "=", '"', "nan", "inf", "1e999", "[")
    ),
    "schedule_file": Target(_schedule, samples.schedules, 4096, _JSON),
    "message": Target(_message, samples.messages, 4096, _JSON),
    "command_line": Target(
        _command_line, samples.command_lines, 512, ("--json", "-", "--help", "1x2", "1x0", "nan")
    ),
}
# The targets in tests/fuzz/readers, with the functions that make their samples.
NATIVE = {
    "schedule": (samples.schedules, 4096, _JSON),
    "tuning": (samples.tunings, 4096, _JSON),
    "reduce_tables": (samples.reduce_tables, 4096, _JSON),
    "machine": (samples.machines, 4096, _JSON),
    "qasm": (samples.openqasm, 2048, _QASM),
    "pauli": (samples.observables, 512, ("X0", "*", "+", "1e999")),
}
