"""SQL over a topic's files: what comes, what is decoded for it, and sentences where it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.arrow import DamagedHistory, Topic, open_topic
from headrace.arrow.query import Database
from headrace.cli.query import query
from headrace.client.errors import ClientFailure
from headrace.protocol.records import NewRecord
from tests.unit.arrow.written_logs import PARTITION, WrittenLog


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    log = WrittenLog()
    for number in range(50):
        value = json.dumps({"id": number, "total": number * 2}).encode()
        log.append([NewRecord(value, b"k%d" % (number % 3), 1_700_000_000_000 + number, (("h", b"1"),))])
    log.save(tmp_path)
    return log


@pytest.fixture
def run(log: WrittenLog, tmp_path: Path) -> Any:
    assert log.end == 50

    def run(sql: str, *options: str) -> Result:
        arguments = [sql, "--files", str(tmp_path), *options]
        return CliRunner().invoke(query, arguments, catch_exceptions=True)

    return run


def rows(result: Result) -> list[Any]:
    assert result.exception is None
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select count(*) n from orders", [{"n": 50}]),
        ("select key, count(*) n from orders group by key order by key limit 1", [{"key": "k0", "n": 17}]),
        (
            "select sum((decode(value)::json ->> 'total')::int)::int s from orders where \"offset\" < 10",
            [{"s": 90}],
        ),
        (
            'select count(*) n from orders a join orders b using ("offset") where a.partition = 3',
            [{"n": 50}],
        ),
        ("with x as (select topic from orders) select distinct topic from x", [{"topic": "orders"}]),
        ("select headers from orders limit 1", [{"headers": [{"key": "h", "value": "1"}]}]),
        ("select 1 a", [{"a": 1}]),
    ],
)
def test_what_comes(run: Any, sql: str, expected: list[Any]) -> None:
    assert rows(run(sql, "-o", "json")) == expected


def test_bounds_of_all_topics(run: Any) -> None:
    late = str(1_700_000_000_040)
    assert rows(run("select count(*) n from orders", "--start-time", late, "-o", "json")) == [{"n": 10}]
    assert rows(run("select count(*) n from orders", "--end-time", late, "-o", "json")) == [{"n": 40}]


def test_csv_and_a_table(run: Any) -> None:
    sql = 'select "offset", key from orders where "offset" in (1, 2) order by 1'
    assert run(sql, "-o", "csv").stdout == "offset,key\n1,k1\n2,k2\n"
    assert [line.split() for line in run(sql).stdout.splitlines()] == [
        ["offset", "key"],
        ["1", "k1"],
        ["2", "k2"],
    ]


def test_a_long_table_is_cut(run: Any) -> None:
    done = run("select a.offset from orders a cross join orders b")
    assert len(done.stdout.splitlines()) == 1001
    assert "only the first 1000 rows are shown" in done.stderr


def test_it_says_how_far_it_is(run: Any) -> None:
    assert "50 records read" in run("select count(*) from orders").stderr


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("selec 1", "the query cannot be read: syntax error"),
        ("create table t as select 1", "the query cannot be read: Only SELECT"),
        ("select 1; select 2", "a query is one SELECT"),
        ("select nothing from orders", "the query failed: Binder Error"),
        ("select * from nosuch", "there is no partition of topic nosuch in "),
    ],
)
def test_what_fails_is_said(run: Any, sql: str, sentence: str) -> None:
    failure = run(sql).exception
    assert isinstance(failure, ClientFailure)
    assert str(failure).startswith(sentence)


def test_damage_is_not_hidden(log: WrittenLog, tmp_path: Path, run: Any) -> None:
    log.segments[0].data[-5] ^= 1
    log.save(tmp_path)
    failure = run("select count(*) from orders").exception
    assert isinstance(failure, DamagedHistory)


def test_memory_is_bounded(run: Any) -> None:
    sql = "select a.value, b.value, c.value from orders a, orders b, orders c order by 1, 2, 3"
    failure = run(sql, "--memory", "1MB").exception
    assert isinstance(failure, ClientFailure)
    assert "memory" in failure.hint
    assert "write it as" in run("select 1", "--memory", "much").exception.hint


def test_only_what_a_query_names_is_decoded(log: WrittenLog, tmp_path: Path) -> None:
    assert log.end == 50
    asked: list[list[str]] = []

    class Watched(Topic):
        def select(self, columns: Any) -> Topic:
            asked.append(list(columns))
            return super().select(columns)

    def opened(name: str) -> Topic:
        plain = open_topic(name, files=tmp_path)
        return Watched(plain._wish, plain._blocks)

    database = Database("500MB", opened, lambda _: None)
    try:
        for sql in ("select max(\"offset\") from orders where key = 'k1'", "select count(*) from orders"):
            assert sum(batch.num_rows for batch in database.run(sql).batches) == 1
    finally:
        database.close()
    assert asked[0] == ["key", "offset"]
    assert len(asked[1]) == 1


def test_a_topic_with_an_odd_name(tmp_path: Path) -> None:
    log = WrittenLog()
    log.append([NewRecord(b"1")])
    log.save(tmp_path)
    (tmp_path / str(PARTITION)).rename(tmp_path / "a.b-c-0")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\na.b-c 0 1\n")
    done = CliRunner().invoke(
        query, ['select count(*) n from "a.b-c"', "--files", str(tmp_path), "-o", "json"]
    )
    assert rows(done) == [{"n": 1}]
