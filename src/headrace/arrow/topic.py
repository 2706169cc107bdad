"""`read_topic`: a topic as record batches of Arrow, from its brokers, from their files, or from a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack
from uuid import UUID

from headrace.arrow.options import Offsets, Time, Wish, wish
from headrace.client.errors import ClientFailure

try:
    import pyarrow as pa

    from headrace.arrow.schema import schema_of, to_batch, wanted_by
except ModuleNotFoundError as error:
    raise ClientFailure(
        f"{error.name} is not installed", "`pip install 'headrace[arrow]'` brings it"
    ) from None

from headrace.arrow.partition_reader import ROWS, Reading
from headrace.arrow.sources import Blocks, Brokers, Tier, of_files


class TopicOptions(TypedDict, total=False):
    bootstrap: str | None
    properties: Mapping[str, str] | None
    files: str | Path | Iterable[str | Path] | None
    tier: str | None
    cluster_id: str | None
    topic_id: str | UUID | None
    endpoint: str | None
    region: str | None
    partitions: Iterable[int] | None
    columns: Sequence[str] | None
    start: Offsets | None
    end: Offsets | None
    start_time: Time | None
    end_time: Time | None
    isolation: str
    batch_rows: int


class Topic:
    """A topic that can be read again and again: each `reader` begins anew, and ends where the topic ends at
    that moment. Whatever takes Arrow's streams takes it as a table."""

    def __init__(self, wished: Wish, blocks: Blocks, rows: int = ROWS) -> None:
        self._wish = wished
        self._blocks = blocks
        self._rows = rows
        self.schema = schema_of(wished.columns)

    @property
    def name(self) -> str:
        return self._wish.topic

    def select(self, columns: Sequence[str]) -> Topic:
        """The same with these columns only: others are not decoded."""
        return Topic(self._wish._replace(columns=tuple(columns)), self._blocks, self._rows)

    def between(
        self,
        start: Offsets | None = None,
        end: Offsets | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
    ) -> Topic:
        """The same with these bounds in the place of those that it has."""
        ours = self._wish
        asked = wish(ours.topic, None, None, start, end, start_time, end_time)
        bounds = {name: getattr(asked, name) for name in ("start", "end", "first_ms", "next_ms")}
        return Topic(ours._replace(**bounds), self._blocks, self._rows)

    def reader(self) -> Any:
        """A pyarrow.RecordBatchReader."""
        return self.reader_of(iter)

    def reader_of(self, through: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
        """The same, with its batches passed `through` something that may look at them."""
        return pa.RecordBatchReader.from_batches(self.schema, through(self._batches()))

    def _batches(self) -> Iterator[Any]:
        reading = Reading(wanted_by(self.schema), committed_only=self._wish.committed_only, rows=self._rows)
        for block in self._blocks(self._wish, reading):
            yield to_batch(block, self.schema)

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def open_topic(
    topic: str,
    *,
    bootstrap: str | None = None,
    properties: Mapping[str, str] | None = None,
    files: str | Path | Iterable[str | Path] | None = None,
    tier: str | None = None,
    cluster_id: str | None = None,
    topic_id: str | UUID | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    start: Offsets | None = None,
    end: Offsets | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
    isolation: str = "read_committed",
    batch_rows: int = ROWS,
) -> Topic:
    """What `read_topic` reads, to be read more than once. Its arguments are the same."""
    wished = wish(topic, partitions, columns, start, end, start_time, end_time, isolation)
    if files is not None and tier is not None:
        raise ClientFailure("a topic is read from files or from a tier", "leave one of the two out")
    if files is not None:
        paths = (files,) if isinstance(files, str | Path) else tuple(files)
        return Topic(wished, lambda asked, reading: of_files(paths, asked, reading), batch_rows)
    brokers = Brokers(bootstrap, properties)
    if tier is not None:
        source = Tier(tier, brokers, cluster_id, topic_id, endpoint, region)
        return Topic(wished, source.blocks, batch_rows)
    return Topic(wished, brokers.blocks, batch_rows)


def read_topic(topic: str, **options: Unpack[TopicOptions]) -> Any:
    """A `pyarrow.RecordBatchReader` over the records of a topic, each once, in order within a partition.

    `bootstrap`: from its brokers, 127.0.0.1:9092 if nothing else is said; `properties` are Kafka's client
    properties for TLS and SASL.
    `files`: past the brokers, from their log directories or folders of partitions (`DATA/orders-0`).
    `tier`: past the brokers, from a bucket (`s3://BUCKET/PREFIX`), with `cluster_id` and `topic_id`, or with
    `bootstrap` to ask for both; `endpoint` and `region` as for `headrace tier check`.

    `columns`: of key, value, topic, partition, offset, timestamp, timestampType and headers; what is left out
    is not decoded. `partitions`: numbers. `start`, `end`: the first offset and the one behind the last, for
    all partitions or by partition. `start_time`, `end_time`: the same as times (datetime, ISO, milliseconds).
    `isolation`: read_committed or read_uncommitted. `batch_rows`: about how many rows a batch has.
    """
    return open_topic(topic, **options).reader()
