"""What a reader of record batches gives, as the client's records."""

from __future__ import annotations

from typing import Any

from headrace.arrow.columns import Taken
from headrace.protocol.records import Record


def records_of(reader: Any) -> list[Record]:
    rows = reader.read_all().to_pylist()
    return [
        Record(
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in rows
    ]


def offsets_in(taken: Taken) -> list[int]:
    return list(memoryview(bytes(taken.offsets)).cast("q"))
