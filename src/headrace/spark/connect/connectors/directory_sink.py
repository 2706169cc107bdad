"""Records as files of a directory or of a bucket, each record in one file once.

Tasks write files where readers do not look: below `_headrace/CONNECTOR/ATTEMPT`. A list of them and the ends
of the batch are decided in the log; then they are moved to their places. A file in its place never changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from headrace.connect.api import Batch, Config, GiveUp, Json, Rejected, Settings, StagedSink
from headrace.connect.files.places import LOCATION, Place, check_access, configured_place
from headrace.connect.files.writing import BAD, FORMATS, Writer, writer_of
from headrace.connect.settings import Importance, Kind, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOLDERS: Final = ("topic", "partition", "day", "hour")
_LIST: Final = "files.json"
_OPEN: Final = 32
"""Files that a task writes at a time: each has a buffer."""
_MOVES: Final = 8


class DirectorySink(StagedSink):
    settings: ClassVar[Settings] = LOCATION + Settings(
        Setting(
            "format",
            doc="json: the value, which is JSON, in a line. text: the value in a line. csv, parquet, "
            "avro: columns.",
            one_of=FORMATS,
            importance=Importance.HIGH,
        ),
        Setting(
            "value.schema",
            default="",
            doc="For csv, parquet and avro: columns of values that are JSON objects, as Spark writes them: "
            "id bigint, name string. Without it the value is one column.",
        ),
        Setting(
            "folders",
            Kind.LIST,
            ("topic", "partition", "day"),
            "Of which folders the way to a file is: topic=T/partition=P/day=D. Days and hours are those "
            "of the records, in UTC.",
            one_of=_FOLDERS,
        ),
        Setting(
            "batch.linger.ms",
            Kind.INT,
            60_000,
            "How long a batch that is not full waits for more records after its first one. A batch makes "
            "at least a file for each partition with something new.",
            least=0,
        ),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._kept_place: Place | None = None
        self._strays: list[str] = []

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = check_access(config)
        if config.get("value.schema") and config.text("format") in ("json", "text"):
            found["value.schema"] = "is for csv, parquet and avro: a line has the value as it is"
        return found

    def stage(self, batch: Batch) -> Json:
        attempt = uuid4().hex
        # Who staged before this one has decided by now, or never will: our own decision shuts it out.
        self._strays = self._attempts()
        written = _rows(batch.frame, self.config).mapInArrow(
            _task(self.config, self._below(attempt)), "done string"
        )
        done = [json.loads(row["done"]) for row in written.collect()]
        rejected = [Rejected(*each) for task in done for each in task["rejected"]]
        if rejected:
            batch.reject(rejected)
        files = sorted(tuple(each) for task in done for each in task["files"])
        listed = f"{self._below(attempt)}/{_LIST}"
        with self._place.open_for_writing(listed) as file:
            file.write(json.dumps({"files": files}).encode())
        self._place.keep([listed])
        return {"attempt": attempt, "files": len(files)}

    def publish(self, staged: Json) -> None:
        place, below = self._place, self._below(str(staged["attempt"]))
        files = self._listed(f"{below}/{_LIST}")
        if files:
            with ThreadPoolExecutor(_MOVES) as movers:
                for _ in movers.map(lambda each: place.move(f"{below}/{each[0]}", each[1]), files):
                    pass
            place.keep([path for _, path in files])
        for each in (below, *self._strays):
            place.clear(each)
        self._strays = []

    def _listed(self, path: str) -> list[tuple[str, str]]:
        """None where all of it is in place already."""
        if self._place.find(path) is None:
            return []
        with self._place.reading(path) as file:
            document = json.loads(file.read())
        return [(staged, to) for staged, to in document["files"]]

    def _attempts(self) -> list[str]:
        below = self._below()
        start = len(below) + 1
        names = {each.path[start:].partition("/")[0] for each in self._place.files(below=below, hidden=True)}
        return [self._below(name) for name in sorted(names)]

    def _below(self, *names: str) -> str:
        return "/".join(("_headrace", quote(self.config.name, safe=""), *names))

    @property
    def _place(self) -> Place:
        if self._kept_place is None:
            self._kept_place = configured_place(self.config)
        return self._kept_place


def _rows(frame: DataFrame, config: Config) -> DataFrame:
    chosen = frame.select("topic", "partition", "offset", "timestamp", "key", "value")
    schema = config.get("value.schema")
    if not schema:
        return chosen
    from pyspark.errors import ParseException
    from pyspark.sql import functions as sf

    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    try:
        row = sf.from_json(sf.col("value").cast("string"), f"{schema}, {BAD} string", options)
        return chosen.withColumn("row", row)
    except ParseException as error:
        raise GiveUp(f"value.schema is no list of columns as Spark writes them: {error}") from None


class _Target(NamedTuple):
    topic: str
    partition: int
    hours: int
    """Since 1970; of the first hour of the day, where hours have no folders. 0 where days have none
    either."""


def _task(config: Config, below: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Runs in a task."""

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        # A task may run twice: each has a folder of its own, and only one of them tells of it.
        writing = _Writing(config, below, uuid4().hex[:8])
        for batch in batches:
            writing.write(batch)
        done = writing.close()
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(done)], pa.string())], ["done"])

    return write


