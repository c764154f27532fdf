"""The gauge field that the tests of files share."""

import pytest

from gauge_files import EXTENTS
from onehop import Group
from onehop.lattice import Gauge, thermalize


@pytest.fixture(scope="session")
def gauge() -> Gauge:
    field = Gauge(Group.alone(), EXTENTS)
    thermalize(field, 5.5, 2, over_relaxations=0)
    return field
