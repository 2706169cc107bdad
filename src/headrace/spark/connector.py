"""What all readers give to Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FETCH_WAIT: Final = ("kafka.fetch.max.wait.ms", "10")
"""A batch reads up to offsets that are there already: nothing is to be waited for. Yet a task that has come
to the end of a log asks for the log's offsets behind a fetch that its client has sent ahead. Apache Kafka
answers when the wait of that is over: by default half a second, for each partition of each batch."""
_ISOLATION: Final = ("kafka.isolation.level", "read_committed")
"""Only committed records are read unless the user says otherwise."""


def reader_settings(kafka: Mapping[str, str]) -> dict[str, str]:
    """Options for the settings of Kafka's clients that the user gives, and for those that are ours."""
    return dict((_FETCH_WAIT, _ISOLATION)) | {f"kafka.{name}": value for name, value in kafka.items()}