class _Open:
    """A file that is being written."""

    def __init__(self, writer: Writer, staged: str, to: str) -> None:
        self.writer = writer
        self.staged = staged
        self.to = to
        self.rows = 0


class _Writing:
    """All files of a task."""

    def __init__(self, config: Config, below: str, task: str) -> None:
        self._place = configured_place(config)
        self._format = config.text("format")
        self._folders = config["folders"]
        self._below = below
        self._task = task
        self._attempt = below.rpartition("/")[2][:8]
        self._open: dict[_Target, _Open] = {}
        self._files: list[tuple[str, str]] = []
        self._rejected: list[Rejected] = []

    def write(self, batch: Any) -> None:
        import pyarrow as pa

        rows: dict[_Target, list[int]] = {}
        columns = (batch.column(name).to_pylist() for name in ("topic", "partition", "timestamp"))
        for at, (topic, partition, when) in enumerate(zip(*columns, strict=True)):
            rows.setdefault(_Target(topic, partition, self._hours(when)), []).append(at)
        for target, found in rows.items():
            taken = batch if len(found) == batch.num_rows else batch.take(pa.array(found, pa.int32()))
            offsets = taken.column("offset").to_pylist()
            file = self._file(target, offsets[0])
            refused = file.writer.write(taken)
            file.rows += len(found) - len(refused)
            where = target.topic, target.partition
            self._rejected += (Rejected(*where, offsets[each.row], each.reason) for each in refused)

    def close(self) -> dict[str, Any]:
        while self._open:
            self._close_oldest()
        self._place.keep([f"{self._below}/{staged}" for staged, _ in self._files])
        return {"files": self._files, "rejected": self._rejected}

    def _file(self, target: _Target, offset: int) -> _Open:
        found = self._open.pop(target, None)
        if found is None:
            while len(self._open) >= _OPEN:
                self._close_oldest()
            # With the attempt: a topic that is made anew, or read again, replaces nothing.
            name = f"part-{target.topic}-{target.partition}-{offset:020d}-{self._attempt}.{self._format}"
            to = "/".join([*self._ways(target), name])
            staged = f"{self._task}/{to}"
            writer = writer_of(self._format, self._place.open_for_writing(f"{self._below}/{staged}"))
            found = _Open(writer, staged, to)
        self._open[target] = found
        return found

    def _close_oldest(self) -> None:
        """The one that has waited longest for rows. One without any stays behind, and is cleared away."""
        file = self._open.pop(next(iter(self._open)))
        file.writer.close()
        if file.rows:
            self._files.append((file.staged, file.to))

    def _hours(self, when: datetime) -> int:
        hours = int(when.timestamp()) // 3600
        if "hour" in self._folders:
            return hours
        return hours // 24 * 24 if "day" in self._folders else 0

    def _ways(self, target: _Target) -> Iterator[str]:
        when = datetime.fromtimestamp(target.hours * 3600, UTC)
        values = {
            "topic": target.topic,
            "partition": target.partition,
            "day": when.strftime("%Y-%m-%d"),
            "hour": when.strftime("%H"),
        }
        return (f"{each}={values[each]}" for each in self._folders)
