"""Faults of the transport, plans, reductions and groups that the soak must find: each a change of the sources.

broken.py builds onehop with one of them at a time. A change replaces a text that occurs a known number of times, so
that a fault which no longer fits the sources is an error and not a correct build.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Replace `old`, which occurs `times` times in a file of the repository, by `new`."""

    file: str
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True)
class Fault:
    """A broken build: its name, what is broken, and the kind of native trial that must find it."""

    name: str
    what: str
    kind: str
    changes: tuple[Change, ...]


_ROUND = "src/plan/run/round.cc"
_STORE = "src/channel/store.cc"
_EXCHANGE = "collectives/exchange_data.cc"


def fault(name: str, meaning: str, kind: str, file: str, old: str, new: str, times: int = 1) -> Fault:
    """Return a fault of one change."""
    return Fault(name, meaning, kind, (Change(file, old, new, times),))


FAULTS = (
    Fault(
        "no-fence",
        "no fence between non-temporal stores into a slot and its flag",
        "long_messages",
        (
            Change(_STORE, "  piece(to, from, n);\n  _mm_sfence();", "  piece(to, from, n);"),
            Change(_STORE, "if (kind == StoreKind::nontemporal) _mm_sfence();", ""),
        ),
    ),
    fault(
        "short-tail",
        "non-temporal stores leave out the last byte of a piece that ends inside a vector",
        "long_messages",
        _STORE,
        "std::memcpy(to + i, from + i, n - i);",
        "std::memcpy(to + i, from + i, n > i ? n - i - 1 : 0);",
        3,
    ),
    fault(
        "early-flag",
        "a plan publishes a chunk before it packs it",
        "exchanges",
        _ROUND,
        "  detail::pack_chunk(program, message.end, chunk, sender.payload());\n"
        "  ++message.chunk;\n"
        "  const bool complete = fragment.first + message.chunk == fragment.last;\n"
        "  sender.publish(complete ? detail::whole : message.chunk, chunk.end);\n",
        "  ++message.chunk;\n"
        "  const bool complete = fragment.first + message.chunk == fragment.last;\n"
        "  sender.publish(complete ? detail::whole : message.chunk, chunk.end);\n"
        "  detail::pack_chunk(program, message.end, chunk, sender.payload());\n",
    ),
    Fault(
        "early-release",
        "a plan releases a slot before it reads the last chunk in it",
        "exchanges",
        (
            Change(
                _ROUND,
                "  unpack(program.chunks[fragment.first + message.chunk], program.receivers[message.end]);\n",
                "  Receiver& receiver = program.receivers[message.end];\n"
                "  const std::byte* const slot = receiver.payload();\n"
                "  if (fragment.first + message.chunk + 1 == fragment.last) receiver.release();\n"
                "  detail::unpack_chunk(program, program.chunks[fragment.first + message.chunk], slot);\n",
            ),
            Change(_ROUND, "  program.receivers[message.end].release();\n", ""),
        ),
    ),
    fault(
        "one-slot-too-many",
        "a sender writes one message more than there are free slots",
        "exchanges",
        "include/onehop/detail/channel_core.h",
        "use_ < free_uses_",
        "use_ < free_uses_ + 1",
        2,
    ),
    fault(
        "first-chunk-is-enough",
        "a plan unpacks every chunk of a slot as soon as the first one has arrived",
        "long_messages",
        _ROUND,
        "const bool last = fragment.first + message.chunk + 1 == fragment.last;\n"
        "  return program.receivers[message.end].has(last ? detail::whole : message.chunk + 1);",
        "static_cast<void>(fragment);\n  return program.receivers[message.end].has(1);",
    ),
    fault(
        "old-exposure",
        "a direct put accepts the exposure of the round before",
        "long_messages",
        _ROUND,
        "if (message.puts && sender.exposed() == epoch) {",
        "if (message.puts && sender.exposed() + 1 >= epoch) {",
    ),
    fault(
        "put-unmarked",
        "a direct put does not tell the receiver that its slot is empty",
        "long_messages",
        "src/channel/channel_core.cc",
        "(target == StoreTarget::array ? mark_in_array : 0)",
        "(target == StoreTarget::array ? 0 : 0)",
    ),
    fault(
        "unpacked-too-soon",
        "an array that is sent and received in place is overwritten before it is packed",
        "exchanges",
        _ROUND,
        "if (message.dependency < 0) return true;",
        "if (message.dependency < 99) return true;",
    ),
    fault(
        "not-ready",
        "an exchange in place begins before the partner is ready",
        "exchanges",
        "src/plan/direct/direct_exchange.cc",
        "return partners_[p].ready; })) return false;",
        "return p < partners_.size(); })) return false;",
    ),
    fault(
        "any-instead-of-all",
        "a round in lockstep goes on when one of its messages has arrived",
        "exchanges",
        _ROUND,
        "visit([&] { return std::ranges::all_of(now.in,",
        "visit([&] { return std::ranges::any_of(now.in,",
    ),
    Fault(
        "sum-after-release",
        "an all-reduce releases the contributions of its peers before it adds them",
        "long_messages",
        (
            Change(
                _EXCHANGE,
                "sources_[index(peer.rank)] = peer.reduce_in.wait().data();\n",
                "sources_[index(peer.rank)] = peer.reduce_in.wait().data();\n    peer.reduce_in.release();\n",
            ),
            Change(_EXCHANGE, "  for (Peer& peer : peers_) peer.reduce_in.release();\n", ""),
        ),
    ),
    fault(
        "unnoticed-end",
        "the end of a process is not noticed",
        "kills",
        "src/group/liveness.cc",
        "return poll(&readable, 1, 0) > 0;",
        "return poll(&readable, 1, 0) > 9;",
    ),
    fault(
        "wrong-name",
        "a survivor names the rank for which it waited, not the one that ended",
        "kills",
        "src/channel/waiting.cc",
        "throw PeerLost(lost, group_.name_of(lost)",
        "throw PeerLost(waiting.peer, group_.name_of(lost)",
    ),
    Fault(
        "left-is-lost",
        "a survivor that gave up and left its group is taken for the rank that was lost",
        "kills",
        (
            Change(
                "src/group/group_state.cc",
                "if (ended && !closed && precedes) found.lost = first;",
                "if ((ended || closed) && precedes) found.lost = first;",
            ),
            Change("src/group/group_state.cc", "if (reported >= 0) found.lost = reported;", ""),
        ),
    ),
    fault(
        "told-in-one-group",
        "a survivor reports the lost rank only in the group in which it waited",
        "split_kills",
        "src/group/leaving.cc",
        "      note(*group, rank);\n",
        "",
    ),
    fault(
        "leaked-descriptor",
        "shared memory is unmapped and its descriptor stays open",
        "kills",
        "src/group/shared_memory.cc",
        "if (fd >= 0) close(fd);\n}\n\nSharedMemory SharedMemory::create",
        "}\n\nSharedMemory SharedMemory::create",
    ),
)
