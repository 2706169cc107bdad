"""Parquet files of one task: one after the other, each up to a size, each by a name that nobody else has."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.spark import columns
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.tables.landing import LandedFile, Landing

GROUP_BYTES: Final = 64 * 1024 * 1024
"""Of a row group, before it is encoded: so much is in memory, and twice that while it is written."""
_PLAIN: Final = (columns.OFFSET, columns.VALUE)
"""Columns for which a dictionary is tried in vain."""


class LandingFiles:
    def __init__(self, landing: Landing, schema: Any, limit: int) -> None:
        self._landing = landing
        self._schema = schema
        self._limit = limit
        self._directory = LocalFiles.path(landing.directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._open: _OpenFile | None = None
        self.landed: list[LandedFile] = []

    def add(self, rows: Any) -> None:
        """A batch of one topic and partition, with at least one row, behind what came before of it."""
        if self._open is None:
            path = self._directory / f"{self._landing.prefix}-{uuid.uuid4().hex}.parquet"
            self._open = _OpenFile(path, self._schema, self._landing.codec)
        self._open.add(rows)
        if self._open.written >= self._limit:
            self.close()

    def close(self) -> None:
        if self._open is not None:
            self.landed.append(self._open.close())
            self._open = None

    def give_up(self) -> None:
        """Nothing of it is to stay."""
        if self._open is not None:
            self._open.abandon()
        for each in self.landed:
            (self._directory / each.name).unlink(missing_ok=True)


class _OpenFile:
    def __init__(self, path: Path, schema: Any, codec: str) -> None:
        self._path = path
        self._writer = pq.ParquetWriter(
            str(path),
            schema,
            compression=codec,
            use_dictionary=[name for name in _leaves(schema) if name not in _PLAIN],
            store_schema=False,
        )
        self._waiting: list[Any] = []
        self._waiting_bytes = 0
        self.written = 0
        """Bytes that are encoded."""
        self._rows = 0
        self._nulls = dict.fromkeys(schema.names, 0)
        self._topic = ""
        self._partitions: list[int] = []
        self._offsets: list[int] = []
        self._times: list[int] = []
        """The least and the largest of each."""

    def add(self, rows: Any) -> None:
        self._rows += rows.num_rows
        for name in self._nulls:
            self._nulls[name] += rows.column(name).null_count
        offsets = rows.column(columns.OFFSET)
        times = pc.min_max(rows.column(columns.TIMESTAMP).cast(pa.int64()))
        self._topic = rows.column(columns.TOPIC)[0].as_py()
        self._partitions = _ends([*self._partitions, rows.column(columns.PARTITION)[0].as_py()])
        self._offsets = _ends([*self._offsets, offsets[0].as_py(), offsets[-1].as_py()])
        self._times = _ends([*self._times, times["min"].as_py() // 1000, times["max"].as_py() // 1000])
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        self._writer.write_table(table, row_group_size=table.num_rows)
        self.written = self._path.stat().st_size

    def close(self) -> LandedFile:
        if self._waiting:
            self._write()
        self._writer.close()
        (first_partition, last_partition), (first_offset, last_offset) = self._partitions, self._offsets
        first_ms, last_ms = self._times
        return LandedFile(
            name=self._path.name,
            rows=self._rows,
            size=self._path.stat().st_size,
            topic=self._topic,
            first_partition=first_partition,
            last_partition=last_partition,
            first_offset=first_offset,
            last_offset=last_offset,
            first_ms=first_ms,
            last_ms=last_ms,
            nulls=self._nulls,
        )

    def abandon(self) -> None:
        self._writer.close()
        self._path.unlink(missing_ok=True)


def _ends(numbers: list[int]) -> list[int]:
    return [min(numbers), max(numbers)]


def _leaves(schema: Any) -> list[str]:
    """Columns as Parquet counts them: those inside of others by their paths."""
    found = []
    for field in schema:
        if pa.types.is_list(field.type):
            inner = field.type.value_type
            found += [f"{field.name}.list.element.{inner.field(at).name}" for at in range(inner.num_fields)]
        else:
            found.append(field.name)
    return found
