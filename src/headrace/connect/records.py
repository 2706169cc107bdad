"""What a source gives, and what a sink's task is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class Record(NamedTuple):
    """From a source. Bytes go as they are and text as UTF-8; anything else through the connector's converter
    (`key.converter`, `value.converter`), which is JSON if nothing is said."""

    topic: str
    value: Any
    key: Any = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: the moment at which it is written."""
    partition: int | None = None
    """None: by the key, as every producer does."""


class SinkRecord(NamedTuple):
    """For a sink's `put`. Key and value have gone through the converters, which leave bytes as they are if
    nothing is said."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: Headers
    timestamp_ms: int


class Rejected(NamedTuple):
    """A record that a sink cannot take, now or later. It becomes a dead letter where `errors.tolerance` is
    `all`, and stops the connector where it is `none`."""

    topic: str
    partition: int
    offset: int
    reason: str
