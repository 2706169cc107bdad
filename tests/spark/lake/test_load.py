"""Topics become tables: every record once, with where it came from, in each format."""

from __future__ import annotations

from collections.abc import Callable

from tests.spark.committed import committed
from tests.spark.lake.conftest import LakeUnderTest


def offsets(rows: list) -> list[tuple[int, int]]:  # type: ignore[type-arg]  # rows of any table
    return [(row.partition, row.offset) for row in rows]


def test_records_arrive_once_with_where_they_came_from(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    lake.produce(topic, [f"v{number}".encode() for number in range(50)])
    config = lake.config(f'[[topics]]\nname = "{topic}"', f'group = "of-{topic}"')

    (done,) = lake.load(config)
    assert [batch.records for batch in done.batches] == [50]
    assert committed(lake.broker.bootstrap, f"of-{topic}", topic) == 50
    assert (done.new.rows, done.new.dead_letters) == (50, 0)
    (again,) = lake.load(config)
    assert again.new.records == 0, "there is nothing new"
    lake.produce(topic, [b"later", None])
    (done,) = lake.load(config)

    assert [batch.records for batch in done.batches] == [50, 2]
    assert committed(lake.broker.bootstrap, f"of-{topic}", topic) == 52
    rows = lake.rows(config, topic)
    assert offsets(rows) == [(0, number) for number in range(52)]
    assert {row.topic for row in rows} == {topic}
    assert bytes(rows[7].value) == b"v7"
    assert bytes(rows[7].key) == b"k7"
    assert rows[51].value is None
    assert rows[7].timestamp is not None
    assert rows[7].headers is None


def test_values_become_columns_and_bad_ones_dead_letters(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    good = [b'{"id": %d, "timestamp": "t%d"}' % (number, number) for number in range(10)]
    lake.produce(topic, [*good, b"no json", b'{"id": "text"}', None])
    config = lake.config(
        f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id bigint, timestamp string"'
    )
    (done,) = lake.load(config)
    assert (done.new.rows, done.new.dead_letters) == (11, 2)
    assert done.new.commonest_reason is not None
    lake.load(config)

    rows = lake.rows(config, topic)
    assert [row.id for row in rows] == [*range(10), None]
    assert [row.value_timestamp for row in rows][:2] == ["t0", "t1"]
    dead = lake.rows(config, f"{topic}_dead_letters")
    assert offsets(dead) == [(0, 10), (0, 11)]
    assert bytes(dead[0].value) == b"no json"
    assert dead[0].reason.startswith("not JSON")
    assert bytes(dead[0].key) == b"k10"
