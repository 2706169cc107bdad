"""What the tests on whole clusters share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apache_kafka import KafkaTools


@pytest.fixture(scope="session")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools("4.3.1") as running:
        yield running
