"""Records as lines of a file, as FileStreamSink writes them, but every line once.

Beside the file lies another one, `.NAME.headrace.json`: how long the file was when a batch was whole, and
where that left each partition. It is replaced in one step when the lines are on the disk. Lines behind that
length are of a batch that was never finished: they are cut off before the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from headrace.connect.api import Batch, Config, ConnectorFailure, Rejected, Settings, Sink
from headrace.connect.converters import Unconvertible, converter_of
from headrace.connect.settings import Importance, Setting
from headrace.core.ids import TopicPartition


class FileSink(Sink):
    settings: ClassVar[Settings] = Settings(
        Setting("file", default=None, doc="The file that lines are added to.", importance=Importance.HIGH)
    )
    aliases: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        return {} if config.get("file") else {"file": "name a file: a worker has no standard output to give"}

    def position(self) -> Mapping[TopicPartition, int]:
        return self._read()[1]

    def alter_position(self, ends: Mapping[TopicPartition, int | None]) -> None:
        with self._locked():
            length, found = self._read()
            merged = {**found, **ends}
            self._keep(length, {each: end for each, end in merged.items() if end is not None})

    def write(self, batch: Batch) -> None:
        path = self._path
        with self._locked():
            length, ends = self._read()
            self._must_continue(batch, ends)
            if not self._memory.exists():
                # Else what a first batch leaves behind when it dies would be taken for somebody else's lines.
                self._keep(length, ends)
            rejected: list[Rejected] = []
            with open(path, "ab") as file:
                file.truncate(length)
                file.seek(0, os.SEEK_END)
                for line in self._lines(batch, rejected):
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
                length = file.tell()
            batch.reject(rejected)
            self._keep(length, {**ends, **batch.ends})

    def _must_continue(self, batch: Batch, ends: Mapping[TopicPartition, int]) -> None:
        for partition, (first, _) in batch.ranges.items():
            if ends.get(partition, first) != first:
                raise ConnectorFailure(
                    f"{self._path} has {partition} up to {ends[partition]}, not to {first}: somebody else "
                    "has written it meanwhile"
                )

    def _lines(self, batch: Batch, rejected: list[Rejected]) -> Iterator[bytes]:
        values = converter_of(self.config.given, "value.converter")
        rows = batch.frame.select("topic", "partition", "offset", "value")
        for row in rows.orderBy("topic", "partition", "offset").toLocalIterator():
            try:
                value = values.from_bytes(None if row.value is None else bytes(row.value))
            except Unconvertible as error:
                rejected.append(Rejected(row.topic, row.partition, row.offset, str(error)))
                continue
            yield _text(value) + b"\n"

    @property
    def _path(self) -> Path:
        return Path(self.config.text("file"))

    @property
    def _memory(self) -> Path:
        return self._path.with_name(f".{self._path.name}.headrace.json")

    def _read(self) -> tuple[int, dict[TopicPartition, int]]:
        """A file that was there before the first batch is kept."""
        try:
            document: dict[str, Any] = json.loads(self._memory.read_bytes())
        except FileNotFoundError:
            return (self._path.stat().st_size if self._path.exists() else 0), {}
        ends = {
            TopicPartition(topic, int(partition)): end
            for topic, partitions in document["ends"].items()
            for partition, end in partitions.items()
        }
        return document["length"], ends

    def _keep(self, length: int, ends: Mapping[TopicPartition, int]) -> None:
        topics: dict[str, dict[str, int]] = {}
        for partition, end in ends.items():
            topics.setdefault(partition.topic, {})[str(partition.partition)] = end
        written = self._memory.with_name(f"{self._memory.name}.tmp")
        with open(written, "w") as file:
            json.dump({"length": length, "ends": topics}, file)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._memory)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """So that of two workers that both think it is theirs only one writes."""
        with open(self._path.with_name(f".{self._path.name}.headrace.lock"), "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConnectorFailure(f"another worker is writing {self._path}") from None
            yield


def _text(value: Any) -> bytes:
    if value is None:
        return b"null"
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
