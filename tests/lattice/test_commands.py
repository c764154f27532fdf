"""`onehop lattice thermalize`, `smear` and `measure` as commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands import Command
from gauge_fields import random_gauge
from onehop import BadInput, Error, Group
from onehop.cli import main
from onehop.lattice import (
    Gauge,
    Geometry,
    hybrid_monte_carlo,
    read_gauge,
    read_vectors,
    smearing,
    write_gauge,
    write_vectors,
)
from onehop.lattice.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from onehop.lattice.files import read_note
from ranks import Ranks
from staggered_reference import phase_change, some_field


def test_a_stopped_run_resumes(tmp_path: Path) -> None:
    kept, settings = tmp_path / "run.lime", {"beta": 5.7, "note": "<&>"}
    group = Group.alone()
    assert read_checkpoint(str(kept), group, None, settings) is None
    gauge = random_gauge(group, (4, 4, 4, 4))
    progress = Checkpoint(settings, 3, [0.1, gauge.plaquettes().all])
    write_checkpoint(str(kept), gauge, progress)
    found = read_checkpoint(str(kept), group, None, settings, 1)
    assert found is not None
    again, state = found
    assert again.links.tobytes() == gauge.links.tobytes()
    assert state == progress
    with pytest.raises(BadInput, match=r"another run, with beta 5\.7 instead of 6"):
        read_checkpoint(str(kept), group, None, {**settings, "beta": 6.0}, 1)
    with pytest.raises(BadInput, match="another run, with the first update 1 instead of 0"):
        read_checkpoint(str(kept), group, None, settings)
    write_gauge(str(kept), gauge, overwrite=True)
    assert read_note(str(kept)) == ""
    with pytest.raises(BadInput, match="not a checkpoint"):
        read_checkpoint(str(kept), group, None, settings)
    for note in (
        '{"settings": null}',
        '{"settings": {"beta": 5.7, "note": "<&>"}, "done": -3, "history": []}',
    ):
        write_gauge(str(kept), gauge, overwrite=True, note=note)
        with pytest.raises(BadInput, match="not a checkpoint"):
            read_checkpoint(str(kept), group, None, settings)
    with pytest.raises(BadInput, match="expected the format ildg or nersc"):
        write_gauge(str(tmp_path / "a.milc"), gauge, note="something")


def test_generate_smear_measure(ranks: Ranks, command: Command, tmp_path: Path) -> None:
    def run(*arguments: object) -> dict[str, object]:
        start = ranks.onehop if "-n" in arguments else command
        done = start("lattice", *arguments, "--json", "-")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    whole, part, kept = (tmp_path / name for name in ("whole.lime", "part.lime", "kept.lime"))
    what = ["thermalize", "--extent", 4, 4, 4, 8, "--beta", 5.6, "--algorithm", "hmc", "--steps", 6]
    one = run(*what, "--sweeps", 3, "-n", 2, "-o", whole)
    assert len(one["history"]) == len(one["delta_h"]) == 3
    run(*what, "--sweeps", 1, "--checkpoint", kept)
    other = run(*what, "--sweeps", 3, "--checkpoint", kept, "-o", part)
    assert other["resumed_from"] == 1
    assert {**other, "grid": one["grid"], "resumed_from": None} == one
    assert read_gauge(str(part))[0].links.tobytes() == read_gauge(str(whole))[0].links.tobytes()

    measured = run("measure", whole, "--flow", 0.2, "--plot", tmp_path / "flow.png", "-n", 2)
    assert [point["time"] for point in measured["flow"]] == pytest.approx(np.linspace(0, 0.2, 11))
    assert measured["plaquette"] == one["plaquette"]
    assert (tmp_path / "flow.png").stat().st_size > 10000
    smooth = run("smear", whole, "--kind", "flow", "--time", 0.2, "-o", tmp_path / "smooth.lime")
    assert smooth["charge"] == pytest.approx(measured["charge_after_flow"], abs=1e-12)
    assert (measured["flow"][0]["charge"], measured["flow"][-1]["charge"]) == (
        measured["charge"],
        measured["charge_after_flow"],
    )

    quarks = f"--quarks hisq --mass 0.3 --noise-vectors 2 --residual 1e-8 --plot {tmp_path}/mesons.png"
    found = run("measure", whole, *quarks.split())["quarks"]
    assert len(found["pion"]) == 8
    assert len(found["pion_mass"]) == 4
    assert found["pion_mass"][0] > 0
    assert found["condensate"] > 0
    assert found["true_residual"] <= 1e-8

    fat, long_links = tmp_path / "fat.lime", tmp_path / "long.lime"
    run("smear", whole, "--kind", "hisq", "--fat", fat, "--long", long_links, "-n", 2)
    expected = smearing.hisq_links(read_gauge(str(whole))[0])
    np.testing.assert_array_equal(read_gauge(str(fat), tolerance=np.inf)[0].links, expected.fat)
    np.testing.assert_array_equal(read_gauge(str(long_links), tolerance=np.inf)[0].links, expected.long_links)
    refused = command("lattice", "solve", "--fat", fat, "--long", long_links, "--mass", 0.3, status=2)
    assert "expected links with the phases" in refused.stderr
    masses = ("--mass", 0.3)
    seen = set()
    for boundary in ((), ("--boundary", "periodic")):
        made = ("--kind", "hisq", "--fat", fat, "--long", long_links, "--phases", "--overwrite")
        run("smear", whole, *made, *boundary)
        by_links = run("solve", "--fat", fat, "--long", long_links, *masses)
        by_action = run("solve", whole, "--action", "hisq", *masses, *boundary)
        assert by_links["true_residual"] == pytest.approx(by_action["true_residual"], rel=1e-3)
        seen.add(by_links["true_residual"])
    assert len(seen) == 2


def test_files_are_followed_through_links_and_kept(tmp_path: Path) -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    real, link = tmp_path / "real.lime", tmp_path / "link.lime"
    link.symlink_to(real)
    write_gauge(str(link), gauge)
    assert link.is_symlink()
    assert read_gauge(str(real))[1].plaquettes.all == 1
    before = real.read_bytes()
    with pytest.raises(BadInput, match="exists already"):
        write_gauge(str(link), gauge)
    with pytest.raises(BadInput, match="the folder"):
        write_gauge(str(tmp_path), gauge, "ildg", overwrite=True)
    assert real.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.lime", "real.lime"]


def test_a_trajectory_that_runs_away_is_an_error() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    with pytest.raises(Error, match="diverged"):
        hybrid_monte_carlo(gauge, 5.6, 1, length=1e300, steps=2)
    assert gauge.plaquettes().all == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("measure no.lime --plot flow.png", "expected --flow"),
        ("measure no.lime --quarks hisq", "expected --mass"),
        (
            "measure no.lime --quarks hisq --mass 1 --source gaussian",
            "a point sink and another source than gaussian",
        ),
        (
            "measure no.lime --quarks hisq --mass 1 --one-link --source z2",
            "expected --source point with --one-link",
        ),
        ("measure no.lime --quarks wilson --mass 1 --source-at 0x0x0x-1", "--source-at as 4 numbers"),
        ("measure no.lime --flow 1 --flow-step 0", "expected a step of the flow"),
        ("smear no.lime --kind smooth", "expected --kind"),
        ("smear no.lime --kind hisq -o a.lime", "expected --fat and --long"),
        ("smear no.lime --fat a.lime", "expected --output"),
        ("smear no.lime --kind stout --time 3", "--time is for --kind flow"),
        ("smear no.lime --kind hisq --fat a.lime --boundary periodic", "--boundary goes with --phases"),
        ("smear no.lime --kind hisq --fat a.lime --long a.lime", "expected --long with another file"),
        ("smear no.lime --kind hisq --fat a.lime --long no/b.lime", "there is no folder"),
        ("thermalize --extent 4x4x4x4 --algorithm langevin", "heatbath or hmc"),
        ("thermalize --extent 4x4x4x4 -o no/a.lime", "there is no folder"),
        ("thermalize --extent 4x4x4x4 -o /dev/full --format ildg --overwrite", "no regular file"),
        ("thermalize --extent 4x4x4x4 -o a.foo", "expected a file name that ends"),
        ("thermalize --extent 4x4x4 --checkpoint a.lime", "four directions"),
        ("solve no.lime --mass 0.1 --long a.lime", "--long goes with --fat"),
        ("solve --fat no.lime --mass 0.1 --action hisq", "--action hisq needs a gauge field"),
        ("solve no.lime --mass 0.1 --precision single", "--tolerance of 1e-06"),
        ("solve no.lime --mass 0.1 -o x.lime --output-precision half", "--output-precision double or single"),
        ("solve no.lime --action wilson", "either --kappa or one --mass"),
        ("solve no.lime --action clover --kappa 0.1 --sloppy-precision quarter", "double, single or half"),
    ],
)
def test_refused(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lattice", *arguments.split()]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_info_of_many_ranks_counts_one(command: Command) -> None:
    """The halos of all 65,536 ranks would take 80 GB."""
    done = command(
        "lattice", "info", "--extent", *[128] * 4, "--grid", "16x16x16x16", "--json", "-", status=0
    )
    found = json.loads(done.stdout)
    assert found["bytes_sent"] == 8 * 8**3 * found["site_bytes"] * found["width"]
    assert found["messages_sent"] == 8


def test_solves_with_the_phases_of_milc(ranks: Ranks, command: Command, tmp_path: Path) -> None:
    """With MILC's phases the solution is the standard one transformed by S = (-1)^(t (x + y + z))."""
    extents, group = (4, 4, 4, 8), Group.alone()
    gauge, geometry = random_gauge(group, extents), Geometry(extents, ranks=1)
    names = {
        name: str(tmp_path / f"{name}.lime") for name in ("cfg", "theirs", "ours", "x", "y", "fat", "long")
    }
    write_gauge(names["cfg"], gauge)
    source = some_field(extents, 4)[None]
    signs = phase_change(extents)[..., None]
    write_vectors(names["theirs"], source, geometry, group, precision=64)
    write_vectors(names["ours"], signs * source, geometry, group, precision=64)
    common = ("--mass", 0.3, "--output-precision", "double", "--overwrite")

    def solved(*words: object) -> np.ndarray:
        start = ranks.onehop if "-n" in words else command
        done = start("lattice", "solve", *words, "-o", names["x"], *common)
        assert done.returncode == 0, done.stderr
        return read_vectors(names["x"], geometry, group)

    for action in ("staggered", "hisq"):
        cfg = (names["cfg"], "--action", action)
        ours = solved(*cfg, "--source-file", names["ours"])
        theirs = solved(*cfg, "--source-file", names["theirs"], "--phases", "milc", "-n", 2)
        np.testing.assert_allclose(theirs, signs * ours, atol=1e-8)
        wrong = solved(*cfg, "--source-file", names["theirs"])
        assert np.linalg.norm(wrong - theirs) > 0.5 * np.linalg.norm(theirs)
    files = ("--fat", names["fat"], "--long", names["long"])
    command("lattice", "smear", names["cfg"], "--kind", "hisq", *files, "--phases", "milc", status=0)
    assert read_note(names["fat"]) == "links with milc phases, antiperiodic in time"
    np.testing.assert_allclose(solved(*files, "--source-file", names["theirs"]), theirs, atol=1e-8)
    done = command("lattice", "solve", names["cfg"], "--mass", 0.3, "--phases", "chroma", status=2)
    assert "standard or milc, found 'chroma'" in done.stderr
    # The correlators are equal; the condensate differs only by the noise.
    found = []
    for phases in ("standard", "milc"):
        words = f"--quarks staggered --mass 0.3 --noise-vectors 1 --phases {phases} --json -"
        done = command("lattice", "measure", names["cfg"], *words.split(), status=0)
        found.append(json.loads(done.stdout)["quarks"])
    np.testing.assert_allclose(found[0]["pion"], found[1]["pion"], rtol=1e-6)
    np.testing.assert_allclose(found[0]["rho"], found[1]["rho"], rtol=1e-5, atol=1e-9)
    assert found[0]["condensate"] != pytest.approx(found[1]["condensate"], rel=1e-6)
    assert found[0]["condensate"] == pytest.approx(found[1]["condensate"], rel=0.2)


