"""The states of transactions as bytes, without the detours of a general encoder: three are written for each.

The bytes are those of the generated classes. What is rare is left to them.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct
from typing import Final

from headrace.coordinators.numbered_bytes import numbered_bytes
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import TransactionLogValue
from headrace.protocol.topic_names import encoded_topic

REMEMBERED_IDS: Final = 8_192
USUAL_VERSION: Final = 1
MOST_USUAL: Final = 126
"""Of what there are as many, the count, one more, is a varint of one byte."""

_HEAD: Final = Struct(">hqhibB")  # version, producer id, epoch, timeout, status, topics
_TIMES: Final = Struct(">qqB")  # last change, start, tagged fields
_ID_FIELD: Final = Struct(">BBq")  # tag, size, producer id
_NUMBER_FIELD: Final = Struct(">BBh")  # tag, size, number
_NO_TAGS: Final = b"\x00"


@lru_cache(REMEMBERED_IDS)
def id_bytes(transactional_id: str) -> bytes:
    """The key of all states of one id."""
    return numbered_bytes(TransactionLogKey.API_KEY, TransactionLogKey(transactional_id=transactional_id), 0)


def state_bytes(value: TransactionLogValue, version: int) -> bytes:
    topics = value.transaction_partitions
    if version != USUAL_VERSION or (topics is not None and len(topics) > MOST_USUAL):
        return numbered_bytes(version, value, version)
    named = b""
    for topic in topics or ():
        indexes = topic.partition_ids
        count = len(indexes)
        if count > MOST_USUAL:
            return numbered_bytes(version, value, version)
        named += encoded_topic(topic.topic, True)
        named += struct.pack(f">B{count}i", count + 1, *indexes)
        named += _NO_TAGS
    fields, tags = _tagged(value)
    head = _HEAD.pack(
        version,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        value.transaction_status,
        0 if topics is None else len(topics) + 1,
    )
    times = _TIMES.pack(
        value.transaction_last_update_timestamp_ms, value.transaction_start_timestamp_ms, fields
    )
    return head + named + times + tags


def _tagged(value: TransactionLogValue) -> tuple[int, bytes]:
    """How many fields differ from what is left out, and these."""
    count, tags = 0, b""
    if value.previous_producer_id != -1:
        count += 1
        tags += _ID_FIELD.pack(0, 8, value.previous_producer_id)
    if value.next_producer_id != -1:
        count += 1
        tags += _ID_FIELD.pack(1, 8, value.next_producer_id)
    if value.client_transaction_version:
        count += 1
        tags += _NUMBER_FIELD.pack(2, 2, value.client_transaction_version)
    if value.next_producer_epoch != -1:
        count += 1
        tags += _NUMBER_FIELD.pack(3, 2, value.next_producer_epoch)
    return count, tags
