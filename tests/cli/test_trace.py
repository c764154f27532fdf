"""Time lines of runs: events of all ranks, sums that agree with what is known of the run, and traces that break off."""

import json
import os
import struct
import textwrap
from pathlib import Path

import pytest

import onehop
from commands import refused
from onehop.cli import main
from onehop.trace import save_trace_plot, summarize
from ranks import SURVIVORS, Ranks

PROGRAM = """
    import os, sys, time
    import numpy as np, onehop
    from onehop.quantum import Circuit, simulate

    group = onehop.Group.world()
    layout = dict(extents=(6000,), grid=(3,), width=5)
    field = group.empty(onehop.halo_block(**layout, rank=group.rank).shape)
    plan = onehop.Plan(onehop.halo(**layout), group, [field])
    group.barrier()
    for step in range(10):
        if step == 5 and group.rank == 1:
            time.sleep(0.3)
        plan.start()
        plan.finish()
        plan.run()
    onehop.allreduce(group, np.ones(1000))
    onehop.Poisson(group, extents=(12, 12)).solve(iterations=7)
    part = group.split(0 if group.rank < 2 else 1)
    circuit = Circuit(4)
    for qubit in range(4):
        circuit.h(qubit)
        circuit.cx(qubit, (qubit + 1) % 4)
    simulate(circuit, part, shots=10, seed=1)
    if len(sys.argv) > 1 and group.rank == 2:
        os.kill(os.getpid(), 9)
    group.barrier()
"""


