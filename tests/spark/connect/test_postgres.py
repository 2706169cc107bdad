"""Changes of a real Postgres through a real worker, which is killed while it copies and while it follows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.connect.postgres.lsn import lsn_text
from headrace.testing.connect import Workers
from tests.broker_process import BrokerProcess
from tests.postgres.following import end_of, is_there
from tests.postgres.rebuilt import events_of, table_of
from tests.postgres.server import PostgresServer, running_postgres
from tests.postgres.writers import Writers, check_histories, fill


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def workers(headrace: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with Workers(tmp_path_factory.mktemp("connect"), headrace.bootstrap) as made:
        yield made


def test_the_topic_has_every_row_and_every_change_once(postgres: PostgresServer, workers: Workers) -> None:
    with postgres.connect() as db:
        fill(db, 800)
        config = {
            "connector.class": "postgres-changes",
            "database.hostname": "127.0.0.1",
            "database.port": str(postgres.port),
            "database.user": "owner",
            "database.dbname": "postgres",
            "table.include.list": "public.orders",
            "topic.prefix": "ledger",  # the tests of examples/shop use the same broker
            "snapshot.chunk.rows": "150",
            "tasks.max": "2",
            "poll.interval.ms": "100",
        }
        topic = "ledger.public.orders"
        with Writers(postgres, "postgres", seed=1, count=2, most=200):
            workers.put("orders", config)
            workers.wait_for_records(topic, 300)
            workers.kill()
            workers.add()
        end = end_of(db)
        workers.wait(lambda: is_there(workers, "orders", end), "all rows and changes to be there")
        lag = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
        workers.wait(lambda: db.execute(lag, [lsn_text(end)]).fetchall() == [(True,)], "the slot to follow")
        rows = {f'{{"id": {i}}}': {"id": i, "v": v, "note": n} for i, v, n in db.execute("TABLE orders")}
    events = events_of(workers.records(topic))
    assert table_of(events) == rows
    kinds = check_histories(events)
    assert kinds["r"] > 400
    assert kinds["u"] > 50
