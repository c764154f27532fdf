"""Every C++ error arrives in Python as the exception of its name."""

import pickle
import re

import pytest

import onehop
from onehop import _core


@pytest.mark.parametrize("name", ["Error", "BadInput", "Mismatch", "Timeout", "PeerLost"])
def test_arrives_with_its_name_and_message(name: str) -> None:
    with pytest.raises(onehop.Error, match="seven expected, found eight") as caught:
        _core._throw(name, "seven expected, found eight")
    assert type(caught.value) is getattr(onehop, name)


def test_lost_peer_names_its_rank() -> None:
    with pytest.raises(onehop.PeerLost) as caught:
        _core._throw("PeerLost", "rank 3 is gone")
    assert caught.value.rank == 3


@pytest.mark.parametrize(
    ("name", "builtin"), [("BadInput", ValueError), ("Timeout", TimeoutError), ("PeerLost", ConnectionError)]
)
def test_is_also_the_builtin_error_of_its_kind(name: str, builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        _core._throw(name, "")


def test_lost_peer_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(onehop.PeerLost("rank 3 is gone", 3)))
    assert (str(error), error.rank) == ("rank 3 is gone", 3)


def test_version_is_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", onehop.__version__)
