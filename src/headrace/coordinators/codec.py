"""Records of the internal topics as bytes: an int16 version before the key, one before the value.

A key's version is the kind of record. What an unknown version wrote is passed over, as in Kafka: a newer
broker may have led the partition before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headrace.coordinators.decision import CoordinatorRecord
from headrace.coordinators.numbered_bytes import numbered_bytes
from headrace.coordinators.offset_bytes import key_bytes, value_bytes
from headrace.coordinators.transaction_bytes import id_bytes, state_bytes
from headrace.core.errors import HeadraceError
from headrace.core.ports import Buffer
from headrace.protocol.message import Message
from headrace.protocol.primitives import Reader
from headrace.protocol.records import NewRecord, Record
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import TransactionLogValue

KEY_VERSION: Final = 0
"""Keys have one version of their fields each; the number in front of them is the kind."""

Kinds = Mapping[int, tuple[type[Message], type[Message]]]
"""By kind: the classes of key and value."""


def encode(record: CoordinatorRecord, timestamp_ms: int) -> NewRecord:
    key, value, version = record
    if type(key) is OffsetCommitKey:
        value_of_key = None if value is None else value_bytes(cast(OffsetCommitValue, value), version)
        return NewRecord(value_of_key, key_bytes(key.group, key.topic, key.partition), timestamp_ms)
    if type(key) is TransactionLogKey:
        state = None if value is None else state_bytes(cast(TransactionLogValue, value), version)
        return NewRecord(state, id_bytes(key.transactional_id), timestamp_ms)
    return NewRecord(
        None if value is None else numbered_bytes(version, value, version),
        numbered_bytes(key.API_KEY, key, KEY_VERSION),
        timestamp_ms,
    )


def decode(record: Record, kinds: Kinds) -> CoordinatorRecord | None:
    """None for a record of a kind or version that is not known, or that is damaged inside."""
    if record.key is None or len(record.key) < 2:
        return None
    try:
        reader = _reader(record.key)
        classes = kinds.get(reader.int16())
        if classes is None:
            return None
        key = classes[0].decode(reader, KEY_VERSION)
        if record.value is None:
            return CoordinatorRecord(key, None)
        reader = _reader(record.value)
        version = reader.int16()
        if not classes[1].MIN_VERSION <= version <= classes[1].MAX_VERSION:
            return None
        return CoordinatorRecord(key, classes[1].decode(reader, version), version)
    except HeadraceError:
        return None


def _reader(data: Buffer) -> Reader:
    return Reader(memoryview(data))
