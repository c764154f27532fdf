"""The trials of the soak. Each draws its parameters from a seed, returns counts, and raises Anomaly on a failure."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from onehop.error import BadInput
from onehop.launch.mpi import find_mpi_launcher, mpi_command
from ranks import Ranks, completed

PROGRAMS = Path(__file__).resolve().parent / "programs"
# A survivor is told within two seconds at most; a machine that does other work gets more.
PROMISED_SECONDS = 5
LAUNCH_SECONDS = 240
START_SECONDS = 60
WORK = ("plan", "channel", "allreduce", "preparation", "barrier")


class Anomaly(Exception):
    """Something that must not happen: a wrong byte, a hang, a wrong rank named, something left behind."""


def expect(holds: bool, what: str) -> None:
    """Raise Anomaly unless something holds."""
    if not holds:
        raise Anomaly(what)


def sums(output: str) -> Counter[str]:
    """Add up the counts that the programs of the ranks print."""
    found: Counter[str] = Counter()
    names = "exchanges|schedules|reductions|ucx_channels|transfers_between_hosts"
    for name, number in re.findall(rf"\b({names}) (\d+)", output):
        found[name] += int(number)
    return found


def set_environment(ranks: Ranks, source: random.Random) -> None:
    """Draw the instruction set."""
    ranks.environment["ONEHOP_SIMD"] = "portable" if source.random() < 0.3 else ""
    if not ranks.environment["ONEHOP_SIMD"]:
        del ranks.environment["ONEHOP_SIMD"]


def _under_mpi(ranks: Ranks, source: random.Random, size: int, line: list[str]) -> str | None:
    """Run under mpiexec: all ranks over MPI, or on two pretended hosts, so that both transports carry bytes."""
    try:
        launcher = find_mpi_launcher(None)
    except BadInput:
        return None
    program = [sys.executable, *line]
    if source.random() < 0.5:
        host = 'ONEHOP_TEST_HOST=h$((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % 2)) exec "$0" "$@"'
        program = ["sh", "-c", host, *program]
    command, environment = mpi_command(launcher, size, program)
    done = completed(command, env={**environment, **ranks.environment}, timeout=LAUNCH_SECONDS)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}"[-3000:])
    return done.stdout


def exchanges_line(seed: int, source: random.Random, most: int = 4000) -> list[str]:
    """Return the command that runs random schedules, each up to `most` times."""
    numbers = (seed, source.randint(3, 12), min(most, source.choice([3, 40, 400, 4000])))
    return [str(PROGRAMS / "exchanges.py"), *map(str, numbers)]


def exchanges(ranks: Ranks, seed: int) -> Counter[str]:
    """Random schedules on random groups and transports; every byte is compared with a model."""
    source = random.Random(seed)
    size = source.choice([1, 2, 2, 3, 4, 5])
    line = exchanges_line(seed, source)
    set_environment(ranks, source)
    if source.random() < 0.2 and (output := _under_mpi(ranks, source, size, line)) is not None:
        return sums(output) + Counter(mpi_runs=1)
    done = ranks.onehop("launch", "-n", size, *line, timeout=LAUNCH_SECONDS)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}"[-3000:])
    return sums(done.stdout)


def reductions(ranks: Ranks, seed: int) -> Counter[str]:
    """Random all-reduces, with codecs too."""
    source = random.Random(seed)
    set_environment(ranks, source)
    size = source.choice([1, 2, 3, 4])
    done = ranks.onehop("launch", "-n", size, PROGRAMS / "reductions.py", seed, 100, timeout=LAUNCH_SECONDS)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}"[-3000:])
    return sums(done.stdout)


# -- faults ------------------------------------------------------------------------------------------------------------


def _pids(process: subprocess.Popen[str], size: int) -> dict[int, int]:
    """Return the process of each rank once all are at work, which takes at most START_SECONDS."""
    assert process.stdout is not None
    pids: dict[int, int] = {}
    working = 0
    limit = threading.Timer(START_SECONDS, process.kill)
    limit.start()
    try:
        while working < size:
            line = process.stdout.readline()
            if not line:
                errors = process.communicate(timeout=10)[1]
                raise Anomaly(
                    f"the launch ended, or was ended, before all ranks were at work\n{errors}"[-3000:]
                )
            if found := re.match(r"\[(\d+)\] process (\d+)", line):
                pids[int(found[1])] = int(found[2])
            working += line.endswith("at work\n")
    finally:
        limit.cancel()
    return pids


def faults(ranks: Ranks, seed: int) -> Counter[str]:
    """One rank is killed, stopped for a while, exits or raises: the others name it in time, and nothing is left."""
    return fail_one(ranks, random.Random(seed), WORK)


def fail_one(ranks: Ranks, source: random.Random, work: Sequence[str]) -> Counter[str]:
    """Start ranks, draw a fault of one of them, and check what the others say of it."""
    size, kind = source.choice([2, 3, 4]), source.choice(work)
    fault, victim = source.choice(["kill", "kill", "kill", "stop", "exit", "raise"]), source.randrange(size)
    own = [fault, victim, source.choice([0, 1, 10, 300])] if fault in ("exit", "raise") else ["none", -1, 0]
    about = f"{fault} of rank {victim} of {size} in {kind}"
    line = ["launch", "-n", size, "--grace", 15, PROGRAMS / "work.py", kind, *own]
    process = ranks.popen("-m", "onehop", *line)
    try:
        pids = {} if fault in ("exit", "raise") else _pids(process, size)
        if pids:
            time.sleep(source.uniform(0, 0.1))
        if fault == "stop":
            os.kill(pids[victim], signal.SIGSTOP)
            time.sleep(source.uniform(0, 0.5))
            os.kill(pids[victim], signal.SIGCONT)
            time.sleep(0.05)
            expect(process.poll() is None, f"{about}: ended, though the rank went on")
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        if pids:
            os.kill(pids[victim], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        raise Anomaly(f"{about}: a hang") from None
    finally:
        process.kill()
    lost = re.findall(r"\[(\d+)\] lost (\d+) ([\d.]+)", output)
    whole = f"{about}: exit code {process.returncode}\n{output}{errors}"[-3000:]
    expect(process.returncode == {"exit": 7, "raise": 1}.get(fault, 137), whole)
    expect(all(int(named) == victim for _, named, _ in lost), f"a wrong rank is named: {whole}")
    expect({int(rank) for rank, _, _ in lost} == set(range(size)) - {victim}, f"a rank was not told: {whole}")
    if pids:
        slowest = max(float(when) for _, _, when in lost) - begun
        expect(slowest < PROMISED_SECONDS, f"told after {slowest:.2f} s: {whole}")
    return Counter({f"fault_{fault}": 1, "faults": 1})


def limits(ranks: Ranks, seed: int) -> Counter[str]:
    """Few descriptors or little memory: the program works, or ends with an error; it never hangs."""
    source = random.Random(seed)
    which = source.choice([resource.RLIMIT_NOFILE, resource.RLIMIT_AS])
    most = source.randint(8, 80) if which == resource.RLIMIT_NOFILE else source.randint(100, 1500) << 20
    size = source.choice([2, 3, 4])

    def limit() -> None:
        resource.setrlimit(which, (most, most))

    line = [PROGRAMS / "exchanges.py", seed, 2, 3]
    about = (
        f"{size} ranks with {'descriptors' if which == resource.RLIMIT_NOFILE else 'bytes'} limited to {most}"
    )
    try:
        done = ranks.onehop("launch", "-n", size, *line, timeout=120, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        raise Anomaly(f"{about}: a hang") from None
    expect(
        done.returncode == 0 or bool(done.stderr.strip()),
        f"{about}: exit code {done.returncode} without a word",
    )
    expect("wrong bytes" not in done.stderr, done.stderr[-3000:])
    return Counter(limits=1, limits_that_sufficed=int(done.returncode == 0))


def disks(ranks: Ranks, seed: int) -> Counter[str]:
    """The disk is full at a random byte: an error, no part of a file, and the old file is whole."""
    source = random.Random(seed)
    room = source.choice([0, 1, source.randint(0, 6000), source.randint(0, 60_000)])
    file = ranks.folder / "out"
    old = b"the old contents" if source.random() < 0.5 else None
    if old is not None:
        file.write_bytes(old)
    command = source.choice(
        [
            ["lattice", "thermalize", "--extent", "4x4x4x4", "--sweeps", 1, "-o", file, "--format", "ildg"],
            ["schedule", "halo", "--extent", "64x64", "--grid", "4x4", "-o", file],
            ["quantum", "circuit", "random", "--qubits", 12, "--depth", 40, "-o", file],
        ]
    )
    if old is not None and command[0] == "lattice":
        command.append("--overwrite")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    ranks.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = ranks.onehop(*command, timeout=LAUNCH_SECONDS, preexec_fn=limit, cwd=ranks.folder)
    about = f"{' '.join(map(str, command))} with room for {room} bytes: {done.returncode} {done.stderr}"[
        -3000:
    ]
    found = file.read_bytes() if file.exists() else None
    expect("Traceback" not in done.stderr, about)
    if done.returncode != 0:
        expect(found == old, f"the file was touched: {about}")
        expect(len(done.stderr.strip().splitlines()) <= 3 and bool(done.stderr.strip()), about)
    else:
        expect(found is not None and found != old, about)
    expect(
        {one.name for one in ranks.folder.iterdir()} <= {"out", "temporary"}, f"something is left: {about}"
    )
    return Counter(disks=1, disks_full=int(done.returncode != 0))


# -- kill and resume ---------------------------------------------------------------------------------------------------


def _killed_until_done(ranks: Ranks, source: random.Random, commands: list[list[object]]) -> tuple[str, int]:
    """Kill random runs after random times, until one is done; return its output and the number of kills."""
    kills, longest = 0, 1.5
    while True:
        process = ranks.popen("-m", "onehop", *source.choice(commands))
        try:
            output, errors = process.communicate(timeout=source.uniform(0.2, longest))
        except subprocess.TimeoutExpired:
            for pid in {process.pid, *([] if source.random() < 0.5 else ranks.processes())}:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.communicate()
            ranks.assert_nothing_left_running(10)
            kills, longest = kills + 1, longest * 1.4
            expect(kills < 60, "no run came to an end")
            continue
        expect(process.returncode == 0, f"after {kills} kills: {errors}"[-3000:])
        return output, kills


def circuits(ranks: Ranks, seed: int) -> Counter[str]:
    """A random circuit whose run is killed and resumed gives the shots and values of an undisturbed run."""
    source = random.Random(seed)
    file = ranks.folder / "c.qasm"
    qubits = source.randint(4, 12)
    depth = source.randint(2, 60)
    made = f"quantum circuit random --qubits {qubits} --depth {depth} --seed {seed} --measure -o".split()
    done = ranks.onehop(*made, file)
    expect(done.returncode == 0, done.stderr)
    line = ["run", file, "--shots", 200, "--seed", seed % 1000, "--observable", "Z0 X1", "--json", "-"]
    sizes = [one for one in (1, 2, 4) if 2 * one <= 2**qubits]
    expected = ranks.onehop(*line, "-n", 1, timeout=LAUNCH_SECONDS)
    expect(expected.returncode == 0, expected.stderr)
    again = [
        [*line, "-n", size, "--checkpoint", ranks.folder / "run.h5", "--save-every", "0.05s"]
        for size in sizes
    ]
    output, kills = _killed_until_done(ranks, source, again)
    results = [json.loads(one) for one in (expected.stdout, output)]
    for name in ("counts", "expectations"):
        first, second = (json.dumps(_rounded(one.get(name)), sort_keys=True) for one in results)
        expect(
            first == second and first != "null", f"{name} differ after {kills} kills: {first} {second}"[:3000]
        )
    return Counter(circuits=1, kills=kills)


def _rounded(value: object) -> object:
    """Round floating-point numbers, whose last bits depend on the number of ranks."""
    if isinstance(value, float):
        return round(value, 9) + 0.0
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def hmc(ranks: Ranks, seed: int) -> Counter[str]:
    """A gauge generation that is killed and resumed on other grids ends with the same bytes."""
    source = random.Random(seed)
    line: list[object] = ["lattice", "thermalize", "--extent", "4x4x4x4", "--beta", 5.7, "--start", "random"]
    line += ["--seed", seed % 1000]
    if source.random() < 0.7:
        line += ["--algorithm", "hmc", "--trajectories", source.randint(2, 12), "--steps", 6]
    else:
        line += ["--sweeps", source.randint(2, 40)]
    expected = ranks.onehop(*line, "-n", 1, "-o", ranks.folder / "one.lime", timeout=LAUNCH_SECONDS)
    expect(expected.returncode == 0, expected.stderr)
    checkpoint = ["--checkpoint", ranks.folder / "run.lime", "--save-every", 1]
    again = [
        [*line, "-n", size, "-o", ranks.folder / "two.lime", "--overwrite", *checkpoint] for size in (1, 2, 4)
    ]
    _, kills = _killed_until_done(ranks, source, again)
    one, two = ((ranks.folder / name).read_bytes() for name in ("one.lime", "two.lime"))
    expect(_links(one) == _links(two), f"other links after {kills} kills")
    return Counter(hmc=1, kills=kills)


def _links(data: bytes) -> bytes:
    return data[data.index(b"ildg-binary-data") :]


KINDS: dict[str, Callable[[Ranks, int], Counter[str]]] = {
    one.__name__: one for one in (exchanges, reductions, faults, limits, disks, circuits, hmc)
}
