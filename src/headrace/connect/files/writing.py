"""Files of records, in the formats that Spark reads and writes. A writer is given rows as Arrow has them, and
tells of those that its format cannot have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from headrace.connect.api import GiveUp
from headrace.connect.documents import one_line, parsed
from headrace.connect.files.avro_schema import avro_schema

FORMATS: Final = ("json", "text", "csv", "parquet", "avro")
BAD: Final = "_headrace_unreadable"
"""The column in which Spark puts a value that is no JSON of the schema."""
_ROWS: Final = 100_000
_BYTES: Final = 32 * 1024 * 1024


class Refused(NamedTuple):
    row: int
    """Of the batch that was given."""
    reason: str


class Writer(Protocol):
    def write(self, batch: Any) -> list[Refused]: ...

    def close(self) -> None:
        """What was written is whole now."""


def writer_of(form: str, file: Any) -> Writer:
    return Lines(form, file) if form in ("json", "text") else Tables(form, file)


class Lines:
    """A value in each line. A record without a value is `null` in JSON, and an empty line in a text."""

    def __init__(self, form: str, file: Any) -> None:
        self._as_json = form == "json"
        self._file = file

    def write(self, batch: Any) -> list[Refused]:
        refused = []
        lines: list[bytes] = []
        for row, value in enumerate(batch.column("value").to_pylist()):
            try:
                lines.append(json_line(value) if self._as_json else text_line(value))
            except ValueError as error:
                refused.append(Refused(row, str(error)))
        if lines:
            self._file.write(b"\n".join([*lines, b""]))
        return refused

    def close(self) -> None:
        self._file.close()


def json_line(value: bytes | None) -> bytes:
    """As it stands if it is one line. Raises ValueError."""
    if value is None:
        return b"null"
    try:
        parsed(value)
    except ValueError as error:
        raise ValueError(f"its value is no JSON: {error}") from None
    return one_line(value) if b"\n" in value or b"\r" in value else value


def text_line(value: bytes | None) -> bytes:
    if value is not None and (b"\n" in value or b"\r" in value):
        raise ValueError("its value has a line break, and a text has a record in each line")
    return value or b""


class Tables:
    """Columns: `kafka_offset`, `kafka_timestamp`, `kafka_key`, and those of the value's schema, or else
    `kafka_value`."""

    def __init__(self, form: str, file: Any) -> None:
        self._form = form
        self._file = file
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0
        self._open: Any = None

    def write(self, batch: Any) -> list[Refused]:
        batch, refused = _readable(batch)
        if self._form == "csv":
            batch, more = _as_texts(batch)
            refused += more
        if batch.num_rows:
            self._waiting.append(_columns(batch))
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self._flush()
        return refused

    def close(self) -> None:
        self._flush()
        if self._open is not None:
            self._open.close()
        self._file.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._rows, self._bytes = [], 0, 0
        try:
            if self._open is None:
                self._open = _opened(self._form, self._file, table.schema)
            self._open.write(table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise GiveUp(f"{self._form} cannot have these columns: {error}") from None


class _Avro:
    def __init__(self, file: Any, schema: Any) -> None:
        from fastavro.write import Writer as AvroWriter

        self._writer = AvroWriter(file, avro_schema(schema), "deflate")

    def write(self, table: Any) -> None:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                self._writer.write(row)

    def close(self) -> None:
        self._writer.flush()


def _opened(form: str, file: Any, schema: Any) -> Any:
    if form == "csv":
        from pyarrow.csv import CSVWriter

        return CSVWriter(file, schema)
    if form == "parquet":
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(file, schema, compression="zstd")
    return _Avro(file, schema)


def _readable(batch: Any) -> tuple[Any, list[Refused]]:
    """Without rows whose value is not of the schema."""
    if "row" not in batch.schema.names:
        return batch, []
    unreadable = batch.column("row").field(BAD).to_pylist()
    there = batch.column("row").is_valid().to_pylist()
    bad = [at for at, value in enumerate(unreadable) if there[at] and value is not None]
    return _without(batch, bad), [Refused(at, "its value is no JSON of value.schema") for at in bad]


def _as_texts(batch: Any) -> tuple[Any, list[Refused]]:
    """Keys and values, where they are bytes."""
    import pyarrow as pa

    refused: dict[int, str] = {}
    changed = {}
    for name in ("key", "value"):
        texts: list[str | None] = []
        for at, value in enumerate(batch.column(name).to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(None)
                if name == "key" or "row" not in batch.schema.names:
                    refused[at] = f"its {name} is no text in UTF-8"
        changed[name] = pa.array(texts, pa.string())
    arrays = [changed.get(name, batch.column(name)) for name in batch.schema.names]
    made = pa.RecordBatch.from_arrays(arrays, batch.schema.names)
    return _without(made, list(refused)), [Refused(at, reason) for at, reason in refused.items()]


def _columns(batch: Any) -> Any:
    import pyarrow as pa

    found = {
        "kafka_offset": batch.column("offset"),
        "kafka_timestamp": batch.column("timestamp"),
        "kafka_key": batch.column("key"),
    }
    if "row" in batch.schema.names:
        # With the mask of the whole: of a record without a value no column has one.
        kind, rows = batch.schema.field("row").type, batch.column("row").flatten()
        found |= {field.name: rows[at] for at, field in enumerate(_fields(kind)) if field.name != BAD}
    else:
        found["kafka_value"] = batch.column("value")
    return pa.RecordBatch.from_arrays(list(found.values()), list(found))


def _fields(kind: Any) -> Iterator[Any]:
    return (kind.field(at) for at in range(kind.num_fields))


def _without(batch: Any, rows: Sequence[int]) -> Any:
    import pyarrow as pa

    if not rows:
        return batch
    gone = set(rows)
    return batch.filter(pa.array([at not in gone for at in range(batch.num_rows)]))
