"""`onehop bench permutation`: swaps of bits of the rank number with local bits of a distributed state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onehop.error import BadInput
from onehop.group import Group
from onehop.permutation import permute_bits
from onehop.plan import Plan
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.result import Bench, Row, extended, make_row, samples_of
from onehop_bench.rounding import permutation_rounding, rounded_row
from onehop_bench.run import Advance, Settings, _begin, bytes_out
from onehop_bench.wire import between_hosts, host_numbers, schedule_bytes

__all__ = ["QUBITS", "PermutationRow", "permutation", "permutation_cases"]

QUBITS = (22, 24, 26)
AMPLITUDE_BYTES = 16
TRANSPORTS = {"auto": "in place", "mpi": "over MPI"}


@dataclass(frozen=True)
class PermutationRow(Row):
    """One case.

    Attributes
    ----------
    qubits : int
        Bits of the state's index.
    eta : int
        Number of pairs of bits that change places.
    one_at_a_time_us : float
        The time of onehop with a round for each pair.
    mpi_us : float or None
        The time of MPI_Sendrecv through a buffer as large as the rank's part, pair after pair; None without MPI.
    fraction_moved : float
        The fraction of a rank's amplitudes that goes to another rank.
    pairs : list of list of int
        The bits of the index that change places.
    transport : str
        "auto" in arrays that the ranks share, or "mpi".
    """

    qubits: int
    eta: int
    one_at_a_time_us: float
    mpi_us: float | None
    fraction_moved: float
    pairs: list[list[int]]
    transport: str


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
        return f"{self.qubits} qubits, {self.eta} {self.where}, {TRANSPORTS[self.transport]}"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of a local bit, from the lowest or the highest on, and one of the lowest bits of the rank number."""
        first = 0 if self.where == "lowest" else self.local - self.eta
        return [(first + k, self.local + k) for k in range(self.eta)]


def permutation_cases(ranks: int, qubits: Sequence[int], transports: Sequence[str]) -> Iterator[Case]:
    """The cases on this number of ranks: up to three pairs, with the lowest and with the highest local bits."""
    rank_bits = ranks.bit_length() - 1
    if ranks != 1 << rank_bits or ranks < 2:
        raise BadInput(
            f"onehop bench permutation: expected a number of ranks that is a power of two, 2 or more, found {ranks}"
        )
    for transport in transports:
        if transport not in TRANSPORTS:
            raise BadInput(f"expected transports among {', '.join(TRANSPORTS)}, found {transport!r}")
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
    whole = permute_bits(case.qubits, local=case.local, pairs=case.pairs, dtype="complex128")
    state = group.empty(1 << case.local, "complex128")
    plan = Plan(whole, group, [state], transport=case.transport)
    row = between_hosts(row, group, plan.run, schedule_bytes(whole, hosts))
    group.barrier()  # no rank may free its state while others use it
    return row


def permutation(
    group: Group,
    settings: Settings,
    advance: Advance,
    qubits: Sequence[int] = QUBITS,
    transports: Sequence[str] = ("auto",),
    codecs: Sequence[str] = (),
) -> Bench:
    """Measure permutations of amplitudes of 16 bytes, also with codecs.

    The speed of light reads and writes once each cache line that holds an amplitude that moves.
    """
    result = _begin("permutation", group, None, across=True)
    cases = list(permutation_cases(group.size, qubits, transports))
    effort = settings.effort(len(cases))
    for case in cases:
        state = AMPLITUDE_BYTES << case.qubits
        # The state, the buffers of MPI, and some room for other programs.
        if 2.5 * state > _available(group):
            result.notes.append(f"{case.name}: left out, it needs {bytes_text(2.5 * state)}")
            advance(1)
            continue
        measured = samples_of(
            native.permutation(
                group,
                case.local,
                case.pairs,
                AMPLITUDE_BYTES,
                case.transport,
                effort,
                settings.peers,
                list(codecs),
            )
        )
        fraction = 1 - 0.5**case.eta
        sent = int(fraction * (AMPLITUDE_BYTES << case.local))
        rounded = {f"onehop, {codec}" for codec in codecs}
        exact = [one for one in measured if one.name not in rounded]
        row = make_row(case.name, sent, group.size, exact)
        row = _between_hosts(row, group, case)
        result.rows.append(
            extended(
                row,
                PermutationRow,
                qubits=case.qubits,
                eta=case.eta,
                one_at_a_time_us=next(iter(row.variants.values())),
                mpi_us=row.best_peer_us,
                fraction_moved=fraction,
                pairs=[list(pair) for pair in case.pairs],
                transport=case.transport,
            )
        )
        for codec in codecs:
            schedule = permute_bits(
                case.qubits,
                local=case.local,
                pairs=case.pairs,
                dtype="complex128",
                codec=codec,
                rank=group.rank,
            )
            names = (f"onehop, {codec}", "onehop")
            error = permutation_rounding(group, case.qubits, case.pairs, codec)
            size = bytes_out(schedule, group.rank)
            result.rows.append(rounded_row(row, measured, names, codec, size, error))
        advance(1)
    return result
