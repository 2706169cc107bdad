"""What Kafka's own client, in Spark's process, says: its errors, and the id of a topic."""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types

_GONE: Final = "UnknownTopicOrPartitionException"
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker tells that has no topic ids."""


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
