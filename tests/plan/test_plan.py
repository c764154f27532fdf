"""Plans from Python: overlap, reuse, kinds of memory, and refused arguments."""

import array
import gc
import json
import mmap
import re
import time
import weakref
from typing import Any

import numpy as np
import pytest

import onehop
from onehop import ArraySpec, BadInput, Group, Place, Plan, Round, Schedule, Slice, Transfer
from onehop.machine import RailAssignment
from ranks import Ranks
from threads import run_threads

LAYOUT: dict[str, Any] = {"extents": (4,), "grid": (1,)}


def alone(memory: Any, **options: Any) -> Plan:
    return Plan(onehop.halo(**LAYOUT), Group.alone(), [memory], **options)


class OnlyDlpack:
    """An array with DLPack but without the buffer protocol, like a torch tensor."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.__dlpack_device__()


def test_context_manager_starts_and_finishes() -> None:
    def rank(group: Group) -> None:
        peer = 1 - group.rank
        schedule = Schedule(
            "swap",
            2,
            [ArraySpec("u", 2)],
            [
                Round(
                    [
                        Transfer(Place(r, 0, Slice.range(0, 1)), Place(1 - r, 0, Slice.range(1, 1)))
                        for r in range(2)
                    ]
                )
            ],
        )
        values = np.array([10.0 * group.rank, -1])
        plan = Plan(schedule, group, [values])
        for step in range(100):
            values[0] = 10 * group.rank + step
            with plan as entered:
                assert entered is plan
            assert values[1] == 10 * peer + step
        assert plan.counters.runs == 100
        assert plan.staging_bytes > 0

    run_threads(2, rank)


def test_block_that_raises_does_not_finish_the_run() -> None:
    """It would wait for peers that may never come."""
    plan = alone(np.zeros(6))
    with pytest.raises(KeyError, match="inside"), plan:
        raise KeyError("inside")
    assert plan.counters.runs == 0
    moved = "0 messages and 0 bytes sent, 0 messages and 0 bytes received, 16 bytes local"
    assert repr(plan.counters) == f"<PlanCounters: 0 runs, {moved}>"


def test_test_says_when_finish_would_not_wait() -> None:
    def rank(group: Group) -> None:
        layout = {"extents": (4, 4), "grid": (2, 1)}
        plan = Plan(
            onehop.halo(**layout), group, [np.zeros(onehop.halo_block(**layout, rank=group.rank).shape)]
        )
        if group.rank == 0:
            plan.start()
            assert not plan.test()
        group.barrier()
        if group.rank == 1:
            plan.start()
        until = time.monotonic() + 10
        while not plan.test():
            assert time.monotonic() < until
        plan.finish()

    run_threads(2, rank)


# -- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "memory",
    [
        np.zeros(6),
        np.zeros((2, 3)),
        np.zeros((1, 6, 1))[:, :, ::-1],
        np.zeros(48, "u1"),
        bytearray(48),
        memoryview(bytearray(48)),
        array.array("d", [0] * 6),
        mmap.mmap(-1, 48),
        OnlyDlpack(np.zeros(6)),
        np.zeros(6, "M8[s]"),
    ],
    ids=lambda memory: type(memory).__name__,
)
def test_any_contiguous_memory(memory: Any) -> None:
    alone(memory).run()


def test_results_land_in_the_users_memory() -> None:
    for memory in (inner := np.arange(6.0), OnlyDlpack(inner), memoryview(inner)):
        inner[:] = np.arange(6)
        alone(memory).run()
        assert inner.tolist() == [4, 1, 2, 3, 4, 1]


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        (np.zeros(12)[::2], "C-contiguous"),
        (np.asfortranarray(np.zeros((2, 3))), "C-contiguous"),
        (OnlyDlpack(np.zeros(12)[::2]), "C-contiguous"),
        (bytes(48), "read-only"),
        (np.frombuffer(bytes(48)), "read-only"),
        ([0.0] * 6, "must be an array"),
        (None, "None"),
        (np.zeros(5), "field0"),
    ],
    ids=[
        "strided",
        "Fortran order",
        "strided DLPack",
        "bytes",
        "read-only array",
        "list",
        "None",
        "too short",
    ],
)
def test_memory_that_is_refused(memory: Any, why: str) -> None:
    with pytest.raises(onehop.BadInput, match=why):
        alone(memory)


def test_read_only_memory_is_fine_where_it_is_only_read() -> None:
    def rank(group: Group) -> None:
        schedule = Schedule(
            "one way",
            2,
            [ArraySpec("source", [3, 0]), ArraySpec("target", [0, 3])],
            [Round([Transfer(Place(0, 0, Slice.range(0, 3)), Place(1, 1, Slice.range(0, 3)))])],
        )
        source = np.arange(3.0)
        source.flags.writeable = False
        target = np.zeros(3)
        Plan(schedule, group, [source, None] if group.rank == 0 else [None, target]).run()
        if group.rank == 1:
            assert target.tolist() == [0, 1, 2]
        group.barrier()

    run_threads(2, rank)


def test_number_of_arrays() -> None:
    with pytest.raises(onehop.BadInput, match=r"expected 1 array \('field0'\), found 2"):
        Plan(onehop.halo(**LAYOUT), Group.alone(), [np.zeros(6), np.zeros(6)])


ONE_WAY = Schedule(
    "one way",
    2,
    [ArraySpec("u", 3)],
    [Round([Transfer(Place(0, 0, Slice.range(0, 3)), Place(1, 0, Slice.range(0, 3)))]), Round([])],
)


@pytest.mark.parametrize(
    ("rails", "why"),
    [
        ([], "a list for each of 2 rounds, found 0"),
        ("cut", "one list of RailAssignment for each round, found 'cut'"),
        (7, "one list of RailAssignment for each round, found 7"),
        ([7, []], "found 7 for round 0"),
        ([[], [7]], "expected a RailAssignment in round 1, found 7"),
        ([[], [RailAssignment(0, 1, 0, 0, 24)]], "rank 0 to rank 1 in round 1, which it does not have"),
        ([[RailAssignment(0, 0, 0, 0, 24)], []], "rank 0 to rank 0 in round 0, which it does not have"),
        ([[RailAssignment(0, 1, 0, 0, 23)], []], "with 24 bytes in all, found 23"),
        ([[RailAssignment(0, 1, 0, 0, 25)], []], "its 24 bytes, found 25 bytes from byte 0 on"),
        ([[RailAssignment(0, 1, 0, 2**63 - 1, 2**63 - 1)], []], "where byte 0 is next"),
        ([[RailAssignment(0, 1, 0, 0, 9), RailAssignment(0, 1, 0, 8, 16)], []], "where byte 9 is next"),
        ([[RailAssignment(0, 1, 0, 0, 30), RailAssignment(0, 1, 0, 30, -6)], []], "its 24 bytes, found 30"),
    ],
)
def test_rails_of_other_messages(rails: Any, why: str) -> None:
    def rank(group: Group) -> None:
        with pytest.raises(onehop.Error, match=re.escape(why)) as caught:
            Plan(ONE_WAY, group, [np.zeros(3)], rails=rails)
        assert isinstance(caught.value, onehop.BadInput) or group.rank == 1
        group.barrier()

    run_threads(2, rank)


def test_rails_change_nothing_in_shared_memory() -> None:
    def rank(group: Group) -> None:
        values = np.arange(3.0) * (1 - group.rank)
        pieces = [RailAssignment(0, 1, 9, 10, 14), RailAssignment(0, 1, 4, 0, 10)]
        plan = Plan(ONE_WAY, group, [values], rails=[pieces, []])
        plan.run()
        assert values.tolist() == [0, 1, 2]
        assert all(
            c["rails"] == 1 and not c["rails_assigned"] for c in plan.explain()["channels"] if "rails" in c
        )
        group.barrier()

    run_threads(2, rank)


@pytest.mark.parametrize("shared", [False, True])
def test_plan_keeps_its_memory_and_group(shared: bool) -> None:
    group = Group.alone()
    memory = group.empty(6) if shared else np.arange(6.0)
    watch = weakref.ref(memory)
    plan = Plan(onehop.halo(**LAYOUT), group, [memory])
    del memory, group
    gc.collect()
    assert watch() is not None
    plan.run()
    del plan
    gc.collect()
    assert watch() is None


# -- ranks that do not agree -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"slots": "two"}, "slots.* a whole number, found 'two'"),
        ({"chunk_bytes": 0.5}, "chunk_bytes.* a whole number, found 0.5"),
        ({"direct_puts": "no"}, "direct_puts: expected"),
        ({"verify": 1}, "verify: expected True or False"),
        ({"transport": 3}, "transport: expected a str, found 3"),
    ],
)
def test_an_option_of_another_type_on_one_rank_is_heard_by_all(option: dict[str, Any], why: str) -> None:
    layout = {"extents": [8], "grid": [2], "width": 1}

    def rank(group: Group) -> None:
        with pytest.raises(onehop.BadInput if group.rank == 1 else onehop.Error, match=why):
            Plan(onehop.halo(**layout), group, [np.zeros(6)], **(option if group.rank == 1 else {}))
        if not option.keys() & {"direct_puts", "verify"}:
            with pytest.raises(onehop.BadInput if group.rank == 1 else onehop.Error, match=why):
                group.channels(send={1 - group.rank: 8}, **(option if group.rank == 1 else {}))

    run_threads(2, rank)


def transfers_into_rank_1(*transfers: Transfer) -> Schedule:
    return Schedule("x", 2, [ArraySpec("a", 8, 8, "float64")], [Round(list(transfers))])


def move(source: Slice, target: Slice, combine: str = "replace", ends: tuple[int, int] = (0, 1)) -> Transfer:
    return Transfer(Place(ends[0], 0, source), Place(ends[1], 0, target), combine)


REFUSED_BY_VERIFY = {
    "a stride of zero": [move(Slice.range(0, 3), Slice.box(5, [3], [0]))],
    "replace and add": [
        move(Slice.range(0, 1), Slice.range(5, 1)),
        move(Slice.range(1, 1), Slice.range(5, 1), "add"),
    ],
    "reads what another writes": [
        move(Slice.range(0, 2), Slice.range(4, 2)),
        move(Slice.range(4, 2), Slice.range(6, 2), ends=(1, 0)),
    ],
}


@pytest.mark.parametrize("transfers", REFUSED_BY_VERIFY.values(), ids=REFUSED_BY_VERIFY)
@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_plan_that_verifies_refuses_what_verify_refuses(
    transfers: list[Transfer], by_environment: bool, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = transfers_into_rank_1(*transfers)
    (violation,) = onehop.verify(schedule, limit=1)
    if by_environment:
        monkeypatch.setenv("ONEHOP_VERIFY", "1")

    def rank(group: Group) -> None:
        given = schedule if whole else schedule.part(group.rank)
        with pytest.raises(onehop.Error, match=re.escape(violation.message)):
            Plan(given, group, [np.zeros(8)], verify=not by_environment)

    run_threads(2, rank)


def test_what_must_be_covered_counts_only_for_a_plan_that_verifies() -> None:
    spec = [ArraySpec("u", 6)]
    schedule = Schedule("lacks", 1, spec, [Round([])], must_cover=[Place(0, 0, Slice.range(0, 6))])
    Plan(schedule, Group.alone(), [np.zeros(6)]).run()
    with pytest.raises(onehop.BadInput, match="coverage"):
        Plan(schedule, Group.alone(), [np.zeros(6)], verify=True)


# -- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.alone
def test_a_run_from_python_costs_little() -> None:
    """A bound for the order of magnitude: the goal is 2 µs, and a busy machine gets ten times that."""
    plan = alone(np.zeros(6), transport="mock")
    best = min(_seconds_per_run(plan) for _ in range(20))
    assert best < 20e-6


def _seconds_per_run(plan: Plan) -> float:
    begin = time.perf_counter()
    for _ in range(500):
        plan.start()
        plan.finish()
    return (time.perf_counter() - begin) / 500


def test_explain_says_how_messages_move() -> None:
    def rank(group: Group) -> None:
        numbers = 2000
        everything = Slice.range(0, numbers)
        transfers = [Transfer(Place(r, 0, everything), Place(1 - r, 1, everything)) for r in range(2)]
        schedule = Schedule(
            "swap", 2, [ArraySpec("out", numbers, 8), ArraySpec("in", numbers, 8)], [Round(transfers)]
        )
        out, into = np.zeros(numbers), np.zeros(numbers)
        plan = Plan(schedule, group, [out, into], slots=3, slot_bytes=8000, chunk_bytes=5000)
        for run in range(300):
            out[:] = group.rank + 1 + np.arange(numbers) * run
            plan.run()
            np.testing.assert_array_equal(into, 2 - group.rank + np.arange(numbers) * run)
        found = json.loads(json.dumps(plan.explain()))
        assert found["staging_bytes"] == plan.staging_bytes
        send, receive = found["channels"]
        shape = {
            "peer": 1 - group.rank,
            "carrier": "shared_memory",
            "bytes": 16000,
            "slots": 3,
            "slot_bytes": 8000,
            "chunk_bytes": 5000,
        }
        assert receive == {"direction": "receive", **shape}
        stores = send.pop("stores")
        assert stores in {"plain", "nontemporal", "prefetch"}
        assert send.pop("adaptive") in {True, False}
        assert send.pop("direct_puts") == 0  # NumPy's own arrays cannot be written by others
        assert send.pop("direct_stores") in {"plain", "nontemporal", "prefetch"}
        assert send == {"direction": "send", "rails": 1, "rails_assigned": False, **shape}
        if group.rank == 0:
            assert alone(np.zeros(6)).explain()["channels"] == []

    run_threads(2, rank)


@pytest.mark.parametrize("wanted", [True, False])
def test_arrays_from_the_group_are_written_directly(wanted: bool) -> None:
    def rank(group: Group) -> None:
        numbers = 5000
        everything = Slice.range(0, numbers)
        transfers = [Transfer(Place(r, 0, everything), Place(1 - r, 1, everything)) for r in range(2)]
        schedule = Schedule(
            "swap", 2, [ArraySpec("out", numbers, 8), ArraySpec("in", numbers, 8)], [Round(transfers)]
        )
        out, into = np.zeros(numbers), group.empty(numbers)
        plan = Plan(schedule, group, [out, into], direct_puts=wanted)
        for run in range(200):
            out[:] = group.rank + np.arange(numbers) * run
            plan.run()
            np.testing.assert_array_equal(into, 1 - group.rank + np.arange(numbers) * run)
        send = plan.explain()["channels"][0]
        assert (send["direct_puts"] > 0) == (wanted and send["adaptive"])

    run_threads(2, rank)


BREAKS_THE_PROMISE = """
    import numpy as np, onehop

    group = onehop.Group.world()
    layout = dict(extents=(8, 24, 24), grid=(group.size, 1, 1), width=1)
    u = {memory}
    plan = onehop.Plan(onehop.halo(**layout), group, [u])
    block = onehop.halo_block(**layout, rank=group.rank)
    for access in (lambda: u[block.interior].sum(), lambda: {access}):
        u[...] = 1
        try:
            with plan:
                access()
        except onehop.BadInput as error:
            print(error)
        assert np.isfinite(u).all()
