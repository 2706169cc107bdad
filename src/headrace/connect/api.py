"""What a connector is: a subclass of `Source`, of `Sink` or of `Job`, found by an entry point.

    [project.entry-points."headrace.connectors"]
    my-source = "my_package.my_module:MySource"

`connector.class` names it by the entry point, by the class (`my_package.my_module.MySource` or
`MySource`), or by one of its `aliases`. The runtime is a loop of Spark batch jobs: see
docs/adr/0025-connect.md.

**Where instances live.** The worker makes one instance (the driver's), and calls `plan`, `committed`, `write`
and `stop` on it, always from one thread; of a `Job` it calls `work`. Each Spark task makes another one from
the same Config, calls `read` or `put`, then `stop`. So `__init__` only keeps the Config: connections are made
when they are first needed. An instance is never pickled.

**Where modules live.** Ours are in `headrace/spark/connect/connectors/`, one module for each. A module of a
connector is imported to list what is installed, so what only this connector needs is imported inside its
methods; where that is missing, `missing()` says which extra brings it. This module imports no Spark.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from headrace.connect.config import Config
from headrace.connect.position import Json, Position
from headrace.connect.records import Record, Rejected, SinkRecord
from headrace.connect.settings import Settings
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


class ConnectorFailure(HeadraceError):
    """What is wrong at the other end and what to do, for people. The runtime tries again with back-off, and
    shows the text in the connector's status. Other exceptions are shown with their traceback."""


class GiveUp(ConnectorFailure):
    """As ConnectorFailure, where trying again cannot help: the connector is FAILED until it is restarted, or
    until its configuration changes."""


class Connector:
    """What sources and sinks have in common."""

    settings: ClassVar[Settings] = Settings()
    """Besides those of every connector (`common_settings.py`). Named as Kafka Connect does, where it does."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other people's names for `connector.class`, so that their configurations run here."""
    version: ClassVar[str] = ""
    """Empty: Headrace's."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @classmethod
    def missing(cls) -> str | None:
        """What must be installed before it can run: a sentence, or None. Asked before a connector is made."""
        return None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:  # noqa: ARG003 - for those who override it
        """What is wrong with settings that are right one by one: {setting: why}. Asks nobody outside, since
        it answers `PUT /connector-plugins/P/config/validate`."""
        return {}

    def tasks(self, most: int) -> int:  # noqa: ARG002 - for those who override it
        """How many tasks are shown in the status, of `tasks.max`."""
        return 1

    def topics(self) -> Iterable[str]:
        """Topics that it writes, for `GET /connectors/NAME/topics`. Of a sink they are known."""
        found = self.config.get("topic") if "topic" in self.settings else None
        return [] if found is None else [str(found)]

    def stop(self) -> None:
        """The last call: close what is open. Called once, also after a failure."""


@dataclass(frozen=True)
class Step:
    """What a source does next. The position is written in the same decision as the records: either both are
    there, or neither. So nothing has to be repeatable."""

    position: Position
    """Behind this step."""
    parts: Sequence[Any] = ()
    """What tasks read, one each: JSON-able, or anything that pickles."""
    records: Sequence[Record] = ()
    """Instead of parts, where `plan` has the records already, as with a cursor that the other end gives."""
    frame: Callable[[SparkSession], DataFrame] | None = None
    """Instead of parts, for what Spark reads itself: columns topic, key, value, headers, partition, timestamp
    as the sink takes them (docs/pipeline/sink.md). It is called on the worker."""
    more: bool = False
    """There is more already: plan again at once, instead of after `poll.interval.ms`."""

    @property
    def is_empty(self) -> bool:
        """Only the position moves."""
        return not self.parts and not self.records and self.frame is None


class Source(Connector, ABC):
    """From somewhere into topics, exactly once: write `plan` and `read`, or `plan` alone."""

    @abstractmethod
    def plan(self, position: Position) -> Step | None:
        """What comes after `position`; None if nothing is new. On the worker, every `poll.interval.ms`, so it
        must be cheap where nothing is new. Called again with the same position if the step failed."""

    def read(self, part: Any) -> Iterator[Record]:
        """In a Spark task: the records of one part."""
        raise NotImplementedError(f"{type(self).__name__} plans parts and has no read()")

    def committed(self, position: Position) -> None:
        """The step up to here is decided: the other end may forget. Called again after a restart, with the
        last position, before the first `plan`."""

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:
        """A position that somebody wants to set by `PATCH /offsets`. Raises ConnectorFailure."""


class Batch(Protocol):
    """What a sink is to write: records of exact offsets."""

    @property
    def spark(self) -> SparkSession: ...

    @property
    def frame(self) -> DataFrame:
        """The records as they are in the log: topic, partition, offset, timestamp, key, value (both binary),
        headers (array of key and value). However often it is used, it has the same records."""

    @property
    def ranges(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """(first, end) of each partition: what is at `first` belongs to it, what is at `end` does not."""

    @property
    def number(self) -> int:
        """The sum of all ends, also of partitions with nothing new: it rises from batch to batch, and is the
        same if the same batch comes again."""

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """Where every partition of the connector is after this batch: what a target stores with its data, for
        `Sink.position`."""

    def of_topics(self, topics: Collection[str]) -> Batch:
        """Only the records of these: for who writes some topics here and others there. Its number and its
        ends are the whole batch's."""

    def reject(self, rejected: Iterable[Rejected] | DataFrame) -> None:
        """These records cannot be written (a frame has topic, partition, offset, reason). With
        `errors.tolerance=all` they are in the topic of dead letters when this returns: call it before the
        target commits. With `none` it raises GiveUp with the first reason. At least once."""

    def put(self, sink: type[Sink]) -> None:
        """`sink.put` in each Spark task for its share of the records, in the order of each partition; then
        what it returned is rejected."""


Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


