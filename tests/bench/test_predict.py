"""`onehop bench predict`, and the machine file of `onehop tune`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onehop
from onehop.cli import main
from onehop.error import BadInput
from onehop.machine import (
    Machine,
    load_machine,
    message_traffic,
    parse_machine,
    permutation_traffic,
    simulate,
)
from onehop.tune.machine_file import machine_text
from onehop.tune.machine_times import (
    BLOCKS,
    COPIES,
    EXCHANGES,
    FACE,
    MESSAGES,
    ONE_SHOT,
    PIECES,
    TIMED_ALONE,
    UPDATES,
    MachineTimes,
    _pieces,
    lines_out,
    times_from,
)
from onehop_bench.predict import BENCHES, joined_benches, read_bench

# µs: a message, an exchange and a copy grow like lines, so that every time is known.
PIECE, COPIED_PIECE, LINE = 2e-3, 1e-3, 4e-3
ROWS = 2048


def one_way(size: int) -> float:
    return 0.1 + size / 1e4


def both_ways(size: int) -> float:
    return 0.15 + size / 6e3


def copies(size: int) -> float:
    return 0.01 + size / 2e4


def updates(size: int) -> float:
    return 0.02 + size / 3e4


def shared_updates(size: int) -> float:
    return 0.03 + size / 1e4


def in_collective(size: int) -> float:
    return 0.12 + size / 8e3


def piece_us(size: int) -> float:
    return PIECE + size / 1e6


def samples(alone: float, lines: float) -> dict[str, list[float]]:
    """Times with an outlier: with the clock that also runs while lines are used, and without."""
    with_use = alone + lines * LINE
    return {"ours": [with_use, with_use, 50 * with_use], "variant": [alone, alone, 9 * alone]}


def measured() -> dict[str, dict[str, list[float]]]:
    found = {f"one_way {size}": samples(one_way(size), 0) for size in MESSAGES}
    found |= {f"both_ways {size}": samples(both_ways(size), max(1.0, size / 64)) for size in EXCHANGES}
    found |= {f"copies {size}": samples(copies(size), 0) for size in COPIES}
    found |= {f"updates {size}": samples(updates(size), 0) for size in UPDATES}
    found |= {f"shared_updates {size}": samples(shared_updates(size), 0) for size in UPDATES}
    for size in BLOCKS:
        used = 2 * in_collective(size)  # both rounds
        if size in ONE_SHOT:  # one round, and the clock runs while lines are used
            used = in_collective(size) + LINE * -(-size // 64)
        found[f"in_collective {size}"] = {"ours": [used, used, 7 * used]}
    pieces, size = 2 * ROWS, 2 * ROWS * 8
    exact = MachineTimes(*(tuple((s, f(s)) for s in sizes) for f, sizes in TABLES), [], 0, 0)  # type: ignore[arg-type]
    for piece in PIECES:
        packing = 2 * (2 * FACE // piece) * piece_us(piece)
        found[f"packed {piece}"] = samples(interpolated(exact.both_ways, 2 * FACE) + packing, FACE / 32)
    found["copied"] = samples(interpolated(exact.copies, size) + pieces * COPIED_PIECE, 0)
    return found


TABLES = (
    (one_way, MESSAGES),
    (both_ways, EXCHANGES),
    (in_collective, BLOCKS),
    (copies, COPIES),
    (updates, list(UPDATES)),
    (shared_updates, list(UPDATES)),
)


def interpolated(table: Any, size: int) -> float:
    (low, a), (high, b) = next(pair for pair in itertools.pairwise(table) if pair[0][0] <= size <= pair[1][0])
    return float(a * (b / a) ** (np.log(size / low) / np.log(high / low)))


@pytest.fixture(scope="module")
def machine() -> Machine:
    return parse_machine(machine_text(times_from(measured()), 2), "this")


def test_times_are_found_in_the_samples() -> None:
    times = times_from(measured())
    tables = (
        times.one_way,
        times.both_ways,
        times.in_collective,
        times.copies,
        times.updates,
        times.shared_updates,
    )
    for table, (function, sizes) in zip(tables, TABLES, strict=True):
        assert [size for size, _ in table] == list(sizes)
        assert [us for _, us in table] == pytest.approx([function(size) for size in sizes])
    assert times.used_line_us == pytest.approx(LINE)
    assert [size for size, _ in times.packed_pieces] == list(PIECES)
    assert [us for _, us in times.packed_pieces] == pytest.approx([piece_us(size) for size in PIECES])
    assert times.copied_piece_us == pytest.approx(COPIED_PIECE)


def test_faces_of_pieces_do_not_overlap() -> None:
    for piece in PIECES:
        layout = _pieces(piece)
        block = layout["extents"][1] // 2
        assert block >= 2 * layout["width"][1]
        sent = [one.from_.slice for one in onehop.halo(**layout).rounds[0].transfers if one.from_.rank == 0]
        assert [(one.pieces, one.elements * 8) for one in sent] == [(FACE // piece, FACE)] * 2


def test_times_that_descend_get_their_geometric_mean() -> None:
    found = measured()
    found["one_way 256"] = samples(0.4, 0)
    found["one_way 1024"] = samples(0.1, 0)
    times = dict(times_from(found).one_way)
    assert times[64] == pytest.approx(one_way(64))  # untouched: the mean of the two is longer
    assert times[256] == times[1024] == pytest.approx(0.2)
    assert times[4096] == pytest.approx(one_way(4096))


def test_the_file_predicts_what_it_was_made_from(machine: Machine) -> None:
    assert machine.processors == 2
    assert 1e8 < machine.multiply_adds_double.value < 1.5 * machine.multiply_adds_single.value
    assert all(figure.basis == "measured" for figure in (machine.memory, machine.levels[0].bandwidth))
    for size in MESSAGES:
        alone = message_traffic(2, [[(0, 1, size)]])
        assert simulate(alone, machine).seconds == pytest.approx(one_way(size) * 1e-6, rel=1e-3, abs=1e-9)
        both = message_traffic(2, [[(0, 1, size), (1, 0, size)]])
        assert simulate(both, machine).seconds == pytest.approx(both_ways(size) * 1e-6, rel=1e-3, abs=1e-9)


def test_lines_that_go_to_others_are_counted() -> None:
    two_rows = onehop.halo(extents=(8, 100), grid=(2, 1), width=(1, 0), periodic=True)
    assert lines_out(two_rows, 0) == 26  # two rows of 800 bytes
    columns = onehop.halo(extents=(8, 100), grid=(1, 2), width=(0, 1), periodic=True)
    assert lines_out(columns, 0) == 16  # one line for each number of two columns


HALO = {"extents": [64, 64], "grid": [1, 2], "periodic": [True, True]}
PERMUTATION = {"qubits": 22, "pairs": [[0, 21]], "transport": "auto"}
MORE: dict[str, dict[str, Any]] = {
    "pingpong": {},
    "halo": HALO,
    "permutation": PERMUTATION,
    "allreduce": {"count": 1 << 18},
}


def rows(bench: str, **more: Any) -> dict[str, Any]:
    row = {"case": "1 MiB", "bytes": 1 << 20, "ranks": 2, "ours_us": 100.0, **more}
    return {"bench": bench, "rows": [row]}


def test_the_command_compares(tmp_path: Path) -> None:
    this = tmp_path / "this.toml"
    this.write_text(machine_text(times_from(measured()), 2))
    files = []
    for bench, more in MORE.items():
        file = tmp_path / f"{bench}.json"
        file.write_text(json.dumps(rows(bench, **more)))
        files.append(str(file))
    out = tmp_path / "out.json"
    assert main(["bench", "predict", *files, "--machine", str(this), "--json", str(out)]) == 0
    found = {row["bench"]: row for row in json.loads(out.read_text())["rows"]}
    table = [(size, both_ways(size)) for size in EXCHANGES]
    copied = [(size, copies(size)) for size in COPIES]
    predicted = {
        "pingpong": one_way(1 << 20),
        # Two columns of 64 numbers go each way, two rows of 32 stay, and 128 lines are used.
        "halo": interpolated(table, 1024)
        + 2 * 128 * piece_us(8)
        + interpolated(copied, 512)
        + 2 * COPIED_PIECE
        + 128 * LINE,
        # All lines of 32 MiB are read and written.
        "permutation": shared_updates(32 << 20),
        # Two shots: half goes each way twice.
        "allreduce": 2 * interpolated([(size, in_collective(size)) for size in BLOCKS], 1 << 19),
    }
    for bench, us in predicted.items():
        assert found[bench]["predicted_us"] == pytest.approx(us, rel=0.005), bench
        factor = max(100 / found[bench]["predicted_us"], found[bench]["predicted_us"] / 100)
        assert found[bench]["factor"] == pytest.approx(factor)


def test_the_file_can_be_shipped_unedited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number has its source, which names version, date and processor; nothing says "this machine"."""
    monkeypatch.setattr("onehop.tune.machine_file.cpu_name", lambda: 'A "fast\\\\ processor')
    text = machine_text(times_from(measured()), 2)
    machine = parse_machine(text, "two-core")
    assert machine.title == "A host with 2 cores, measured between two of them"
    assert "this machine" not in text.lower()
    source = machine.levels[0].latency.source
    assert source.startswith(f"onehop {onehop.__version__}, onehop tune --machine-file, 20")
    assert source.endswith("A fast processor; half of the time of the shortest message")
    figures = [line for line in text.splitlines() if "value =" in line or "points =" in line]
    assert len(figures) == 16
    assert all('basis = "measured", source = "tune", note = ' in line for line in figures)
    shipped = load_machine("two-core")
    assert [level.name for level in machine.levels] == [level.name for level in shipped.levels]
    assert machine.processors == shipped.processors


