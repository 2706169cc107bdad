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
def headrace_properties() -> dict[str, str]:
    """Broker properties of `headrace_cluster` and `headrace_secure`: define a fixture of this name."""
    return {}


@pytest.fixture(scope="session")
def headrace_shared_properties() -> dict[str, str]:
    """The same of `headrace_shared_cluster`; its scope is the session."""
    return {}


@pytest.fixture
def headrace_cluster(headrace_properties: dict[str, str]) -> Iterator[Cluster]:
    """A broker of its own for one test."""
    from headrace.testing.cluster import Cluster

    with Cluster(headrace_properties) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def headrace_shared_cluster(headrace_shared_properties: dict[str, str]) -> Iterator[Cluster]:
    """One broker for the whole run; give your topics names of their own."""
    from headrace.testing.cluster import Cluster

    with Cluster(headrace_shared_properties) as cluster:
        yield cluster


@pytest.fixture
def headrace_secure(headrace_properties: dict[str, str]) -> Iterator[Cluster]:
    """A broker of its own for one test, with TLS, users and ACLs; `client_config` is the administrator's."""
    from headrace.testing.cluster import Cluster

    with Cluster(headrace_properties, secure=True) as cluster:
        yield cluster