class Sink(Connector):
    """From topics to somewhere: write `put` for a call in each task, or `write` for the whole batch."""

    letters_first: ClassVar[bool] = False
    """For who has a `position` of its own and writes in `put`. Once a record is refused that is not among
    `dead`, `put` stores nothing more of its task: the runtime writes the dead letters, and calls again.
    Otherwise a worker that dies between both would have passed the record over in silence."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.dead: frozenset[Place] = frozenset()
        """Records of this batch that are dead letters already."""
        self.unreadable: list[Rejected] = []
        """What the converters have refused of the records that `put` has been given so far."""

    def tasks(self, most: int) -> int:
        return most

    def position(self) -> Mapping[TopicPartition, int] | None:
        """Exactly once: where to go on, as the target itself says it, because it stores `Batch.ends` in the
        same transaction as the data. Partitions it does not name begin where the group `connect-NAME` is.

        None: where the group is, which is committed after each batch. Then a batch can come twice."""
        return None

    def alter_position(self, ends: Mapping[TopicPartition, int | None]) -> None:
        """By `PATCH` and `DELETE /offsets`, while the connector is stopped: with a `position` of its own, the
        target must be told. None: begin anew."""

    def put(self, records: Iterable[SinkRecord]) -> Iterable[Rejected] | None:
        """In a Spark task. Returns when the records are stored; what cannot be stored is returned."""
        raise NotImplementedError(f"{type(self).__name__} has neither put() nor write()")

    def write(self, batch: Batch) -> None:
        """On the worker. Returns when the whole batch is stored."""
        batch.put(type(self))


class StagedSink(Sink):
    """Exactly once into what has no transactions, but can put a prepared thing into its place, again and
    again if need be: files. `stage` prepares a batch where nobody looks. What it returns and where the batch
    ends are then one decision in the log, which shuts out every other worker. After that, `publish` puts it
    into place. A worker that dies in between leaves the decision, and whoever comes next publishes it before
    all else.

    `position`, `alter_position`, `put` and `write` are not asked for."""

    def stage(self, batch: Batch) -> Json:
        """On the worker. Returns a small JSON object, when all of it is safe: it may be published by another
        worker. A staged batch whose decision failed is never published."""
        raise NotImplementedError(f"{type(self).__name__} has no stage()")

    def publish(self, staged: Json) -> None:
        """On the worker. What an earlier call has done already stays done; two workers may call it at
        once."""
        raise NotImplementedError(f"{type(self).__name__} has no publish()")


class Turns(Protocol):
    """What a worker gives a `Job`."""

    @property
    def spark(self) -> SparkSession: ...

    @property
    def ending(self) -> threading.Event:
        """Set when the job is to end."""

    def turn(self, work: Callable[[], T]) -> T:
        """Runs it among the few Spark jobs that a worker runs at a time. Where the job is to end, it raises
        what nobody but the worker catches."""

    def begun(self, topics: frozenset[str], still: str | None = None) -> None:
        """It is at work. One that has failed must have done something to be called well again."""

    def alive(self, topics: frozenset[str], still: str | None = None) -> None:
        """Something was done, or nothing was to be done. `still`: sentences, a line each, about what stands
        still while the rest goes on."""


class Job(Connector, ABC):
    """A job of our own that goes on by itself, with a position that it keeps under a name of its own, where
    commands read it too. A worker gives it a place, its turns at Spark, and the words of its status.

    It fences whoever ran before: a worker may have been thought to be dead."""

    fixed: ClassVar[str]
    """What whoever wants to change its position by `/offsets` is told to do instead."""

    @abstractmethod
    def work(self, turns: Turns) -> None:
        """Until `turns.ending` is set. What it raises is a failure: it is called again later, on another
        instance."""

    @abstractmethod
    def position(self) -> Position:
        """How far it is. On any worker, whether the job runs or not; it must disturb nothing."""


@dataclass(frozen=True)
class Described:
    """A connector's class with the name by which it is known."""

    name: str
    """`connector.class` as answers give it."""
    connector: type[Connector]
    entry_point: str = ""
    others: tuple[str, ...] = field(default=())
    """Further names that find it."""

    @property
    def kind(self) -> str:
        """Kafka Connect knows two: what is no sink writes topics."""
        return "sink" if issubclass(self.connector, Sink) else "source"


__all__ = [
    "Batch", "Config", "Connector", "ConnectorFailure", "Described", "GiveUp", "Job", "Json", "Place",
    "Position", "Record", "Rejected", "Settings", "Sink", "SinkRecord", "Source", "StagedSink", "Step",
    "Turns",
]  # fmt: skip