"""


@pytest.mark.parametrize(
    ("memory", "access", "said"),
    [
        ("group.empty((6, 26, 26))", "u.sum()", "read element .* and the exchange writes it"),
        (
            "np.empty((6, 26, 26))",
            "u.__setitem__((1, 3, 4), 2)",
            "wrote element 758 .* and the exchange reads it",
        ),
        ("np.empty((6, 26, 26))", "u.__setitem__((2, 3, 4), 2)", None),
    ],
)
def test_a_guarded_program_that_breaks_the_promise(
    ranks: Ranks, memory: str, access: str, said: str | None
) -> None:
    """Computing on the interior is allowed, on pages that hold ghosts as well."""
    ranks.environment["ONEHOP_GUARD"] = "1"
    done = ranks.launch(2, BREAKS_THE_PROMISE.format(memory=memory, access=access), status=0)
    lines = done.stdout.splitlines()
    assert len(lines) == (2 if said else 0), lines
    for line in lines:
        assert re.search(rf"plan 'halo': the program {said} meanwhile", line), line
        assert "of array 0 ('field0') between start() and finish()" in line


def test_arrays_of_another_type_are_named() -> None:
    for dtype in ("float32", "complex128"):
        with pytest.raises(BadInput, match=rf"is {dtype}, expected float64 of shape \(6,\)"):
            alone(np.zeros(6, dtype))
    place = Place(0, 0, Slice.range(0, 4))
    spec = ArraySpec("u", 4, 4, "float32")
    for codec, combine, types in (("raw", "add", ["f8", ">f4", "i4", "c16"]), ("q8", "replace", ["f8"])):
        moves = Transfer(place, Place(0, 1, place.slice), combine, codec)
        schedule = Schedule("sum", 1, [spec, spec], [Round([moves])])
        for dtype in types:
            with pytest.raises(BadInput, match="expected float32, "):
                Plan(schedule, Group.alone(), [np.zeros(4, dtype)] * 2)
        Plan(schedule, Group.alone(), [np.zeros(4, "f4"), np.zeros(16, "u1")])


def test_arrays_whose_bytes_mean_something_else_are_refused() -> None:
    """Also those that a schedule only moves: another rank would read other numbers."""
    for memory, match in (
        (np.zeros(6, ">f8"), "is >f8, expected float64, in this machine's byte order"),
        (np.ma.array(np.zeros(6), mask=[1, 0, 0, 0, 0, 0]), "without a mask"),
    ):
        with pytest.raises(BadInput, match=match):
            alone(memory)
    place = Place(0, 0, Slice.range(0, 4))
    moves = [Transfer(place, Place(0, 1, place.slice))]
    schedule = Schedule("bytes", 1, [ArraySpec("u", 4, 4), ArraySpec("v", 4, 4)], [Round(moves)])
    Plan(schedule, Group.alone(), [np.zeros(4, ">f4"), np.zeros(4, ">f4")])
