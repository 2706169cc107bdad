"""The connector without Spark and without a broker: its loop as the runtime runs it, over a list that takes
records and position together, as a decision does."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import psycopg

from headrace.connect.api import Config, Position, Record, Step
from headrace.connect.plugins import all_settings
from headrace.connect.position import NOWHERE
from headrace.connect.postgres.capture import CopyPart
from headrace.connect.postgres.lsn import lsn_of
from headrace.spark.connect.connectors.postgres import PostgresChanges
from tests.postgres.rebuilt import events_of, table_of

#: What may die at a moment raises this.
Moment = Callable[[str], None]


class Died(Exception):
    """The worker is gone."""


class Captured:
    def __init__(self, port: int, database: str, **settings: str) -> None:
        self.settings = {
            "name": "orders-changes",
            "connector.class": "postgres-changes",
            "database.hostname": "127.0.0.1",
            "database.port": str(port),
            "database.user": "owner",
            "database.dbname": database,
            "topic.prefix": "db",
            "heartbeat.interval.ms": "100",
            **settings,
        }
        self.topic: list[Record] = []
        self.position: Position = NOWHERE
        self.steps = 0
        self.is_copying = False
        self._source: PostgresChanges | None = None

    def set(self, **settings: str) -> None:
        self.settings.update({name.replace("__", "."): value for name, value in settings.items()})

    def config(self) -> Config:
        parsed = all_settings(PostgresChanges).parse(self.settings)
        return Config(self.settings["name"], parsed, self.settings)

    def step(self, dies: Moment = lambda moment: None) -> Step | None:
        """Once around the loop; `dies` is asked at each moment at which a worker can be killed."""
        if self._source is None:
            self._source = PostgresChanges(self.config())
            if self.position:
                self._source.committed(self.position)
        dies("start")
        step = self._source.plan(self.position)
        if step is None:
            return None
        self.is_copying = any(isinstance(each, CopyPart) for each in step.parts)
        dies("planned")
        records = list(step.records)
        for part in step.parts:
            task = PostgresChanges(self.config())
            try:
                for record in task.read(pickle.loads(pickle.dumps(part))):
                    records.append(record)
                    dies("reading")
            finally:
                task.stop()
        dies("read")
        self.topic += records
        self.position = Position(dict(json_entries(step.position)))
        self.steps += 1
        dies("decided")
        self._source.committed(self.position)
        dies("committed")
        return step

    def run(self, until: Callable[[], bool], dies: Moment = lambda moment: None) -> None:
        """Steps until the condition holds and nothing is left; a death is a start of another worker."""
        while True:
            done = until()
            try:
                if self.step(dies) is None and done:
                    return
            except Died:
                self.stop()

    def drain(self) -> None:
        """Until everything is there that is committed now, and nothing is left to copy."""
        with psycopg.connect(
            host="127.0.0.1",
            port=int(self.settings["database.port"]),
            user="owner",
            dbname=self.settings["database.dbname"],
        ) as connection:
            (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
        while True:
            step = self.step()
            rests = step is None or not step.more
            if rests and self.position and lsn_of(self.offset()["lsn"]) >= lsn_of(end):
                return

    def stop(self) -> None:
        if self._source is not None:
            self._source.stop()
            self._source = None

    def events(self, table: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """Key and value of each record of a table's topic."""
        return events_of(each for each in self.topic if each.topic == f"db.{table}")

    def table(self, table: str) -> dict[str, dict[str, Any]]:
        return table_of(self.events(table))

    def offset(self) -> dict[str, Any]:
        return next(iter(self.position))[1]


def json_entries(position: Position) -> list[tuple[str, dict[str, Any]]]:
    """A position as it comes back from the log."""
    document = json.loads(position.text())
    return [
        (json.dumps(each["partition"], sort_keys=True, separators=(",", ":")), each["offset"])
        for each in document["offsets"]
    ]
