"""One broker for the tests of a module: Headrace, or with `--target kafka` Apache Kafka itself.

What passes with both is said about the protocol, not about a broker of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from headrace.testing.cluster import Cluster
from tests.apache_kafka import ApacheKafka


@contextmanager
def either_broker(
    request: pytest.FixtureRequest, directories: pytest.TempPathFactory, properties: Mapping[str, str]
) -> Iterator[str]:
    """Its bootstrap address."""
    if request.config.getoption("--target") == "kafka":
        with ApacheKafka(directories.mktemp("kafka"), properties) as kafka:
            yield kafka.bootstrap
    else:
        with Cluster(properties) as headrace:
            yield headrace.bootstrap
