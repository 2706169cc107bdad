"""A connection by a JDBC driver in Spark's own process on the worker, for quick questions. Rows are read by
Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark import SparkContext

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.jdbc.statements import Kind, Place

T = TypeVar("T")
_SCROLLS: Final = 1004
_READ_ONLY: Final = 1007
_SERIALIZABLE: Final = 8
_NO_DRIVER: Final = "No suitable driver"


def opened(url: str, properties: Mapping[str, str], isolation: int) -> Any:
    """A `java.sql.Connection` whose transactions end when they are told to. Raises ConnectorFailure with what
    the driver says."""
    context = SparkContext._active_spark_context
    assert context is not None, "a worker has a session"
    jvm: Any = context._jvm
    given = jvm.java.util.Properties()
    for name, value in properties.items():
        if name != "driver":
            given.setProperty(name, value)
    try:
        if driver := properties.get("driver"):
            jvm.java.lang.Class.forName(driver)
        connection = jvm.java.sql.DriverManager.getConnection(url, given)
        connection.setAutoCommit(False)
        connection.setTransactionIsolation(isolation)
    except Py4JJavaError as error:
        raise told(error, f"cannot connect to {shown(url)}") from None
    return connection


def shown(url: str) -> str:
    """Without what may be a password."""
    return url.partition("?")[0].partition(";")[0]


class JdbcConnection:
    """Close it. Each question is a transaction that waits for rows which others have not committed yet, where
    the database has locks for that."""

    def __init__(self, url: str, properties: Mapping[str, str]) -> None:
        """Raises ConnectorFailure with what the driver says."""
        self._what = shown(url)
        self._connection = opened(url, properties, _SERIALIZABLE)

    def kinds(self, query: str) -> list[Kind]:
        """Of the columns of a query."""
        return self._asked(query, 1, _kinds)

    def last(self, query: str, most: int, kinds: Sequence[Kind]) -> Place | None:
        """The last one of the first rows."""
        return self._asked(query, most, lambda rows: _last(rows, kinds))

    def close(self) -> None:
        try:
            self._connection.close()
        except Py4JJavaError:
            pass  # the other end has gone, and the connection with it

    def _asked(self, query: str, most: int, take: Callable[[Any], T]) -> T:
        try:
            statement = self._connection.createStatement(_SCROLLS, _READ_ONLY)
            try:
                statement.setMaxRows(most)
                return take(statement.executeQuery(query))
            finally:
                statement.close()
                self._connection.rollback()
        except Py4JJavaError as error:
            raise told(error, f"{self._what} refused {query}") from None


def _kinds(rows: Any) -> list[Kind]:
    about = rows.getMetaData()
    return [Kind.of(about.getColumnType(at + 1)) for at in range(about.getColumnCount())]


def _last(rows: Any, kinds: Sequence[Kind]) -> Place | None:
    if not rows.last():
        return None
    return tuple(
        # A driver prints times in its own way; this one is that of JDBC's literals.
        rows.getTimestamp(at + 1).toString() if kind is Kind.TIME else rows.getString(at + 1)
        for at, kind in enumerate(kinds)
    )


def told(error: Py4JJavaError, what: str) -> ConnectorFailure:
    said = str(error.java_exception.getMessage())
    is_missing = _NO_DRIVER in said or "ClassNotFound" in str(error.java_exception.getClass().getName())
    if is_missing:
        return GiveUp(
            f"{what}: its JDBC driver is not there. Give every worker the jar: headrace connect --spark "
            "spark.driver.extraClassPath=/DIRECTORY/DRIVER.jar, and on a cluster of Spark "
            "spark.executor.extraClassPath too"
        )
    return ConnectorFailure(f"{what}: {' '.join(said.split())}")
