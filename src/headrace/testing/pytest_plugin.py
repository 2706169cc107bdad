"""Fixtures for any project that tests against a Kafka: installed with headrace, found by pytest itself.

    def test_orders(headrace_cluster):
        producer = Producer({"bootstrap.servers": headrace_cluster.bootstrap})

Nothing of the broker is imported until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.cluster import Cluster


@pytest.fixture
def headrace_cluster() -> Iterator[Cluster]:
    """A broker of its own for one test."""
    from headrace.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def headrace_shared_cluster() -> Iterator[Cluster]:
    """One broker for the whole run; give your topics names of their own."""
    from headrace.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def headrace_secure() -> Iterator[Cluster]:
    """A broker of its own for one test, with TLS, users and ACLs; `client_config` is the administrator's."""
    from headrace.testing.cluster import Cluster

    with Cluster(secure=True) as cluster:
        yield cluster