def test_a_run_in_parts_on_other_ranks_gives_the_same_bits(
    ranks: Ranks, command: Command, tmp_path: Path
) -> None:
    what = ["lattice", "thermalize", "--beta", 5.7, "--over-relaxations", 1]
    whole, first, second = (tmp_path / name for name in ("whole.lime", "first.nersc", "second.lime"))
    new = [*what, "--extent", 4, 4, 4, 8]
    done = ranks.onehop(*new, "--sweeps", 3, "-n", 2, "-o", whole, "--json", "-", status=0)
    history = json.loads(done.stdout)["history"]
    assert len(history) == 3
    done = ranks.onehop("lattice", "measure", whole, "-n", 2, "--json", "-")
    assert json.loads(done.stdout)["plaquette"] == history[-1], done.stderr
    assert command(*new, "--sweeps", 1, "-o", first).returncode == 0
    done = command(*what, "--start", first, "--first", 1, "--sweeps", 2, "-o", second, status=0)
    assert read_gauge(str(second))[0].links.tobytes() == read_gauge(str(whole))[0].links.tobytes()


def test_averages_that_are_no_numbers_are_an_error_of_one_line(command: Command, tmp_path: Path) -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    gauge.set_links(gauge.links * 1e80)
    field = tmp_path / "cfg"
    data = np.stack([gauge.links.real, gauge.links.imag], axis=-1).astype("<f8")
    sizes = "".join(f"DIMENSION_{d} = 4\n" for d in (1, 2, 3, 4))
    head = f"BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\n{sizes}FLOATING_POINT = IEEE64LITTLE\nEND_HEADER\n"
    field.write_bytes(head.encode() + data.tobytes())
    out = tmp_path / "out.json"
    done = command("lattice", "measure", field, "--tolerance", 1e300, "--json", out)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "numbers that are not finite" in done.stderr
    assert "plaquette" in done.stderr
    assert not out.exists()
