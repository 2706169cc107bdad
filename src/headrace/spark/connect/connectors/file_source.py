"""Lines of a file as records, as FileStreamSource reads them. Worker and tasks have to see the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, ClassVar, Final

from headrace.connect.api import Config, ConnectorFailure, Position, Record, Settings, Source, Step
from headrace.connect.settings import BadSetting, Importance, Kind, Setting

_BLOCK: Final = 64 * 1024


def _not_empty(topic: str) -> None:
    if not topic:
        raise BadSetting("Invalid value  for configuration topic: String must be non-empty")


class FileSource(Source):
    settings: ClassVar[Settings] = Settings(
        Setting("file", default=None, doc="The file whose lines are read.", importance=Importance.HIGH),
        Setting("topic", doc="The topic that the lines go to.", importance=Importance.HIGH, check=_not_empty),
        Setting(
            "batch.size",
            Kind.INT,
            2000,
            "Taken for configurations of Kafka Connect. How much is read at a time, file.batch.bytes says.",
            Importance.LOW,
        ),
        Setting(
            "file.batch.bytes",
            Kind.INT,
            16 * 1024 * 1024,
            "About how many bytes of lines are one batch.",
            Importance.LOW,
            least=1,
        ),
    )
    aliases: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        return {} if config.get("file") else {"file": "name a file: a worker has no standard input to read"}

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:  # noqa: ARG003 - of the interface
        for partition, offset in position:
            if "filename" not in partition:
                raise ConnectorFailure("Partition objects should contain the key 'filename'")
            at = offset.get("position")
            if not isinstance(at, int) or isinstance(at, bool) or at < 0:
                raise ConnectorFailure(
                    "The value for the 'position' key in the offset is expected to be a Long value"
                )

    def plan(self, position: Position) -> Step | None:
        path = self.config.text("file")
        partition = {"filename": path}
        begin = int((position.offset(partition) or {}).get("position", 0))
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < begin:
                    raise ConnectorFailure(
                        f"{path} has {size} bytes, and {begin} were read: it was cut or replaced. Stop the "
                        "connector and reset its offsets to read it from its beginning"
                    )
                limit = min(size, begin + self.config["file.batch.bytes"])
                end = _end_of_lines(file, begin, limit, size)
        except FileNotFoundError:
            return None  # it may come
        if end is None:
            return None
        part = {"begin": begin, "end": end}
        return Step(position.moved(partition, {"position": end}), [part], more=end < size)

    def read(self, part: Any) -> Iterator[Record]:
        topic = self.config.text("topic")
        as_text = "value.converter" in self.config.given
        with open(self.config.text("file"), "rb") as file:
            file.seek(part["begin"])
            left = part["end"] - part["begin"]
            while left > 0:
                line = file.readline()
                if not line.endswith(b"\n") or len(line) > left:
                    raise ConnectorFailure(f"{file.name} was changed while it was read")
                left -= len(line)
                line = line.rstrip(b"\n").removesuffix(b"\r")
                yield Record(topic, line.decode(errors="replace") if as_text else line)


def _end_of_lines(file: BinaryIO, begin: int, limit: int, size: int) -> int | None:
    """Behind the last whole line between the two, or of the first line if that is longer; None if there is
    no whole line yet."""
    at = limit
    while at > begin:
        start = max(begin, at - _BLOCK)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    file.seek(limit)
    while limit < size:
        block = file.read(min(_BLOCK, size - limit))
        found = block.find(b"\n")
        if found >= 0:
            return limit + found + 1
        limit += len(block)
    return None
