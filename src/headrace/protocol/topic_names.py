"""Topic names in requests and responses: the same few, again and again, so both directions are cached.

The caches are bounded, and only names of a legal length enter them, so that a stranger cannot fill memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

from headrace.protocol.primitives import ProtocolError, Writer

MAX_CACHED_NAME: Final = 249
"""Kafka's longest topic name."""


@lru_cache(maxsize=4096)
def name_of(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a topic name is not UTF-8") from error


def encoded_topic(topic: str | UUID, flexible: bool) -> bytes:
    """As it stands in a response, with the length before a name."""
    if not isinstance(topic, str):
        return topic.bytes
    return _cached_name(topic, flexible) if len(topic) <= MAX_CACHED_NAME else _encode_name(topic, flexible)


def _encode_name(topic: str, flexible: bool) -> bytes:
    writer = Writer()
    if flexible:
        writer.compact_string(topic)
    else:
        writer.string(topic)
    return writer.getvalue()


_cached_name: Final = lru_cache(maxsize=4096)(_encode_name)
