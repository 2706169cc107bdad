"""Random upserts and deletes in batches that are cut off after each commit, beside a dictionary.

`HEADRACE_TABLE_SEED` and `HEADRACE_TABLE_BATCHES` choose others than every build's.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame

from headrace.spark.lake.tables.table import Commit
from headrace.spark.table.config import TableConfig
from headrace.spark.table.opened import Opened
from headrace.spark.table.reading import as_of_one_step
from headrace.spark.table.tables.keyed import KeyedTable
from tests.spark.table.conftest import (
    ORDERS,
    Record,
    TablesUnderTest,
    check_orders,
    derived_names,
    order,
)

#: One by which some key moves between partitions so that its table leaves out what an index would take.
_USUAL = "8"
_BATCHES = int(os.environ.get("HEADRACE_TABLE_BATCHES", "2"))
_SEED = int(os.environ.get("HEADRACE_TABLE_SEED", _USUAL))
#: A batch with dead letters commits to each of the four tables.
_COMMITS = 4


class Killed(Exception):
    pass


class Model:
    """A topic with two partitions, and what its table must be. Some keys stay in theirs, and some move."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.next = [0, 0]
        self.rows: dict[str, tuple[str | None, int]] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """Of the records that the rows are from. A row that is deleted leaves none."""
        self.bad: set[tuple[int, int]] = set()
        self.left_out: set[str] = set()
        """Keys of records that would be in an index, while their row, which is later, is not."""

    def batch(self) -> list[Record]:
        records: list[Record] = []
        for at in range(self.chance.randrange(10, 60)):
            number = self.chance.randrange(12)
            partition = self.chance.randrange(2) if number > 6 else number % 2
            value = self._value() if at else b"not JSON"  # one at least, so that there are four commits
            records.append((partition, self.next[partition], f"k{number}".encode(), value))
            # Compaction and markers of transactions leave gaps.
            self.next[partition] += self.chance.choice((1, 1, 1, 2, 7))
        self._take(records)
        self.chance.shuffle(records)  # the rows of a batch have no order of their own
        return records

    def _value(self) -> bytes | None:
        kind = self.chance.randrange(10)
        if kind < 3:
            return None
        if kind == 3:
            return b"not JSON"  # the last good one stays
        return order(self.chance.choice(("ada", "bob", "cy", None)), self.chance.randrange(100))

    def _take(self, records: list[Record]) -> None:
        last: dict[str, tuple[tuple[int, int], bytes | None]] = {}
        for partition, offset, raw, value in sorted(records, key=lambda each: each[:2]):
            if value == b"not JSON":
                self.bad.add((partition, offset))
            else:
                assert raw is not None, "all of them have one"
                last[raw.decode()] = (partition, offset), value
        for key, (place, value) in last.items():
            made = None if value is None else json.loads(value)
            if place < self.places.get(key, (0, 0)):
                if made is not None and made["customer"] is not None and self.rows[key][0] is None:
                    self.left_out.add(key)
            elif made is None:
                self.rows.pop(key, None)
                self.places.pop(key, None)
            else:
                self.rows[key], self.places[key] = (made["customer"], made["total"]), place


class Dying(Opened):
    """Dies after as many commits as it is told, to whichever tables."""

    def __init__(self, opened: Opened, commits: int) -> None:
        self.commits = commits
        super().__init__(opened.spark, opened.store, opened.spec)

    def open(self, name: str) -> Any:
        return _DyingTable(super().open(name), self)

    def committed(self) -> None:
        self.commits -= 1
        if self.commits == 0:
            raise Killed


class _DyingTable:
    def __init__(self, table: KeyedTable, owner: Dying) -> None:
        self._table = table
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def merge(self, changes: DataFrame, keys: Sequence[str], step: int, newer: str | None) -> None:
        self._table.merge(changes, keys, step, newer)
        self._owner.committed()

    def append(self, rows: DataFrame, commit: Commit) -> None:
        self._table.append(rows, commit)
        self._owner.committed()


def _check_one_step(tables: TablesUnderTest, config: TableConfig, model: dict[str, Any]) -> None:
    """A reader who takes all of one step sees one moment of the topic, whatever was cut off."""
    frames = as_of_one_step(tables.spark, config, "orders")
    assert list(frames) == derived_names(config)
    check_orders({name: frame.collect() for name, frame in frames.items()}, model)


def test_a_table_is_what_a_dictionary_would_be(tables: TablesUnderTest) -> None:
    config = tables.config(ORDERS.format(topic="t"))
    model = Model(_SEED)
    for step in range(1, _BATCHES + 1):
        before = dict(model.rows)
        batch = model.batch()
        # A repetition finds what is there. So each one that is cut off at its first commit gets one further.
        for commits in range(1, _COMMITS + 1) if step > 1 else ():
            with pytest.raises(Killed):
                tables.loader(config).load(tables.frame(batch), step, Dying(tables.opened(config), 1))
            _check_one_step(tables, config, model.rows if commits == _COMMITS else before)
        tables.load(config, batch, step)
        check_orders({name: tables.rows(config, name) for name in derived_names(config)}, model.rows)
        dead = tables.rows(config, "orders_dead_letters")
        assert {(row.partition, row.offset) for row in dead} == model.bad, f"seed {_SEED}, step {step}"
        assert len(dead) == len(model.bad)
    assert model.left_out or str(_SEED) != _USUAL
