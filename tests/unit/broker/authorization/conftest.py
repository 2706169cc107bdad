from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing.cluster import Cluster
from tests.unit.broker.authorization.realm import SETTINGS, Realm


@pytest.fixture(scope="package")
def realm() -> Iterator[Realm]:
    """One for all: what a test makes in it, another one may see."""
    with Cluster(SETTINGS) as cluster:
        yield Realm(cluster)
