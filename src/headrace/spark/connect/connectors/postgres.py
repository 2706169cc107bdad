"""Changes of a Postgres database: every row once, then every change in the order of commits, exactly once.

How the copy and the changes become one sequence: headrace/connect/postgres/coverage.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Position, Record, Source, Step
from headrace.connect.postgres.capture import Capture, Choices, CopyPart, Reading, Stretch
from headrace.connect.postgres.changes import BadChange
from headrace.connect.postgres.envelope import Naming, records_of
from headrace.connect.postgres.progress import Progress, progress_of
from headrace.connect.settings import Importance, Kind, Setting, Settings
from headrace.core.errors import HeadraceError
from headrace.spark.connect.connectors.postgres_address import DATABASE, address_of

_HIGH, _LOW = Importance.HIGH, Importance.LOW
_FEW: Final = 500
"""So many changes are read by the worker itself: a Spark job takes longer."""
SETTINGS: Final = DATABASE + Settings(
    Setting("topic.prefix", doc="Topics are PREFIX.SCHEMA.TABLE.", importance=_HIGH),
    Setting(
        "table.include.list",
        Kind.LIST,
        (),
        "Tables as schema.table, with commas between them. Empty: all that the publication has.",
        _HIGH,
    ),
    Setting(
        "slot.name",
        default=None,
        doc="The replication slot, of this connector only. Without: headrace_NAME.",
    ),
    Setting("publication.name", default=None, doc="The publication. Without: headrace_NAME."),
    Setting(
        "publication.autocreate.mode",
        default="filtered",
        doc="filtered: the publication is made for the tables of table.include.list, and gets those that it "
        "does not have. disabled: it has to be there.",
        one_of=("filtered", "disabled"),
    ),
    Setting(
        "snapshot.mode",
        default="initial",
        doc="initial: the rows that are there are copied first. no_data: only changes.",
        one_of=("initial", "no_data"),
    ),
    Setting("snapshot.chunk.rows", Kind.INT, 100_000, "Rows that one task copies.", _LOW, least=1),
    Setting(
        "transaction.slice.changes",
        Kind.INT,
        100_000,
        "About how many changes a batch has. A larger transaction is published in slices of this size.",
        _LOW,
        least=1,
    ),
    Setting(
        "output.form",
        default="envelope",
        doc="envelope: before, after, source and op. rows: the row, with __op, __lsn and __index; a deleted "
        "one is a tombstone.",
        one_of=("envelope", "rows"),
    ),
    Setting(
        "tombstones.on.delete", Kind.BOOLEAN, True, "Whether a delete is followed by a record without value."
    ),
    Setting(
        "truncate.handling.mode",
        default="fail",
        doc="What TRUNCATE does: fail stops the connector, publish makes a record with op t and no key, skip "
        "leaves it out.",
        one_of=("fail", "publish", "skip"),
    ),
    Setting(
        "heartbeat.interval.ms",
        Kind.INT,
        10_000,
        "How often the slot is advanced while others write to the database and the tables do not change.",
        least=100,
    ),
    Setting(
        "heartbeat.topic", default="", doc="Where a record goes each time; empty: nowhere.", importance=_LOW
    ),
)  # fmt: skip


class PostgresChanges(Source):
    settings: ClassVar[Settings] = SETTINGS

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._capture: Capture | None = None
        self._reading: Reading | None = None
        self._choices = choices_of(config)
        self._partition = {"slot": self._choices.slot}
        self._naming = Naming(
            config.text("topic.prefix"),
            self._choices.address.database,
            config["output.form"] == "rows",
            config["tombstones.on.delete"],
        )

    @classmethod
    def missing(cls) -> str | None:
        if find_spec("psycopg") is None:
            return "Postgres needs psycopg: pip install 'headrace[postgres]'"
        return None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = {}
        for name in config["table.include.list"]:
            if name.count(".") != 1:
                found["table.include.list"] = f"{name!r} is no table: write schema.table, as in public.orders"
        if config["publication.autocreate.mode"] == "disabled" and not config.get("publication.name"):
            found["publication.name"] = "without autocreate, say which publication is there"
        return found

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:
        slot = choices_of(config).slot
        for partition, offset in position:
            if partition != {"slot": slot}:
                raise ConnectorFailure(f'the partition of this connector is {{"slot": "{slot}"}}')
            _progress(offset)

    def topics(self) -> list[str]:
        return [self._naming.topic(table) for table in self._choices.tables]

    def plan(self, position: Position) -> Step | None:
        if self._capture is None:
            self._capture = Capture(self._choices)
        offset = position.offset(self._partition)
        found = self._capture.next(None if offset is None else _progress(offset))
        if found is None:
            return None
        after = position.moved(self._partition, found.progress.document())
        if not found.parts:
            return Step(after, records=self._heartbeat(found.progress), more=found.more)
        if 0 < found.changes <= _FEW:
            return Step(after, records=list(self.read(found.parts[0])), more=found.more)
        return Step(after, found.parts, more=found.more)

    def read(self, part: Stretch | CopyPart) -> Iterator[Record]:
        self._reading = Reading(self._choices)
        try:
            for event in self._reading.events(part):
                yield from records_of(event, self._naming, _now_ms)
        except BadChange as error:
            raise GiveUp(str(error)) from None

    def committed(self, position: Position) -> None:
        if self._capture is None:
            self._capture = Capture(self._choices)
        offset = position.offset(self._partition)
        if offset is not None:
            self._capture.committed(_progress(offset))

    def stop(self) -> None:
        for each in (self._capture, self._reading):
            if each is not None:
                each.close()

    def _heartbeat(self, progress: Progress) -> list[Record]:
        topic = self.config.get("heartbeat.topic")
        if not topic:
            return []
        value = {"ts_ms": _now_ms(), "lsn": progress.lsn}
        return [Record(topic, value, {"serverName": self._naming.prefix})]


def choices_of(config: Config) -> Choices:
    own = "headrace_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in config.name.lower())
    return Choices(
        config.name,
        address_of(config),
        config.get("slot.name") or own[:63],
        config.get("publication.name") or own[:63],
        config["publication.autocreate.mode"] == "filtered",
        config["table.include.list"],
        config["snapshot.mode"] == "initial",
        config["snapshot.chunk.rows"],
        max(1, config["tasks.max"]),
        config["transaction.slice.changes"],
        config["truncate.handling.mode"],
        config["heartbeat.interval.ms"] / 1000,
    )


def _progress(offset: Mapping[str, Any]) -> Progress:
    try:
        return progress_of(offset)
    except (KeyError, TypeError, ValueError, HeadraceError) as error:
        raise GiveUp(
            f"the connector's offset cannot be read ({error!r}): take one that GET /offsets has answered, or "
            "DELETE the offsets to begin anew"
        ) from None


def _now_ms() -> int:
    return int(time.time() * 1000)
