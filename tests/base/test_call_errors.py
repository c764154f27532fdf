"""Wrong arguments of functions of the library: one line says which one, what was expected and what was found."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import onehop
from onehop import BadInput, _core, collectives, quantum
from onehop.lattice import Gauge, gradient_flow, thermalize


def functions() -> Iterator[tuple[str, Any]]:
    """Yield all functions, methods and properties of the library."""
    for name, value in vars(_core).items():
        if type(value).__name__ == "nb_func":
            yield name, value
        elif isinstance(value, type):
            for inner, one in vars(value).items():
                part = one.fset if isinstance(one, property) else one
                # A comparison with another type leaves the answer to that type.
                if type(part).__name__.startswith("nb_") and inner != "__eq__":
                    yield f"{name}.{inner}", part


def test_no_function_answers_with_all_its_signatures() -> None:
    found = dict(functions())
    assert len(found) > 300
    for name, function in found.items():
        for arguments in [object()] * 40, [1.5] * 40:
            with pytest.raises(BadInput) as error:
                function(*arguments)
            text = str(error.value)
            assert "\n" not in text, name
            assert "expected" in text, name
            assert not {"nanobind", "_core", "self", "incompatible"} & set(text.replace(".", " ").split()), (
                text
            )


def circuit() -> quantum.Circuit:
    return quantum.Circuit(1, 1).h(0).measure(0, 0)


TAKES = "; it takes (ranks, elements, element_bytes, only_rank) and returns a Schedule"
CASES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: quantum.simulate(circuit(), shots=1e3),
        "shots: expected a whole number, found 1000.0; write 1000",
    ),
    (lambda: quantum.simulate(circuit(), shots=0.5), "shots: expected a whole number, found 0.5"),
    (lambda: quantum.simulate(circuit(), shots="10"), "shots: expected a whole number, found '10'"),
    (lambda: quantum.simulate(circuit(), precision=2), "precision: expected a text, found 2"),
    (
        lambda: quantum.simulate(3),
        "circuit: expected a Circuit, found 3; onehop.quantum.load_qasm and parse_qasm read one",
    ),
    (
        lambda: onehop.patterns.allgather(onehop.Group.alone(), np.zeros(3)),
        "allgather: expected ranks to be a whole number, found a Group" + TAKES,
    ),
    (
        lambda: onehop.patterns.allgather(2, 3),
        "allgather: expected element_bytes, a whole number, found no such argument" + TAKES,
    ),
    (
        lambda: onehop.patterns.allgather(2, 3, 4, root=0),
        "allgather: there is no argument 'root'; expected one of (ranks, elements, element_bytes, only_rank)",
    ),
    (
        lambda: onehop.patterns.allgather(2, 3, 4, "0"),
        "allgather: expected only_rank to be a whole number or None, found '0'" + TAKES,
    ),
    (
        lambda: onehop.Group.alone().allgather("text"),
        "Group.allgather: expected mine to be bytes, found 'text'; it takes (mine) and returns a sequence of bytes",
    ),
    (
        lambda: onehop.patterns.allgather(1 << 70, 1, 8),
        "allgather: expected ranks to be a whole number in the range of its type, found "
        "1180591620717411303424" + TAKES,
    ),
    (lambda: quantum.Circuit(1).h(0.5), "qubits: expected a whole number, found 0.5"),
    (
        lambda: setattr(quantum.Operation("measure", "m", [0]), "control_values", "x"),
        "Operation.control_values: expected a whole number, found 'x'",
    ),
    (
        lambda: _core.State.set_amplitudes(quantum.State(1)._core, np.eye(2)),
        "State.set_amplitudes: expected amplitudes to be an array of complex128 with 1 dimension, found an array of "
        "float64 with 2 dimensions; it takes (amplitudes, normalize, check)",
    ),
    (
        lambda: _core.State.set_amplitudes(quantum.State(1)._core, "x"),
        "State.set_amplitudes: expected amplitudes to be an array of complex128 with 1 dimension, found 'x'; it takes "
        "(amplitudes, normalize, check)",
    ),
    (
        lambda: _core.message_traffic(2, [[(0, 1, 2.5)]]),
        "message_traffic: expected rounds to be a sequence of sequences of tuples of 3 whole numbers, found one with "
        "(0, 1, 2.5); it takes (ranks, rounds) and returns a Traffic",
    ),
    (
        lambda: quantum.Operation("matrix", "x", [0], angle="0.5"),
        "Operation: expected angle to be a number, found '0.5'",
    ),
    (lambda: onehop.Slice("x"), "Slice: expected at most 0 arguments, found 1; it takes no arguments"),
    (
        lambda: quantum.State(2, "x"),
        "State: expected group to be a Group, found 'x'; it takes (group, qubits, precision, threads, staging, device)",
    ),
]


@pytest.mark.parametrize(("call", "text"), CASES, ids=[text[:50] for _, text in CASES])
def test_the_wrong_argument_is_named(call: Callable[[], Any], text: str) -> None:
    for kind in BadInput, TypeError:
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == text
        assert str(pickle.loads(pickle.dumps(error.value))) == text


def test_type_errors_of_callbacks_stay_as_they_are() -> None:
    def wrong(_mine: bytes) -> list[bytes]:
        raise TypeError("of the callback")

    with pytest.raises(TypeError, match=r"^of the callback$"):
        onehop.Group.from_allgather(0, 2, wrong)


ALONE = onehop.Group.alone()
HALO = {"extents": (8, 8), "grid": (1, 1)}
# Calls of functions that are written in Python, and how their errors begin; tests/base/test_wrong_types.py has more.
IN_PYTHON: list[tuple[Callable[[], Any], str]] = [
    (lambda: onehop.Plan(None, ALONE, []), "schedule: expected a Schedule, found None"),
    (lambda: onehop.Poisson(ALONE, 8), "extents: expected a sequence, found 8"),
    (lambda: onehop.Poisson(ALONE, (8, 8), grid=(1,)), "grid: expected 2 numbers, found 1"),
    (lambda: onehop.Poisson(ALONE, local=8), "local: expected a sequence, found 8"),
    (lambda: onehop.Poisson(ALONE, local=(8, 8.0)), "local: expected a whole number, found 8.0"),
    (lambda: thermalize(Gauge(ALONE, (2, 2)), 6.0, 1, first=-1), "first: expected a whole number from 0"),
    (lambda: gradient_flow(Gauge(ALONE, (2, 2)), "x"), "time: expected a number, found 'x'"),
    (lambda: quantum.State(2, np.zeros(0)), "State: expected group to be a Group, found an array"),
    (
        lambda: collectives.allgather(np.ones(2), ALONE),
        "expected onehop.allgather(group, array), found array",
    ),
    (lambda: collectives.reduce_scatter(ALONE, [1.0]), "expected an array, found [1.0]; numpy.asarray"),
    (lambda: onehop.halo(**HALO, fields=2**40), "fields: expected a whole number from 1 to 1024"),
    (lambda: onehop.halo(**HALO, periodic="0"), "periodic: expected True or False, found '0'"),
]


@pytest.mark.parametrize(("call", "text"), IN_PYTHON, ids=[text[:50] for _, text in IN_PYTHON])
def test_the_wrong_argument_of_a_function_in_python_is_named(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value).startswith(text)
