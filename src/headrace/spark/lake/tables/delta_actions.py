"""Entries of Delta's log, as it writes them down: JSON. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from headrace.spark import columns
from headrace.spark.lake.tables.landing import LandedFile
from headrace.spark.lake.tables.table import Commit

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999
"""Of the year 9999: what comes later has no text."""


def transaction(commit: Commit, now_ms: int) -> str:
    entry = {"appId": commit.writer, "version": commit.batch, "lastUpdated": now_ms}
    return json.dumps({"txn": entry})


def add_file(file: LandedFile, now_ms: int) -> str:
    """A file in the table's own directory."""
    entry = {
        "path": quote(file.name),
        "partitionValues": {},
        "size": file.size,
        "modificationTime": now_ms,
        "dataChange": True,
        "stats": json.dumps(statistics(file)),
    }
    return json.dumps({"add": entry})


def statistics(file: LandedFile) -> dict[str, object]:
    """By which readers leave out files. They say nothing of what would need a look at every key."""
    smallest: dict[str, object] = {
        columns.TOPIC: file.topic,
        columns.PARTITION: file.first_partition,
        columns.OFFSET: file.first_offset,
    }
    largest = {**smallest, columns.PARTITION: file.last_partition, columns.OFFSET: file.last_offset}
    if file.first_ms >= 0 and file.last_ms <= _LAST_MS:
        smallest[columns.TIMESTAMP] = _moment(file.first_ms)
        largest[columns.TIMESTAMP] = _moment(file.last_ms)
    return {
        "numRecords": file.rows,
        "minValues": smallest,
        "maxValues": largest,
        "nullCount": dict(file.nulls),
    }


def _moment(milliseconds: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
