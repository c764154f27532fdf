"""`onehop bench permutation`: swaps of bits of the rank number with local bits of a distributed state.

Further keys of a row are `qubits`, bits of the state's index; `eta`, the number of `pairs` of bits that change places;
`one_at_a_time_us`, the time of onehop with a round for each pair; `mpi_us`, that of MPI_Sendrecv through a buffer as
large as the rank's part, pair after pair, None without MPI; `fraction_moved` of a rank's amplitudes that goes to
another rank; and `transport`, "auto" in arrays that the ranks share, or "mpi".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch
from onehop.permutation import permute_bits
from onehop.plan import Plan
from onehop.schedule import Schedule
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.hosts.launch import ranks_of_hosts
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import HostsOptions, names_option, numbers_option
from onehop_bench.result import Row, make_row, samples_of
from onehop_bench.rounding import RoundingOptions, bytes_out, permutation_rounding, rounded_row
from onehop_bench.wire import between_hosts, host_numbers, schedule_bytes

_AMPLITUDE_BYTES = 16
_TRANSPORTS = {"auto": "in place", "mpi": "over MPI"}


@dataclass(kw_only=True)
class Permutation(HostsOptions, RoundingOptions):
    qubits: list[int] | None = numbers_option("Numbers of qubits of the state.", "22,24,...", high=62)
    transports: list[str] = names_option(
        ["auto"],
        "Transport: auto (in place in shared memory) or mpi (staged through MPI).",
        choices=tuple(_TRANSPORTS),
    )


@dataclass(frozen=True)
class Case:
    """One case: a state, the pairs of bits, and the transport."""

    qubits: int
    local: int
    eta: int
    where: str
    transport: str

    @property
    def name(self) -> str:
        """The name in the table."""
        return f"{self.qubits} qubits, {self.eta} {self.where}, {_TRANSPORTS[self.transport]}"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of a local bit, from the lowest or the highest on, and one of the lowest bits of the rank number."""
        first = 0 if self.where == "lowest" else self.local - self.eta
        return [(first + k, self.local + k) for k in range(self.eta)]

    def schedule(self, codec: str = "raw", rank: int | None = None) -> Schedule:
        """The permutation of all ranks, or the part of one."""
        return permute_bits(
            self.qubits, local=self.local, pairs=self.pairs, dtype="complex128", codec=codec, rank=rank
        )


def _cases(ranks: int, qubits: Sequence[int], transports: Sequence[str]) -> Iterator[Case]:
    """The cases on this number of ranks: up to three pairs, with the lowest and with the highest local bits."""
    rank_bits = ranks.bit_length() - 1
    if ranks != 1 << rank_bits or ranks < 2:
        raise BadInput(
            f"onehop bench permutation: expected a number of ranks that is a power of two, 2 or more, found {ranks}"
        )
    for bits in qubits:
        if bits - rank_bits < 3:
            raise BadInput(
                f"expected at least {counted(rank_bits + 3, 'qubit')} on {counted(ranks, 'rank')}, found {bits}"
            )
        for transport in transports:
            for where in ("lowest", "highest"):
                for eta in range(1, min(rank_bits, 3) + 1):
                    yield Case(bits, bits - rank_bits, eta, where, transport)


def _available(group: Group) -> int:
    """Bytes that every rank can still allocate; the same on all ranks, so that they leave out the same cases."""
    mine = native.available_memory().to_bytes(8, "little")
    return min(int.from_bytes(theirs, "little") for theirs in group.allgather(mine))


def _between_hosts(row: Row, group: Group, case: Case) -> Row:
    hosts = host_numbers(group)
    if max(hosts) == 0:
        return row
    whole = case.schedule()
    plan = Plan(whole, group, [group.empty(1 << case.local, "complex128")], transport=case.transport)
    row = between_hosts(row, group, plan.run, schedule_bytes(whole, hosts))
    group.barrier()  # no rank may free its state while others use it
    return row


def _rows(on: Run, case: Case, codecs: Sequence[str]) -> Iterator[Row]:
    group = on.group
    state = _AMPLITUDE_BYTES << case.qubits
    # The state, the buffers of MPI, and some room for other programs.
    if 2.5 * state > _available(group):
        on.result.notes.append(f"{case.name}: left out, it needs {bytes_text(2.5 * state)}")
        return
    parameters = (case.local, case.pairs, case.transport, on.effort, on.peers, list(codecs))
    measured = samples_of(native.permutation(group, *parameters))
    fraction = 1 - 0.5**case.eta
    rounded = {f"onehop, {codec}" for codec in codecs}
    exact = [candidate for candidate in measured if candidate.name not in rounded]
    row = make_row(case.name, int(fraction * (_AMPLITUDE_BYTES << case.local)), group.size, exact)
    row.update(
        qubits=case.qubits,
        eta=case.eta,
        one_at_a_time_us=next(iter(row.variants.values())),
        mpi_us=row.best_peer_us,
        fraction_moved=fraction,
        pairs=[list(pair) for pair in case.pairs],
        transport=case.transport,
    )
    yield _between_hosts(row, group, case)
    for codec in codecs:
        size = bytes_out(case.schedule(codec, group.rank), group.rank)
        error = permutation_rounding(group, case.qubits, case.pairs, codec)
        yield rounded_row(row, measured, (f"onehop, {codec}", "onehop"), codec, size, error)


def permutation(options: Permutation) -> Benchmark:
    """Permutations of amplitudes of 16 bytes, also with codecs.

    Bare code reads and writes once each cache line that holds an amplitude that moves.
    """
    ranks = (
        options.ranks if options.hosts is None else sum(ranks_of_hosts(options.hosts, options.per_host or 1))
    )
    launch = current_launch()
    ranks = ranks or (2 if launch is None else launch.ranks)
    qubits = options.qubits or ([12] if options.quick else [22, 24, 26])

    def rows(on: Run) -> Iterator[Row]:
        for case in on.cases:
            yield from _rows(on, case, options.codecs)

    cases = list(_cases(ranks, qubits, options.transports))
    return Benchmark(name="permutation", cases=cases, rows=rows, across=True)


def bench_permutation(options: Permutation) -> None:
    """Exchange up to three qubits of the rank number with local qubits."""
    run(options, permutation(options))
