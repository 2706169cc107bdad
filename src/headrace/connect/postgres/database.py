"""The connection to Postgres. All texts that it gives are in one form, whatever the server's settings are: a
copied row and a changed one must look the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headrace.connect.api import ConnectorFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

_SESSION: Final = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
    "search_path": "pg_catalog",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_CHECKS_ITS_CLIENT: Final = 140000


@dataclass(frozen=True)
class Address:
    """What psycopg needs."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    further: Mapping[str, str] = field(default_factory=dict)
    """sslmode, sslrootcert and so on."""


def connect(address: Address, name: str, *, writes: bool = False) -> Connection[Any]:
    """Raises ConnectorFailure with what Postgres says. Whoever writes has the search path of its user:
    triggers may rely on it."""
    import psycopg

    session = {name: value for name, value in _SESSION.items() if not writes or name != "search_path"}
    parameters = {
        "host": address.host,
        "port": str(address.port),
        "user": address.user,
        "password": address.password,
        "dbname": address.database,
        "application_name": name,
        "connect_timeout": "10",
        "client_encoding": "UTF8",
        "options": " ".join(f"-c {setting}={value}" for setting, value in session.items()),
        **address.further,
    }
    try:
        connection = psycopg.connect(autocommit=True, **parameters)  # type: ignore[arg-type]  # psycopg's own
        if connection.info.server_version >= _CHECKS_ITS_CLIENT:
            # Else a look at the log goes on for a worker that was killed, and nobody else may look meanwhile.
            connection.execute("SET client_connection_check_interval = '1s'")
    except psycopg.Error as error:
        raise ConnectorFailure(
            f"Postgres at {address.host}:{address.port} does not let {address.user} in to database "
            f"{address.database}: {_plain(error)}"
        ) from None
    return connection


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Errors of Postgres in words for a connector's status."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise ConnectorFailure(f"Postgres refused to {doing}: {_plain(error)}") from error


def rows(connection: Connection[Any], query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(*statement(query, values)).fetchall()


def statement(query: str, values: Sequence[Any] = ()) -> tuple[Any, list[Any] | None]:
    """psycopg looks for percent signs only in queries with values: in the others none is doubled."""
    return (query, list(values)) if values else (query.replace("%%", "%"), None)


def quoted(name: str) -> str:
    """For `statement`."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def quoted_table(table: str) -> str:
    schema, _, name = table.partition(".")
    return f"{quoted(schema)}.{quoted(name)}"


def _plain(error: Exception) -> str:
    return " ".join(str(error).split())
