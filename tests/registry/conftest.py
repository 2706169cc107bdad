"""A registry over Headrace, and over Apache Kafka."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.apache_kafka import ApacheKafka
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.registry.registry_process import RegistryProcess

_TARGETS: dict[str, type[BrokerProcess]] = {"headrace": HeadraceProcess, "kafka": ApacheKafka}
_numbers = itertools.count()


@pytest.fixture(scope="session", params=list(_TARGETS))
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with _TARGETS[request.param](tmp_path_factory.mktemp(request.param), {}) as process:
        yield process


@pytest.fixture(scope="session")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """For what does not depend on whose broker it is."""
    with HeadraceProcess(tmp_path_factory.mktemp("headrace"), {}) as process:
        yield process


@pytest.fixture(scope="session")
def shared_registry(
    headrace: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """One for all tests that only need subjects of their own."""
    with RegistryProcess(tmp_path_factory.mktemp("registry"), headrace.bootstrap) as process:
        yield process


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of subjects and topics that no other test of this worker uses."""
    return lambda: f"name-{os.getpid()}-{next(_numbers)}"
