"""Ensembles from one command each: generated, resumed, reproduced and measured, with one error for what is wrong."""

import json
import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from commands import Command
from gauge_files import lime_file, lime_parts
from onehop import Group
from onehop.cli import main
from onehop.lattice import Gauge, Staggered, Wilson, hybrid_monte_carlo, mesons, read_gauge, thermalize
from onehop.lattice.checkpoint import Checkpoint, recipe_of, write_checkpoint
from ranks import Ranks

MAKE = (
    "lattice",
    "thermalize",
    "--extent",
    "4x4x2x4",
    "--beta",
    5.6,
    "--sweeps",
    2,
    "--every",
    3,
    "--seed",
    5,
)


def report(command: Command, *words: object) -> dict:
    done = command(*words, "--json", "-", status=0)
    return json.loads(done.stdout)


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Path:
    report(command, *MAKE, "--keep", 4, "-o", tmp_path / "run")
    return tmp_path / "run"


def test_an_ensemble_is_that_of_one_long_run_and_resumes(run: Path, command: Command) -> None:
    names = [f"{number:06d}.lime" for number in (2, 5, 8, 11)]
    assert [path.name for path in sorted(run.glob("*.lime"))] == names
    lines = [json.loads(line) for line in (run / "configurations.jsonl").read_text().splitlines()]
    gauge = Gauge(Group.alone(), (4, 4, 2, 4))
    done = 0
    for line in lines:
        plaquettes = thermalize(gauge, 5.6, line["number"] - done, seed=5, first=done)
        done = line["number"]
        assert (line["hash"], line["plaquettes"]["all"]) == (gauge.sha256(), plaquettes[-1])
    assert done == 11
    # As after an interrupt: the last file and its line, and a half of the line before, are missing.
    (run / names[3]).unlink()
    kept = (run / "configurations.jsonl").read_text()
    (run / "configurations.jsonl").write_text("\n".join(kept.splitlines()[:3])[:-40])
    again = report(command, *MAKE, "--keep", 4, "-o", run)
    assert again["resumed_from"] == 3
    assert (run / "configurations.jsonl").read_text() == kept
    assert again["configurations"] == [
        {name: line[name] for name in line if name != "digest"} for line in lines
    ]
    assert again["sha256"] == lines[-1]["hash"]


