"""Control records: the markers that end a transaction, and the ones that start a metadata epoch.

The key is two int16: version, type. The value of an end marker is an int16 version and the coordinator's
epoch, an int32.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error
from typing import Final

from headrace.core.errors import InvalidRecord
from headrace.protocol.records import NewRecord, Record

_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_type(record: Record) -> int:
    """The type of a control record; a number that has no name here is not an error."""
    try:
        return int(_KEY.unpack_from(record.key or b"")[1])
    except error:
        raise InvalidRecord("a control record whose key has fewer than 4 bytes") from None


def control_key(kind: ControlType) -> bytes:
    return _KEY.pack(0, kind)


def end_marker(*, commit: bool, coordinator_epoch: int, timestamp: int) -> NewRecord:
    """The one record of the control batch that commits or aborts a transaction."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return NewRecord(key=control_key(kind), value=_END_MARKER.pack(0, coordinator_epoch), timestamp=timestamp)


def end_marker_epoch(record: Record) -> int:
    try:
        return int(_END_MARKER.unpack_from(record.value or b"")[1])
    except error:
        raise InvalidRecord("an end-of-transaction marker whose value has fewer than 6 bytes") from None
