"""Offset commits as bytes, without the detours of a general encoder: nothing is written to a log as often.

The bytes are those of the generated classes. What is rare is left to them.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from headrace.coordinators.numbered_bytes import numbered_bytes
from headrace.protocol.primitives import ZERO_UUID
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue

REMEMBERED_KEYS: Final = 8_192
USUAL_VERSION: Final = 4
LONGEST_USUAL_TEXT: Final = 126
"""Its length, one more, is a varint of one byte."""

_BEFORE_METADATA: Final = Struct(">hqiB")
_TIME: Final = Struct(">q")
_NO_TAGS: Final = b"\x00"
_TAG_OF_TOPIC_ID: Final = b"\x01\x00\x10"
"""One tag, its number, and the size of what follows."""


@lru_cache(REMEMBERED_KEYS)
def key_bytes(group: str, topic: str, partition: int) -> bytes:
    """A consumer commits the same few partitions again and again."""
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    return numbered_bytes(OffsetCommitKey.API_KEY, key, 0)


def value_bytes(value: OffsetCommitValue, version: int) -> bytes:
    text = value.metadata.encode()
    if version != USUAL_VERSION or len(text) > LONGEST_USUAL_TEXT:
        return numbered_bytes(version, value, version)
    start = _BEFORE_METADATA.pack(version, value.offset, value.leader_epoch, len(text) + 1)
    end = _TIME.pack(value.commit_timestamp)
    topic_id = value.topic_id
    if topic_id is ZERO_UUID or topic_id == ZERO_UUID:
        return start + text + end + _NO_TAGS
    return start + text + end + _TAG_OF_TOPIC_ID + topic_id.bytes
