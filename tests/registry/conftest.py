"""A registry over Headrace, and over Apache Kafka."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.both_brokers import apache_kafka as apache_kafka
from tests.both_brokers import broker as broker
from tests.both_brokers import headrace as headrace
from tests.broker_process import BrokerProcess
from tests.registry.registry_process import RegistryProcess

_numbers = itertools.count()


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
