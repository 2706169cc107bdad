"""A checkpoint, a table or a topic is lost, and a key becomes another: the log is the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.job import LoadFailed
from headrace.spark.table.config import TableConfig
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.plan import NeedsRebuild, table_state
from headrace.spark.table.rebuild import rebuild
from headrace.spark.table.tables.delta import KeyedDeltaTable
from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import create
from tests.spark.source.queries import delete
from tests.spark.table.conftest import PLAIN, Record, TablesUnderTest, order


class Killed(Exception):
    pass


def totals(tables: TablesUnderTest, config: TableConfig) -> dict[str | bytes, int]:
    rows = tables.rows(config, "orders")
    return {row.key if isinstance(row.key, str) else bytes(row.key): row.total for row in rows}


def letters(tables: TablesUnderTest, config: TableConfig) -> list[tuple[int, bytes]]:
    return [(row.offset, bytes(row.value)) for row in tables.rows(config, "orders_dead_letters")]


def kill_before_the_merge(
    tables: TablesUnderTest, config: TableConfig, batch: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In step 2, when its dead letters are there already."""

    def die(*_: object) -> None:
        raise Killed

    frame = tables.frame(batch, config.tables[0].topic)
    with monkeypatch.context() as patched:
        patched.setattr(KeyedDeltaTable, "merge", die)
        with pytest.raises(Killed):
            tables.loader(config).load(frame, 2, tables.opened(config))


def test_a_lost_checkpoint_a_lost_table_another_key_and_another_topic(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, more = create(headrace.bootstrap, new_topic()), 'on_data_loss = "continue"'
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic=topic), headrace.bootstrap, more)
    tables.produce(headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"b", order("bob", 2))])
    tables.run(config)
    second = [(b"b", None), (b"a", order("cy", 4)), (b"bad", b"{")]
    tables.produce(headrace.bootstrap, topic, second)
    batch: list[Record] = [(0, offset, key, value) for offset, (key, value) in enumerate(second, 2)]
    kill_before_the_merge(tables, config, batch, monkeypatch)
    assert letters(tables, config) == [(4, b"{")]  # past what the table has
    files = LocalFiles()
    state = table_state(config.store, config.tables[0])
    files.remove(Lineage(files, state).checkpoint(0).directory)
    tables.run(config)
    assert totals(tables, config) == {"a": 4}
    assert letters(tables, config) == [(4, b"{")]

    files.remove(f"{config.store.location}/orders")
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # another process would not remember it
    tables.run(config)
    assert totals(tables, config) == {"a": 4}

    other = tables.config(PLAIN.format(topic=topic).replace('"string"', '"bytes"'), headrace.bootstrap, more)
    with pytest.raises(LoadFailed, match=r"\"bytes\".*headrace table rebuild orders"):
        tables.run(other)
    delete(headrace.bootstrap, topic)
    create(headrace.bootstrap, topic)
    # More than the old one had: no offset tells that it is another.
    made = [(b"new", order("ada", each)) for each in range(9)]
    made[4] = (b"worse", b"[")  # where the old one had a dead letter
    tables.produce(headrace.bootstrap, topic, made)
    with pytest.raises(LoadFailed, match=r"deleted and made anew.*headrace table rebuild orders"):
        tables.run(config)
    assert totals(tables, config) == {"a": 4}
    rebuild(spark, other, "orders")
    assert letters(tables, config) == [(4, b"[")]
    tables.produce(headrace.bootstrap, topic, [(b"newer", order("bob", 9))])
    tables.run(other)
    assert totals(tables, other) == {b"new": 8, b"newer": 9}


def test_a_topic_made_anew_while_a_batch_is_read_leaves_nothing_in_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    def another() -> None:
        raise NeedsRebuild("it is another topic")

    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic="t"))
    records: list[Record] = [(0, 0, b"a", order("ada", 1)), (0, 1, b"b", b"{")]
    with pytest.raises(NeedsRebuild):
        tables.loader(config, another).load(tables.frame(records), 1, tables.opened(config))
    assert not tables.rows(config, "orders")
    assert not tables.rows(config, "orders_dead_letters")
