"""One server for all tests of a worker, a database for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres.captured import Captured
from tests.postgres.server import PostgresServer, running_postgres

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield name
    with postgres.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL"
        )
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", [name]
        )
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def db(postgres: PostgresServer, database: str) -> Iterator[psycopg.Connection[Any]]:
    with postgres.connect(database) as connection:
        yield connection


@pytest.fixture
def captured(postgres: PostgresServer, database: str) -> Iterator[Captured]:
    made = Captured(postgres.port, database)
    yield made
    made.stop()