def test_a_trace_agrees_with_the_run(
    ranks: Ranks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    ranks.launch(3, PROGRAM, "--trace", file, status=0)
    assert list(tmp_path.glob("run.json*")) == [file]  # nothing of the ranks is left
    events = json.loads(file.read_text())["traceEvents"]
    own = [event for event in events if event["ph"] == "X"]
    assert min(event["ts"] for event in own) == 0
    for rank in range(3):
        mine = [event for event in own if event["pid"] == rank]
        assert [event["args"]["count"] for event in mine if event["cat"] == "solver"] == [*range(1, 8)]
        assert sum(event["name"] == "halo start" for event in mine) == 10
        assert sum(event["args"].get("count", 0) for event in mine if event["cat"] == "pass") > 0
    # The clocks agree: rank 1 starts its exchange when the others end their wait for it, not before.
    late = max(
        (event for event in own if event["cat"] == "wait" and event["pid"] == 0), key=lambda one: one["dur"]
    )
    assert late["args"]["rank"] == 1
    assert late["name"] == "channel 1 -> 0"
    starts = sorted(event["ts"] for event in own if event["pid"] == 1 and event["name"] == "halo start")
    assert 0 <= late["ts"] + late["dur"] - starts[5] < 1e5

    found = summarize(str(file))
    halos = onehop.count(onehop.halo(extents=(6000,), grid=(3,), width=5))
    by_name = {one.name: one for one in found.operations}
    assert by_name["halo finish"].count == by_name["halo"].count == 30
    assert by_name["halo finish"].bytes == by_name["halo"].bytes == 10 * halos.bytes
    assert by_name["all-reduce"].count >= 3
    waited = {(link.from_rank, link.to_rank): link for link in found.links}
    assert 0.2 < waited[1, 0].waited_s < found.ranks[0].seconds
    for rank in found.ranks:  # every wait is for one rank
        own = sum(link.waited_s for link in found.links if link.to_rank == rank.rank)
        assert rank.waited_s == pytest.approx(own)
    assert all(rank.bytes >= 20 * 80 for rank in found.ranks)

    assert main(["trace", str(file), "--json", "-", "--plot", str(tmp_path / "plot.svg")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ranks"][0]["waited_s"] == found.ranks[0].waited_s
    assert {"computed_s", "bytes"} <= set(told["ranks"][0])
    assert len(told["links"]) == len(found.links)
    assert "waited" in (tmp_path / "plot.svg").read_text()
    save_trace_plot(found, str(tmp_path / "plot.png"))


def test_a_killed_rank_leaves_a_trace_of_the_others(ranks: Ranks, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    source = ranks.script(PROGRAM)
    ranks.onehop("launch", "-n", 3, *SURVIVORS, "--trace", file, source, "kill", cwd=ranks.folder, status=137)
    names = {(event["pid"], event["name"]) for event in json.loads(file.read_text())["traceEvents"]}
    assert {(0, "halo"), (1, "halo")} <= names
    assert list(tmp_path.glob("run.json*")) == [file]


def test_a_full_disk_ends_the_trace_and_not_the_run(ranks: Ranks, tmp_path: Path) -> None:
    source = """
        import resource
        import onehop
        group = onehop.Group.world()
        plan = onehop.Plan(onehop.halo(extents=(64,), grid=(1,)), group, [group.empty((66,))])
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for _ in range(1000):
            plan.run()
        print("done")
    """
    done = ranks.launch(1, source, "--trace", tmp_path / "run.json")
    assert (done.returncode, done.stdout) == (0, "[0] done\n")
    assert "the trace of rank 0 ends here: cannot write" in done.stderr
    assert "File too large; the run goes on" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "expected a trace of onehop, as `onehop launch --trace FILE` writes it"),
        ("{}", 'found no list "traceEvents"'),
        ('{"traceEvents": [{"ph": "X", "pid": 0, "name": "x"}]}', "found an event without 'ts'"),
        ('{"traceEvents": [1]}', "found an event without"),
    ],
)
def test_no_traces(tmp_path: Path, text: str | None, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    if text is not None:
        file.write_text(text)
    assert told in refused(["trace", str(file)], capsys)


def test_a_trace_that_cannot_be_written_is_refused_before_the_ranks_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "no-such-folder" in refused("launch -n 1 --trace no-such-folder/x.json true", capsys)


def test_a_trace_takes_the_place_of_files_only(
    ranks: Ranks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would remove devices and pipes, /dev/null for example."""
    pipe, folder = tmp_path / "pipe", tmp_path / "empty"
    os.mkfifo(pipe)
    folder.mkdir()
    for place in (pipe, folder):
        assert str(place) in refused(f"launch -n 1 --trace {place} true", capsys)
        ranks.environment["ONEHOP_TRACE"] = str(place)
        done = ranks.launch(1, "import onehop; onehop.Group.world().barrier()")
        assert (done.returncode, done.stderr.count("is no regular file")) == (0, 1), done.stderr
    assert pipe.is_fifo()
    assert folder.is_dir()


def test_no_file_is_written_through_a_link(ranks: Ranks, tmp_path: Path) -> None:
    """Another user may have put links there, in a folder where both may write."""
    other = tmp_path / "other"
    other.write_text("kept")
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"run.json.rank-{rank}.part").symlink_to(other)
    ranks.launch(2, "import onehop; onehop.Group.world().barrier()", "--trace", folder / "run.json", status=0)
    assert other.read_text() == "kept"
    assert [file.name for file in folder.iterdir()] == ["run.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_no_folder_is_reached_through_a_link_of_another_user(ranks: Ranks, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "run.json").write_text("kept")
    for way in ("link", "way/link"):
        (tmp_path / way).parent.mkdir(exist_ok=True)
        (tmp_path / way).symlink_to(target)
        os.lchown(tmp_path / way, 65534, 65534)
    (tmp_path / "own").symlink_to("way")
    for way in ("link", "own/link"):
        ranks.environment["ONEHOP_TRACE"] = str(tmp_path / way / "run.json")
        done = ranks.launch(1, "import onehop; onehop.Group.world().barrier()", status=0)
        link = (tmp_path / way).parent.resolve() / "link"
        assert f"another user may have put the link {link} there" in done.stderr
    assert [file.read_text() for file in target.iterdir()] == ["kept"]


def test_a_trace_stays_in_the_folder_that_was_opened(ranks: Ranks, tmp_path: Path) -> None:
    """Another user might own the folder around it, and put a link in its place while the ranks run."""
    for name in ("traces", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "target" / "run.json.rank-0.part").write_text("kept")
    source = """
        import pathlib, sys
        import onehop
        onehop.Group.world().barrier()
        traces = pathlib.Path(sys.argv[1])
        traces.rename(traces.with_name("moved"))
        traces.symlink_to("target")
    """
    ranks.environment["ONEHOP_TRACE"] = str(tmp_path / "traces" / "run.json")
    done = ranks.run_python("-c", textwrap.dedent(source), str(tmp_path / "traces"))
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in (tmp_path / "moved").iterdir()] == ["run.json"]
    assert [file.name for file in (tmp_path / "target").iterdir()] == ["run.json.rank-0.part"]


def test_what_is_no_file_of_a_rank_is_neither_waited_for_nor_read(ranks: Ranks, tmp_path: Path) -> None:
    """A pipe, and a file that names more ranks than there can be."""
    os.mkfifo(tmp_path / "run.json.rank-0")
    os.mkfifo(tmp_path / "run.json.rank-1")
    source = "import sys; from onehop import _core; print(_core.merge_trace(sys.argv[1], False))"
    done = ranks.run_python("-c", source, str(tmp_path / "run.json"))
    assert done.stdout == "0\n"
    head = struct.pack("<Qiid64s", 0x316563617274686F, 0, 2**31 - 1, 0.0, b"machine")
    (tmp_path / "many.json.rank-0").write_bytes(head)
    done = ranks.run_python("-c", source, str(tmp_path / "many.json"))
    assert done.stdout == "0\n"