def test_short_all_reduces_use_their_lines_while_the_clock_runs(tmp_path: Path) -> None:
    this, file, out = (tmp_path / name for name in ("this.toml", "a.json", "out.json"))
    times = []
    for line in (0.0, LINE):
        with_lines = MachineTimes(**{**vars(times_from(measured())), "used_line_us": line})
        this.write_text(machine_text(with_lines, 2))
        both = [
            {**rows("allreduce", count=size // 4)["rows"][0], "bytes": size} for size in (4096, TIMED_ALONE)
        ]
        file.write_text(json.dumps({"bench": "allreduce", "rows": both}))
        assert main(["bench", "predict", str(file), "--machine", str(this), "--json", str(out)]) == 0
        times.append([row["predicted_us"] for row in json.loads(out.read_text())["rows"]])
    assert times[1][0] - times[0][0] == pytest.approx(64 * LINE, rel=0.2)
    assert times[1][1] == pytest.approx(times[0][1])


def test_machines_without_tables_are_compared_as_well(tmp_path: Path) -> None:
    this, file, out = (tmp_path / name for name in ("this.toml", "p.json", "out.json"))
    lines = machine_text(times_from(measured()), 2).splitlines(keepends=True)
    this.write_text("".join(line for line in lines if "points =" not in line))
    level = load_machine(str(this)).levels[0]
    assert not level.one_way.points
    file.write_text(json.dumps(rows("pingpong")))
    assert main(["bench", "predict", str(file), "--machine", str(this), "--json", str(out)]) == 0
    least = level.latency.value + 2 * level.overhead.value
    predicted = json.loads(out.read_text())["rows"][0]["predicted_us"]
    assert predicted == pytest.approx(((1 << 20) / level.bandwidth.value + least) * 1e6, rel=0.01)


def test_permutations_of_shared_arrays_send_nothing() -> None:
    traffic = permutation_traffic(6, local=5, permutation=[0, 1, 2, 3, 5, 4], shared=True)
    assert traffic.messages(0) == ()
    assert permutation_traffic(6, local=5, permutation=[0, 1, 2, 3, 5, 4]).messages(0) != ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"bench": "su3", "rows": []}',
        '{"bench": "halo", "rows": [{"case": "x"}]}',
        json.dumps(rows("halo")),
        json.dumps(rows("permutation")),
    ],
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"x\.json: expected"):
        read_bench(str(file))
    assert main(["bench", "predict", str(file), "--machine", "two-core"]) == 2


