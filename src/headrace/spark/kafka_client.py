"""Kafka's own client, in Spark's process: what it is given, its errors, and the id of a topic."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.concealing import conceal_options
from headrace.spark.kafka_properties import KafkaProperties

_GONE: Final = "UnknownTopicOrPartitionException"
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker tells that has no topic ids."""
_CONFIGS: Final = (
    "admin.AdminClientConfig",
    "consumer.ConsumerConfig",
    "producer.ProducerConfig",
)
"""One set of properties may be meant for readers and writers, so each counts that any of them has."""


class UnknownProperty(HeadraceError):
    """Kafka's clients would pass it over, and be less protected, or slower, than the user thinks."""


def java_properties(spark: SparkSession, kafka: Mapping[str, str]) -> Any:
    """For a client of Kafka's own. Raises UnknownProperty."""
    jvm: Any = spark._jvm
    known = _known_properties(jvm)
    for name in kafka:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]}?" if close else "correct or remove it"
            raise UnknownProperty(f"Kafka's clients have no property {name}: {meant}")
    conceal_options(spark)
    properties = jvm.java.util.Properties()
    for name, value in kafka.items():
        properties.put(name, value)
    return properties


@functools.lru_cache(maxsize=1)
def _known_properties(jvm: Any) -> frozenset[str]:
    """In one string each: Py4J asks for every element of a Java set by itself."""
    found: set[str] = set()
    for name in _CONFIGS:
        package, _, config = name.partition(".")
        names = getattr(getattr(jvm.org.apache.kafka.clients, package), config).configNames()
        found.update(str(jvm.java.lang.String.join("\n", names)).split())
    return frozenset(found)


def told(error: Py4JJavaError, kafka: Mapping[str, str]) -> str:
    """What the innermost error says, without any secret of the client's properties."""
    return KafkaProperties(kafka).conceal(cause(error)[1])


def cause(error: Py4JJavaError) -> tuple[str, str]:
    """The name of the innermost error and what it says."""
    found = error.java_exception
    while found.getCause() is not None:
        found = found.getCause()
    kind = str(found.getClass().getSimpleName())
    return kind, str(found.getMessage() or kind)


def is_gone(error: Py4JJavaError) -> bool:
    """Whether it is about a topic that does not exist."""
    return cause(error)[0] == _GONE


def topic_id(described: Any) -> str | None:
    """Of a description. A topic that is made anew has another id. None where brokers have none."""
    told = str(described.topicId().toString())
    return None if told == _NO_ID else told
