"""`onehop doctor`: examine the machine and the software, and say how to mend what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from onehop._core import __version__
from onehop.cli.common import JsonOptions, RanksOptions, console, own_rank, write_json
from onehop.cli.screen import Table, changing_line, coloured
from onehop.launch import ensure_ranks
from onehop.options import file_option, option
from onehop.text import bytes_text, ranges, rate_text, seconds_text


@dataclass(kw_only=True)
class Doctor(RanksOptions, JsonOptions):
    tests: bool = option(True, "Test each transport on two ranks.", "--tests", off="--no-tests")
    all: bool = option(
        False, "Compare all ranks of this launch, and measure the links of all pairs of hosts.", "--all"
    )
    device: str | None = option(
        None,
        "Compare the kernels of a device with the processor's, and measure them, instead: cuda, hip, cuda:1, or "
        "processor.",
        "--device",
        metavar="DEVICE",
    )
    quick: bool = option(False, "With --device: take fewer numbers.", "--quick")
    plot: str | None = file_option(
        "With --all: plot the times and rates of the links to FILE (.png, .svg or .pdf).", "the plot"
    )


def doctor(options: Doctor) -> int:
    """Examine this machine and its software, test the transports, and say how to mend problems.

    The exit code is 1 if something that onehop requires is broken.

    --all, under `onehop launch`, mpiexec, srun or torchrun, compares the versions, settings and speeds of all ranks,
    and measures the time of a message and the rate between every pair of hosts.
    """
    if options.all:
        options.refuse(["tests"], "has no effect with --all")
    else:
        options.refuse(["plot"], "needs --all")
    if options.device is None:
        options.refuse(["quick"], "needs --device")
    else:
        options.refuse(["tests", "all", "ranks"], "has no effect with --device")
        return _device(options, options.device)
    ensure_ranks(options.ranks)
    if options.all:
        return _all(options)
    from onehop.doctor import State, devices, examine, host

    first = own_rank() == 0
    with changing_line(quiet=not first) as show:
        findings = examine(show or (lambda _text: None), tests=options.tests and first)
    colours = {State.OK: "green", State.ABSENT: "dim", State.WRONG: "yellow", State.BROKEN: "bold red"}
    table = Table("", "", "", title=f"onehop {__version__}", show_header=False)
    for finding in findings:
        text = finding.text if not finding.remedy else f"{finding.text}\n-> {finding.remedy}"
        table.add_row(finding.name, coloured(finding.state.value, colours[finding.state]), text)
    console(options.json).print(table)
    wrong = [finding.name for finding in findings if finding.state in (State.WRONG, State.BROKEN)]
    broken = any(finding.state == State.BROKEN for finding in findings)
    verdict, advice = "everything that onehop needs works", "`onehop tour -n 2` shows it at work"
    if wrong:
        verdict = f"onehop {'does not work' if broken else 'works, with less than it could have'}: {', '.join(wrong)}"
        advice = "do what the arrows say, and run `onehop doctor` again"
    console(options.json).print(f"verdict: {verdict}; next: {advice}")
    mpi = next(
        (finding.text for finding in findings if finding.name == "MPI library" and finding.state == State.OK),
        None,
    )
    result = {
        "version": __version__,
        "ok": not broken,
        "host": host(mpi),
        "findings": [finding.to_dict() for finding in findings],
        "devices": [card.to_dict() for card in devices()],
    }
    write_json(options.json, result)
    return int(broken)


def _device(options: Doctor, device: str) -> int:
    from onehop.device.check import check, lines

    with changing_line() as show:
        found = check(device, options.quick, show or (lambda _text: None))
    for line in lines(found):
        console(options.json).print(line)
    write_json(options.json, {"version": __version__, **found})
    return int(not found["ok"])


def _all(options: Doctor) -> int:
    from onehop.doctor.allocation import examine_all
    from onehop.group import Group

    with changing_line(quiet=own_rank() != 0) as show:
        found = examine_all(Group.world(), show or (lambda _text: None))
    screen = console(options.json)
    hosts = Table("host", "ranks", ">cores", ">memory", ">clock", ">copies", ">speed", "UCX", title="Hosts")
    for host in found.hosts:
        hosts.add_row(
            host["name"],
            ranges(host["ranks"]),
            host["cores"],
            "-" if host["memory"] is None else bytes_text(host["memory"]),
            "-" if host["clock_mhz"] is None else rate_text(host["clock_mhz"] * 1e6, "Hz", 3),
            rate_text(host["memory_gb_per_s"] * 1e9, digits=3),
            f"{host['compute']:.2f}",
            host["ucx"] or "not here",
        )
    screen.print(hosts)
    names = [host["name"] for host in found.hosts]
    links = Table("", *(f">{name}" for name in names), title="Links: time of 16 B, and rate of 4 MiB")
    by_pair = {
        (one.a, one.b): f"{seconds_text(one.us * 1e-6, 3)}\n{rate_text(one.gb_per_s * 1e9, digits=3)}"
        for one in found.pairs
    }
    for a, name in enumerate(names):
        links.add_row(name, *(by_pair.get((min(a, b), max(a, b)), "-") for b in range(len(names))))
    screen.print(links)
    for line in (*found.differences, *found.slow):
        screen.print(f"- {line}")
    screen.print(f"verdict: {found.verdict}")
    write_json(options.json, {"version": __version__, **found.to_dict()})
    if options.plot is not None and own_rank() == 0:
        from onehop.doctor.plot import save_links_plot

        save_links_plot(options.plot, names, found.pairs)
    return 0
