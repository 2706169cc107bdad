"""Headrace and Apache Kafka as fixtures, for what must do the same on both. Conftests import all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.apache_kafka import ApacheKafka
from tests.broker_process import BrokerProcess, HeadraceProcess

TARGETS: Final[Mapping[str, type[BrokerProcess]]] = {"headrace": HeadraceProcess, "kafka": ApacheKafka}


@pytest.fixture(scope="session")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """For what does not depend on whose broker it is."""
    with HeadraceProcess(tmp_path_factory.mktemp("headrace"), {}) as process:
        yield process


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), {}) as process:
        yield process


@pytest.fixture(scope="session", params=list(TARGETS))
def broker(request: pytest.FixtureRequest) -> BrokerProcess:
    """Headrace, then Apache Kafka. Whose processes are kept: each file of tests asks for both in turn."""
    process: BrokerProcess = request.getfixturevalue(
        "headrace" if request.param == "headrace" else "apache_kafka"
    )
    return process
