"""Random upserts and deletes in batches that are cut off and repeated, beside a dictionary.

`HEADRACE_TABLE_SEED` and `HEADRACE_TABLE_BATCHES` choose others than every build's.
"""

from __future__ import annotations

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

_BATCHES = int(os.environ.get("HEADRACE_TABLE_BATCHES", "3"))
_SEED = int(os.environ.get("HEADRACE_TABLE_SEED", "0"))
#: A batch with dead letters commits to each of the four tables.
_COMMITS = 4
#: After which of them the first batches are cut off. Both formats have one order, so they share the cases.
_FIRST_KILLS = {"delta": [2, 3], "iceberg": [4, 1]}


class Killed(Exception):
    pass


class Model:
    """A topic with two partitions, a key's partition by its number, and what its table must be."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.next = [0, 0]
        self.rows: dict[str, tuple[str | None, int]] = {}
        self.bad: set[tuple[int, int]] = set()

    def batch(self) -> list[Record]:
        records: list[Record] = []
        for at in range(self.chance.randrange(10, 60)):
            number = self.chance.randrange(12)
            partition, key = number % 2, f"k{number}"
            value = self._value(key) if at else b"not JSON"  # one at least, so that there are four commits
            offset = self.next[partition]
            if value == b"not JSON":
                self.bad.add((partition, offset))
            # Compaction and markers of transactions leave gaps.
            self.next[partition] += self.chance.choice((1, 1, 1, 2, 7))
            records.append((partition, offset, key.encode(), value))
        self.chance.shuffle(records)  # the rows of a batch have no order of their own
        return records

    def _value(self, key: str) -> bytes | None:
        kind = self.chance.randrange(10)
        if kind < 3:
            self.rows.pop(key, None)
            return None
        if kind == 3:
            return b"not JSON"  # the last good one stays
        customer = self.chance.choice(("ada", "bob", "cy", None))
        total = self.chance.randrange(100)
        self.rows[key] = (customer, total)
        return order(customer, total)


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
    kills = list(_FIRST_KILLS[tables.format])
    for step in range(1, _BATCHES + 1):
        before = dict(model.rows)
        batch = model.batch()
        kills = kills or model.chance.sample(range(1, _COMMITS + 1), _COMMITS)
        if step > 1:
            commits = kills.pop()
            with pytest.raises(Killed):
                tables.loader(config).load(tables.frame(batch), step, Dying(tables.opened(config), commits))
            whole = commits == _COMMITS
            _check_one_step(tables, config, model.rows if whole else before)
        tables.load(config, batch, step)
        check_orders({name: tables.rows(config, name) for name in derived_names(config)}, model.rows)
        dead = tables.rows(config, "orders_dead_letters")
        assert {(row.partition, row.offset) for row in dead} == model.bad, f"seed {_SEED}, step {step}"
        assert len(dead) == len(model.bad)
