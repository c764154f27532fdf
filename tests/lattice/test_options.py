"""Lattice commands refuse options that would have no effect, whatever their value, and bad tolerances."""

from pathlib import Path

import pytest

from onehop.cli import main
from onehop.cli.commands import leaves
from onehop.options import fields_of

FIELDS = {path[1]: fields_of(command.options) for path, command in leaves() if path[0] == "lattice"}
SOLVE = "solve no.lime --mass 0.1"
THERMALIZE = "thermalize --extent 4x4x4x4"
STAGGERED, WILSON = ("staggered", "asqtad", "hisq"), ("wilson", "clover")
# Commands, and options with values that each of them must refuse.
REFUSED = {
    "info --extent 8x8 --grid 2x2": "--ranks 3, -n 4",
    "info --extent 4x4x4x4": "--action wilson, --precision single, --recon 12, --sums pairwise, --accept-checksum",
    "info no.lime": "--lanes 8, --machine mira",
    "info --extent 4x4x4x4 --machine mira": "--width 1, --site-bytes 48",
    "info --extent 4x4x4x4 --machine mira --action hisq": "--recon 12",
    "measure no.lime": "--flow-step 0.02, --flow-every 1, --flow-action wilson, --flow-tolerance 1e-3, --mass 0.1, "
    "--csw 1.0, --noise-vectors 2, --residual 1e-9, --phases milc, --kappa 0.1, --u0 1, --naik-epsilon 0, "
    "--projection u3, --boundary periodic, --source wall, --sink wall, --source-at 0x0x0x0, --sources 2, --width 2, "
    "--smear-steps 3, --ape-alpha 0.5, --ape-steps 0, --momenta 1, --seed 1, --one-link",
    **{
        f"measure no.lime --quarks {action} --mass 0.1": "--csw 2, --kappa 0.1, --width 1, --seed 2"
        for action in STAGGERED
    },
    "measure no.lime --quarks hisq --mass 0.1": "--csw 2, --kappa 0.1, --u0 1",
    "measure no.lime --quarks asqtad --mass 0.1": "--csw 2, --kappa 0.1, --naik-epsilon 0, --projection u3",
    "measure no.lime a.lime -o b.h5 --flow 1": "--flow-tolerance 1e-3, --plot b.png",
    "measure no.lime --quarks wilson --mass 0.1": "--csw 2, --phases standard, --one-link, "
    "--kappa 0.1, --u0 1, --naik-epsilon 0, --projection u3, --width 2, --smear-steps 3, --ape-steps 1, --seed 1",
    "measure no.lime --quarks clover --mass 0.1": "--phases standard",
    "measure no.lime --quarks wilson --mass 0.1 --source gaussian": "--ape-alpha 0.5",
    **{
        f"{SOLVE} --action {action}": "--kappa 0.1, --csw 1.0, --spin 0, --spin-basis fnal, --method bicgstab, "
        "--schwarz 0, --recon 12, --output-precision single, --overwrite, --half-halo, --long a.lime"
        + (", --u0 1" if action != "asqtad" else "")
        + (", --naik-epsilon 0, --projection su3" if action != "hisq" else "")
        for action in STAGGERED
    },
    f"{SOLVE} --source-file a.lime": "--source point, --colour 0",
    f"{SOLVE} --action wilson --source-file a.lime": "--source point, --colour 0, --spin 0",
    f"{SOLVE} --source propagator": "--colour 0",
    f"{SOLVE} --convention milc": "--phases milc",
    f"{SOLVE} --sloppy-precision double": "--half-halo",
    f"{SOLVE} --shift 1": "--deflate a.npz, --convention onehop",
    "eigen no.lime": "--u0 1, --output-precision half, --overwrite",
    "solve --fat a.lime --mass 0.1": "--boundary periodic, --phases standard, --su3-tolerance 1e-4, "
    "--extent 4x4x4x4, --accept-checksum, --convention onehop",
    **{
        f"{SOLVE} --action {action}": "--u0 1, --phases milc, --lanes 8, --output-precision single, --overwrite, "
        "--half-halo, --shift 1, --deflate a.npz"
        + (", --csw 1, --fat a.lime, --long a.lime" if action == "wilson" else "")
        for action in WILSON
    },
    f"{SOLVE} --action wilson --method cgnr": "--schwarz 2",
    f"{THERMALIZE} --algorithm hmc --trajectories 1": "--sweeps 1",
    THERMALIZE: "--trajectories 1, --length 1, --steps 20, --integrator omelyan, --save-every 10, --format ildg, "
    "--precision double, --overwrite, --keep 2, --every 3",
    f"{THERMALIZE} --keep 2 -o a": "--checkpoint b, --format ildg, --precision double, --overwrite",
    f"{THERMALIZE} --algorithm hmc": "--over-relaxations 4",
    "smear no.lime": "--format ildg, --precision double, --overwrite, --time 1, --u0 1, --naik-epsilon 0, "
    "--projection u3, --phases, --phases milc, --fat a.lime, --long a.lime, --alpha 0.5, --flow-action wilson",
    "smear no.lime --kind hisq --fat a.lime": "--boundary periodic, --rho 0.1, --steps 1, --space-only, "
    "--output a.lime",
    "smear no.lime --kind flow": "--steps 1",
    "smear no.lime --kind hyp": "--rho 0.1, --time 1",
}
WITHOUT_EFFECT = [(command, option) for command, options in REFUSED.items() for option in options.split(", ")]
# Options that always have an effect.
ALWAYS = {
    "info": "file extent grid lanes width parities site_bytes local machine json",
    "check": " ".join(field.name for field in FIELDS["check"]),
    "reproduce": " ".join(field.name for field in FIELDS["reproduce"]),
    "analyse": " ".join(field.name for field in FIELDS["analyse"]),
    "fix": " ".join(field.name for field in FIELDS["fix"]),
    "plan": " ".join(field.name for field in FIELDS["plan"]),
    "campaign": " ".join(field.name for field in FIELDS["campaign"]),
    "measure": "file flow quarks plot output convention charge wilson_loops grid ranks tolerance extent "
    "accept_checksum json",
    "convert": " ".join(field.name for field in FIELDS["convert"]),
    "thermalize": "extent beta sweeps algorithm seed start first checkpoint output grid ranks json",
    "smear": "file kind output grid ranks tolerance extent accept_checksum json",
    "eigen": "file count residual degree applications action phases boundary output grid ranks tolerance extent "
    "accept_checksum json",
    "solve": "file output source_file mass action tolerance iterations precision sloppy_precision reproducible grid "
    "ranks json",
}


