"""Rows of a file, in the formats that Spark reads and writes, as values that become records."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO, Final, NamedTuple, cast

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.files.choosing import Slice
from headrace.connect.files.places import Place

FORMATS: Final = ("json", "text", "csv", "parquet", "avro")
_IN_LINES: Final = frozenset(("json", "text"))
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_BLOCK: Final = 1024 * 1024
_ROWS: Final = 10_000


class Format(NamedTuple):
    name: str
    delimiter: str = ","
    has_header: bool = True


class Row(NamedTuple):
    value: Any
    fields: Any
    """What a key is looked for in: an object, or whatever else the value is."""


def is_in_lines(form: Format, path: str) -> bool:
    """A line's end can be found from anywhere, so a large file can be read in several steps."""
    return form.name in _IN_LINES and not path.endswith(_COMPRESSED)


def end_of_line(place: Place, path: str, size: int, begin: int, limit: int) -> int:
    """Behind the last line that ends before `limit`, or else behind the first one that ends after it."""
    with place.reading(path) as file:
        at = limit
        while at > begin:
            start = max(begin, at - _BLOCK)
            file.seek(start)
            found = file.read(at - start).rfind(b"\n")
            if found >= 0:
                return cast(int, start + found + 1)
            at = start
        file.seek(limit)
        while limit < size:
            block = file.read(min(_BLOCK, size - limit))
            if not block:
                break
            found = block.find(b"\n")
            if found >= 0:
                return cast(int, limit + found + 1)
            limit += len(block)
    return size


def rows(place: Place, form: Format, piece: Slice, *, parsed: bool) -> Iterator[Row]:
    """In a task. With `parsed`, lines of JSON become what they say instead of staying as they are."""
    path = piece.file.path
    _must_be_same(place, piece)
    with place.reading(path) as file, closing(_rows(place, form, piece, file, parsed)) as found:
        yield from found
    _must_be_same(place, piece)


def plain(value: Any) -> Any:
    """As JSON can say it: times and exact numbers as texts, bytes are the converter's business."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _must_be_same(place: Place, piece: Slice) -> None:
    now = place.find(piece.file.path)
    if now != piece.file:
        what = "was taken away" if now is None else "was changed"
        raise ConnectorFailure(
            f"{place.shown(piece.file.path)} {what} while it was read: nothing of it is published"
        )


def _rows(place: Place, form: Format, piece: Slice, file: Any, parsed: bool) -> Generator[Row]:
    path = piece.file.path
    if form.name not in _IN_LINES:
        return _READERS[form.name](place.shown(path), _unpacked(path, file), form)
    if path.endswith(_COMPRESSED):
        lines = _lines(place.shown(path), _unpacked(path, file), 0, None)
    else:
        file.seek(piece.begin)
        lines = _lines(place.shown(path), file, piece.begin, piece.end)
    return _json(place.shown(path), lines, parsed) if form.name == "json" else _text(lines, parsed)


def _lines(path: str, file: BinaryIO, begin: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    """With where each begins. A last line without an end is a line."""
    at = read = begin
    rest = b""
    while end is None or read < end:
        block = file.read(_BLOCK if end is None else min(_BLOCK, end - read))
        if not block:
            if end is not None:
                raise ConnectorFailure(f"{path} ends at {read}, where {end} bytes were: it was cut")
            break
        read += len(block)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield at, line
            at += len(line) + 1
    if rest:
        yield at, rest


def _text(lines: Iterator[tuple[int, bytes]], parsed: bool) -> Generator[Row]:
    for _, line in lines:
        found = line.removesuffix(b"\r")
        yield Row(found.decode(errors="replace") if parsed else found, None)


def _json(path: str, lines: Iterator[tuple[int, bytes]], parsed: bool) -> Generator[Row]:
    for at, line in lines:
        found = line.strip()
        if not found:
            continue
        try:
            document = json.loads(found)
        except ValueError as error:
            raise GiveUp(
                f"{path} has at byte {at} a line that is no JSON: {error}. Mend or take away the file and "
                "restart the connector, or take lines as they are with format=text"
            ) from None
        yield Row(document if parsed else found, document)


def _csv(path: str, file: BinaryIO, form: Format) -> Generator[Row]:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        reader = csv.reader(text, delimiter=form.delimiter, strict=True)
        names: list[str] | None = None
        for values in reader:
            if names is None:
                names = values if form.has_header else [f"_c{at}" for at in range(len(values))]
                if form.has_header:
                    continue
            if not values:
                continue  # an empty line
            if len(values) != len(names):
                raise GiveUp(
                    f"{path}, line {reader.line_num}: {len(values)} values for {len(names)} columns. Mend "
                    "or take away the file and restart the connector"
                )
            found = dict(zip(names, values, strict=True))
            yield Row(found, found)
    except (csv.Error, UnicodeDecodeError) as error:
        raise GiveUp(f"{path} is no CSV in UTF-8: {error}. Take it away and restart the connector") from None
    finally:
        text.detach()


def _parquet(path: str, file: BinaryIO, _: Format) -> Generator[Row]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        for batch in ParquetFile(file).iter_batches(_ROWS):
            for row in batch.to_pylist():
                found = plain(row)
                yield Row(found, found)
    except pa.ArrowInvalid as error:
        raise GiveUp(f"{path} is no Parquet: {error}. Take it away and restart the connector") from None


def _avro(path: str, file: BinaryIO, _: Format) -> Generator[Row]:
    import fastavro

    try:
        for row in fastavro.reader(file):
            found = plain(row)
            yield Row(found, found)
    except (ValueError, EOFError) as error:
        raise GiveUp(f"{path} is no file of Avro: {error}. Take it away and restart the connector") from None


_READERS: Final[dict[str, Callable[[str, BinaryIO, Format], Generator[Row]]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "avro": _avro,
}


def _unpacked(path: str, file: Any) -> BinaryIO:
    if path.endswith(".gz"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if path.endswith(_COMPRESSED) and not path.endswith(".snappy.parquet"):
        raise GiveUp(f"{path}: of compressed files only .gz is read here. Unpack it, and take this one away")
    return cast(BinaryIO, file)