def test_altered_lines_of_configurations_are_read_from_the_files(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = run / "configurations.jsonl"
    kept = where.read_text()

    def again() -> dict:
        assert main([*map(str, MAKE), "--keep", "4", "-o", str(run), "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out)

    expected = again()
    lines = [json.loads(line) for line in kept.splitlines()]
    lines[0]["plaquettes"]["all"], lines[1]["link_trace"] = 0.9, "x"
    del lines[2]["hash"], lines[3]["plaquettes"]
    swapped = kept.replace('"number": 2,', '"number": 0,').replace('"number": 5,', '"number": 2,')
    for text in (
        "\n".join(map(json.dumps, lines)),
        swapped.replace('"number": 0,', '"number": 5,'),
        "[1]\nnull\n3",
    ):
        where.write_text(text)
        assert again() == expected
    os.truncate(where, 1 << 42)
    assert again() == expected
    where.write_text(kept)
    other = Gauge(Group.alone(), (4, 4, 2, 4))
    recipe = recipe_of({"algorithm": "heatbath", "seed": 6}, 0, None)
    for make in (
        lambda: write_checkpoint(str(run / "000002.lime"), other, Checkpoint(recipe, 2)),
        lambda: (run / "000002.lime").write_bytes((run / "000005.lime").read_bytes()[:5000]),
    ):
        make()
        assert main([*map(str, MAKE), "--keep", "4", "-o", str(run)]) == 2
        assert "000002.lime" in capsys.readouterr().err


def test_an_interrupted_thermalization_resumes(run: Path, command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(run / "000002.lime", other / "checkpoint")  # of the same run, after two of eight sweeps
    shorter, longer = ([sweeps if word == 2 else word for word in MAKE] for sweeps in (1, 8))
    refused = command(*shorter, "--keep", 2, "-o", other)
    assert "expected a checkpoint after at most 1 updates, found one after 2" in refused.stderr
    report(command, *longer, "--keep", 2, "-o", other)
    assert sorted(path.name for path in other.iterdir()) == [
        "000008.lime",
        "000011.lime",
        "configurations.jsonl",
    ]
    assert read_gauge(str(other / "000011.lime"))[1].sha256 == read_gauge(str(run / "000011.lime"))[1].sha256


@pytest.mark.parametrize("algorithm", ["heatbath", "hmc"])
def test_a_file_is_reproduced_on_any_ranks(
    algorithm: str, command: Command, ranks: Ranks, tmp_path: Path
) -> None:
    file, single = tmp_path / "a.lime", tmp_path / "single.lime"
    how = ["--sweeps", 3] if algorithm == "heatbath" else ["--trajectories", 2, "--steps", 4]
    words = [
        "lattice",
        "thermalize",
        "--extent",
        "4x4x2x4",
        "--algorithm",
        algorithm,
        *how,
        "--start",
        "random",
    ]
    made = report(command, *words, "-o", file)
    done = ranks.onehop("lattice", "reproduce", file, "-n", 2, "--grid", "1x2x1x1", "--json", "-")
    found = json.loads(done.stdout)
    assert "made the same bits; SHA-256" in done.stderr
    assert (found["same"], found["ranks"], found["updates"]) == (True, 2, 3 if algorithm == "heatbath" else 2)
    assert found["sha256"] == found["reproduced_sha256"] == made["sha256"] == read_gauge(str(file))[1].sha256
    assert report(command, *words, "-o", single, "--precision", "single")["sha256"] == made["sha256"]
    assert report(command, "lattice", "reproduce", single)["same"]
    gauge = read_gauge(str(file))[0]
    more = report(command, *words[:2], *words[4:-2], "--start", file, "--first", 7, "-o", tmp_path / "b.lime")
    if algorithm == "hmc":
        hybrid_monte_carlo(gauge, 6.0, 2, steps=4, first=7)
    else:
        thermalize(gauge, 6.0, 3, first=7)
    assert more["sha256"] == gauge.sha256()
    assert report(command, "lattice", "reproduce", tmp_path / "b.lime")["same"]
    shutil.copy(single, file)  # another start than that of the recipe
    refused = command("lattice", "reproduce", tmp_path / "b.lime", status=2)
    assert "it is another file than the one that the run began with" in refused.stderr


def test_reproduce_finds_other_bits(run: Path, command: Command, tmp_path: Path) -> None:
    file = run / "000005.lime"
    data = file.read_bytes()
    assert b'"done": 5' in data
    file.write_bytes(data.replace(b'"beta": 5.6', b'"beta": 5.7'))
    refused = command("lattice", "reproduce", file, status=2)
    assert "expected the recipe of its links, which" in refused.stderr
    assert command("lattice", "convert", run / "000002.lime", "-o", tmp_path / "c.lime").returncode == 0
    assert command("lattice", "reproduce", tmp_path / "c.lime").returncode == 2  # without a recipe
    missing = command("lattice", "reproduce", tmp_path / "missing.lime", status=2)
    assert "No such file" in missing.stderr
    os.mkfifo(tmp_path / "pipe.lime")
    pipe = command("lattice", "reproduce", tmp_path / "pipe.lime", status=2)
    assert "expected a file, found a folder, a pipe" in pipe.stderr


def test_bad_folders_of_ensembles(run: Path, command: Command) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    other_beta = [5.9 if word == 5.6 else word for word in MAKE]
    for words, says in (
        ((*MAKE, "--keep", 2), "expected no further configuration"),
        ((*MAKE[:-3], 4, *MAKE[-2:], "--keep", 6), "expected 000006.lime of an ensemble"),
        ((*other_beta, "--keep", 6), "another run, with beta 5.6 instead of 5.9"),
    ):
        refused = command(*words, "-o", run, status=2)
        assert says in refused.stderr
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    for name in ("000005", "000011"):
        shutil.copy(run / "000002.lime", run / f"{name}.lime")
        refused = command(*MAKE, "--keep", 6, "-o", run)
        assert f"after {int(name)} updates of this run, found those after 2" in refused.stderr
        (run / f"{name}.lime").write_bytes(before[f"{name}.lime"])
    (run / "000005.lime").unlink()
    assert "a file is missing" in command(*MAKE, "--keep", 6, "-o", run).stderr


def test_measurements_of_all_configurations(
    run: Path, command: Command, ranks: Ranks, tmp_path: Path
) -> None:
    files, stored = sorted(run.glob("*.lime")), tmp_path / "run.h5"
    how = ["--flow", 0.2, "--flow-step", 0.1, "--quarks", "wilson", "--mass", 0.6]
    assert command("lattice", "measure", *files[:2], "-o", stored, *how).returncode == 0
    done = ranks.onehop("lattice", "measure", *files, "-o", stored, *how, "-n", 2, "--json", "-")
    assert "2 configurations measured now, by 1 rank each, 2 before" in done.stderr
    found = json.loads(done.stdout)
    lines = [json.loads(one) for one in (run / "configurations.jsonl").read_text().splitlines()]
    assert [one["hash"] for one in found["configurations"]] == [one["hash"] for one in lines]
    assert [one["plaquettes"] for one in found["configurations"]] == [one["plaquettes"] for one in lines]
    with h5py.File(stored) as inside:
        assert json.loads(inside.attrs["options"])["flow"] == 0.2
        pions, energies = inside["series/correlators/pion"][:], inside["series/flow/t2_energy"][:]
    assert (pions.shape, energies.shape) == ((4, 4), (4, 3))
    for number in (0, 3):
        alone = report(command, "lattice", "measure", files[number], *how)
        assert alone["quarks"]["pion"] == pytest.approx(pions[number], rel=1e-6)
        assert [one["t2_energy"] for one in alone["flow"]] == energies[number].tolist()
        assert alone["configurations"][0]["hash"] == lines[number]["hash"]
        assert alone["correlators"][0] == {
            "name": "pion",
            "momentum": [0, 0, 0],
            "values": [alone["quarks"]["pion"]],
        }
    assert found["correlators"][0]["values"] == pions.tolist()
    grid = ranks.onehop("lattice", "measure", *files, "-n", 2, "--grid", "1x1x1x2", "--json", "-")
    assert "4 configurations measured now, by 2 ranks each" in grid.stderr
    assert json.loads(grid.stdout)["series"]["plaquette"] == found["series"]["plaquette"]


def test_bad_ensembles_are_refused_and_nothing_is_changed(
    run: Path, command: Command, tmp_path: Path
) -> None:
    files, stored = sorted(run.glob("*.lime")), tmp_path / "run.h5"
    assert command("lattice", "measure", *files[:3], "-o", stored).returncode == 0
    before = stored.read_bytes()
    other = tmp_path / "000014.lime"
    report(command, "lattice", "thermalize", "--extent", "4x4x4x4", "--sweeps", 1, "-o", other)
    (tmp_path / "b").mkdir()
    altered = tmp_path / "b" / files[0].name
    shutil.copy(files[3], altered)
    (tmp_path / "not.h5").write_text("no HDF5")
    with h5py.File(tmp_path / "other.h5", "w") as inside:
        inside["numbers"] = np.zeros(3)
    for words, says in (
        ((*files, other, "-o", stored), "expected files of one lattice, found 4x4x2x4"),
        (
            (files[0], files[1], files[3], "--json", "-"),
            "expected configurations 3 apart, found none between 5 and 11",
        ),
        ((*files, "--flow", 0.1, "-o", stored), "was measured with other options, flow None instead of 0.1"),
        ((altered, *files[1:], "-o", stored), "expected the links that were measured, with the hash"),
        ((*files, files[0], "-o", stored), "with names of their own"),
        ((*files,), "expected --output or --json with several files"),
        ((*files, "-o", tmp_path / "not.h5"), "cannot read measurements from"),
        ((*files, "-o", tmp_path / "other.h5"), "found another HDF5 file"),
        ((*files, "--grid", "1x1x1x3", "-o", stored), "a number of ranks that divides 1"),
    ):
        refused = command("lattice", "measure", *words)
        assert refused.returncode == 2, words
        assert says in refused.stderr
        assert stored.read_bytes() == before
    files[3].write_bytes(files[3].read_bytes()[:-3000])
    assert "cut off" in command("lattice", "measure", *files, "-o", stored).stderr
    assert stored.read_bytes() == before


def test_links_that_no_checksum_tells_are_compared(run: Path, command: Command, tmp_path: Path) -> None:
    """The header of a file has no checksums, or a wrong one that was accepted."""
    file, stored = tmp_path / "1.lime", tmp_path / "run.h5"
    for wrong in (b"", b"<suma>1</suma><sumb>2</sumb>"):
        for which, status in ((0, 0), (0, 0), (1, 2)):
            parts = dict(lime_parts(sorted(run.glob("*.lime"))[which].read_bytes()))
            parts["scidac-checksum"] = wrong
            file.write_bytes(lime_file([one for one in parts.items() if one[1]]))
            done = command("lattice", "measure", file, "-o", stored, "--accept-checksum", status=status)
        assert "expected the links that were measured, with the hash" in done.stderr
        stored.unlink()


def test_measure_takes_the_options_of_solve(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "cfg.lime"
    report(command, "lattice", "thermalize", "--extent", "4x4x4x4", "--sweeps", 1, "-o", file)
    gauge = read_gauge(str(file), width=3)[0]
    for words, made in (
        (
            ("asqtad", "--u0", 0.9, "--boundary", "periodic"),
            Staggered(gauge, "asqtad", u0=0.9, antiperiodic=False),
        ),
        (("hisq", "--naik-epsilon", 0.2), Staggered(gauge, "hisq", naik_epsilon=0.2)),
    ):
        found = report(command, "lattice", "measure", file, "--mass", 0.5, "--quarks", *words)["quarks"]
        expected = mesons.staggered_mesons(gauge, made, 0.5, tolerance=1e-9)
        np.testing.assert_allclose(found["pion"], expected.pion, rtol=1e-7)
    periodic = ("lattice", "measure", file, "--quarks", "wilson", "--boundary", "periodic")
    found = report(command, *periodic, "--kappa", 0.11)["quarks"]
    np.testing.assert_allclose(found["mass"], 1 / 0.22 - 4)
    expected = mesons.wilson_mesons(gauge, Wilson(gauge, 0.11, antiperiodic=False), tolerance=1e-9)
    np.testing.assert_allclose(found["pion"], expected.pion, rtol=1e-7)
    both = command(*periodic, "--kappa", 0.11, "--mass", 1)
    assert "expected either --mass or --kappa" in both.stderr


def test_sources_momenta_and_noise_of_an_ensemble(
    run: Path, command: Command, ranks: Ranks, tmp_path: Path
) -> None:
    files, stored = sorted(run.glob("*.lime"))[:2], tmp_path / "run.h5"
    gaussian = "--quarks clover --mass 0.6 --source gaussian --sources 2 --source-at 1x0x1x1 --width 1.5 "
    how = (gaussian + "--smear-steps 3 --ape-steps 1 --momenta 1 --noise-vectors 2 --seed 4").split()
    done = ranks.onehop("lattice", "measure", *files, "-o", stored, *how, "-n", 2, "--json", "-")
    found = json.loads(done.stdout)
    assert found["options"]["origin"] == [1, 0, 1, 1]
    listed = {(one["name"], *one["momentum"]): np.array(one["values"]) for one in found["correlators"]}
    assert len(listed) == 18 * 4
    gauge = read_gauge(str(files[1]))[0]
    operator = Wilson(gauge, 1 / 9.2, csw=1.0)
    options = {"source": "gaussian", "sources": 2, "origin": (1, 0, 1, 1), "width": 1.5, "smear_steps": 3}
    expected = mesons.wilson_mesons(gauge, operator, ape_steps=1, momenta=1, **options)
    for name, values in expected.correlators.items():
        for momentum, one in zip(expected.momenta, values, strict=True):
            np.testing.assert_allclose(
                listed[(name, *momentum)][1], one, rtol=1e-6, atol=1e-8 * abs(values).max()
            )
    condensate = mesons.chiral_condensate(gauge, operator, noise_vectors=2, seed=4).mean
    assert found["series"]["condensate"][1] == pytest.approx(condensate, rel=1e-7)
    other = command("lattice", "measure", *files, "-o", stored, *how[:-1], 5)
    assert "measured with other options, seed 4 instead of 5" in other.stderr
    outside = command("lattice", "measure", files[0], *how[:6], "--source-at", "4x0x0x0", status=2)
    assert "expected a source inside the lattice of 4x4x2x4, found 4x0x0x0" in outside.stderr
    words = ("lattice", "measure", files[0], "--quarks", "hisq", "--mass", 1, "--source", "wall")
    wall = report(command, *words)
    assert "expected links of `onehop lattice fix`" in wall["quarks"]["said"]