@pytest.mark.parametrize(("command", "option"), WITHOUT_EFFECT)
def test_options_without_effect_are_refused(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lattice", *command.split(), *option.split()]) == 2
    told = capsys.readouterr().err
    assert "Traceback" not in told
    name = {"-n": "--ranks"}.get(option.split()[0], option.split()[0])
    # Errors about files that Wilson quarks do not use name what was expected.
    if name not in ("--fat", "--long", "--output"):
        assert name in told
    assert "cannot read" not in told


@pytest.mark.parametrize("name", FIELDS)
def test_the_table_has_every_option(name: str) -> None:
    refused = {option.split()[0] for command, option in WITHOUT_EFFECT if command.split()[0] == name}
    for field in FIELDS[name]:
        if field.name not in ALWAYS[name].split():
            assert field.long in refused


@pytest.mark.parametrize("value", ["inf", "nan", "0", "-1", "-inf"])
@pytest.mark.parametrize(
    "command",
    [
        "measure cfg.lime --tolerance",
        "convert cfg.lime -o out.lime --tolerance",
        "smear cfg.lime -o out.lime --tolerance",
        "solve cfg.lime --mass 0.1 --su3-tolerance",
        "solve cfg.lime --mass 0.1 --tolerance",
        "solve cfg.lime --mass 0.1 --action wilson --tolerance",
        "measure cfg.lime --quarks hisq --mass 0.1 --residual",
        "thermalize --extent 4x4 --algorithm hmc --length",
    ],
)
def test_tolerances_are_above_0_and_finite(
    command: str,
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lattice", *command.split(), value]) == 2
    assert "above 0 and finite" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "measure cfg.lime --quarks wilson --mass nan",
        "measure cfg.lime --quarks clover --mass 0.1 --csw inf",
        "solve cfg.lime --action clover --kappa 0.1 --csw nan",
        "solve cfg.lime --action wilson --kappa inf",
        "solve cfg.lime --action asqtad --mass 0.1 --u0 nan",
        "smear cfg.lime --rho nan",
        "smear cfg.lime --kind hisq --naik-epsilon inf",
        "smear cfg.lime --kind flow --time inf",
        "measure cfg.lime --flow nan",
    ],
)
def test_numbers_are_finite(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lattice", *command.split()]) == 2
    assert "as a finite number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("measure no.lime --noises 2", "`--noises` is now `--noise-vectors`"),
        ("solve no.lime --mass 0.1 --inner half", "`--inner` is now `--sloppy-precision`"),
        ("solve no.lime --mass 0.1 --inner=half", "`--inner` is now `--sloppy-precision`"),
        ("solve no.lime --mass 0.1 --inner half --half-faces", "`--half-faces` is now `--half-halo`"),
        ("solve no.lime --mass 0.1 --action wilson --two-rows", "`--two-rows` is now `--recon 12`"),
        (
            "solve no.lime --mass 0.1 --action wilson --method normal",
            "`--method normal` is now `--method cgnr`",
        ),
        ("info --extent 4x5 --colours 1", "`--colours` is now `--parities`"),
        ("info --extent 4 6", "`--extent 4 6` is now `--extent 4x6`"),
        ("solve no.lime --mass 0.1 --periodic", "`--periodic` is now `--boundary periodic`"),
        ("solve no.lime --mass 0.1 --output-bits 32 -o x", "`--output-bits` is now `--output-precision`"),
        ("convert no.lime -o x.lime --precision 32", "`--precision 32` is now `--precision single`"),
        ("thermalize --start no.lime --every 3 --checkpoint x", "`--every` is now `--save-every`"),
        (
            "thermalize --start no.lime --algorithm hmc --sweeps 2",
            "`--sweeps with --algorithm hmc` is now `--trajectories`",
        ),
    ],
)
def test_former_spellings_work_and_name_the_new_ones(
    command: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["lattice", *command.split()])
    told = " ".join(capsys.readouterr().err.split())
    assert note in told
    assert "No such option" not in told
    assert status == (0 if command.startswith("info") else 2)