@pytest.mark.parametrize("more", [{"extents": "x"}, {"extents": [0, 4]}, {"grid": [2, 2]}])
def test_rows_that_describe_no_halo_are_refused(more: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps(rows("halo", **{**HALO, **more})))
    assert main(["bench", "predict", str(file), "--machine", "two-core"]) == 2


def test_seconds_with_files_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "predict", "x.json", "--machine", "two-core", "--seconds", "3"]) == 2
    assert "expected --seconds without files only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either --machine or --tune, found neither"),
        (["--machine", "two-core", "--tune"], "expected either --machine or --tune, found both"),
        (["x.json", "--tune"], "expected --tune without files, found both"),
        (["--machine", "two-core", "--machine-file", "x.toml"], "expected --machine-file with --tune only"),
        (["--tune", "--machine-file", "no/such/folder/x.toml"], "--machine-file"),
        (["--tune", "--seconds", "-1"], "--seconds"),
    ],
)
def test_tune_is_instead_of_a_machine_and_files(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "predict", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_turns_are_joined_by_medians() -> None:
    turns = [rows("pingpong", ours_us=us) for us in (3.0, 100.0, 4.0)]
    assert joined_benches(turns)["rows"] == [{**rows("pingpong")["rows"][0], "ours_us": 4.0}]
    with pytest.raises(BadInput, match="expected the same cases in every turn"):
        joined_benches([*turns, rows("pingpong", case="2 MiB")])


def test_the_machine_and_the_benchmarks_are_measured_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the same states of the machine: one twice as slow in the last turn changes neither."""
    turns: list[float] = []

    def turn(seconds: float) -> dict[str, Any]:
        turns.append(seconds)
        factor = 2.0 if len(turns) == 7 else 1.0
        return {
            "samples": {
                name: {role: [factor * us for us in values[:1]] for role, values in roles.items()}
                for name, roles in measured().items()
            },
            "benches": {name: rows(name, **{**MORE[name], "ours_us": 100.0 * factor}) for name in BENCHES},
        }

    monkeypatch.setattr("onehop_bench.predict.turn_on_ranks", turn)
    this, out = tmp_path / "this.toml", tmp_path / "out.json"
    assert main(["bench", "predict", "--tune", "--machine-file", str(this), "--json", str(out)]) == 0
    assert turns == pytest.approx([40 / 7] * 7)
    found = {row["bench"]: row for row in json.loads(out.read_text())["rows"]}
    assert {row["measured_us"] for row in found.values()} == {100.0}
    assert found["pingpong"]["predicted_us"] == pytest.approx(one_way(1 << 20), rel=0.005)
    machine = load_machine(str(this))
    assert machine.levels[0].latency.source.startswith(
        f"onehop {onehop.__version__}, onehop bench predict --tune, "
    )


@pytest.mark.alone
def test_turns_run_on_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn, as briefly as possible."""
    monkeypatch.setattr("onehop_bench.predict._TURNS", 1)
    this, out = tmp_path / "this.toml", tmp_path / "out.json"
    command = [
        "bench",
        "predict",
        "--tune",
        "--seconds",
        "0.5",
        "--machine-file",
        str(this),
        "--json",
        str(out),
    ]
    assert main(command) == 0
    found = json.loads(out.read_text())
    assert {row["bench"] for row in found["rows"]} == set(BENCHES)
    assert all(row["measured_us"] > 0 and row["predicted_us"] > 0 for row in found["rows"])
    assert load_machine(str(this)).levels[0].one_way.points
