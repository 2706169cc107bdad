"""A database that is written to by its JDBC driver, in Spark's own process on the worker: its tables as it
describes them, statements, transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark import SparkContext

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.jdbc.columns import Column, column_of, named_as
from headrace.connect.jdbc.dialects import Dialect, dialect_of
from headrace.connect.jdbc.upserting import Target
from headrace.spark.connect.jdbc import opened, shown, told

_READ_COMMITTED: Final = 2


class RecordFault(ConnectorFailure):
    """The database refuses a row, whoever asks and however often."""


class JdbcTarget:
    """Close it."""

    def __init__(self, url: str, properties: Mapping[str, str]) -> None:
        """Raises ConnectorFailure with what the driver says."""
        self._what = shown(url)
        self._connection = opened(url, properties, _READ_COMMITTED)
        about = self._about()
        self.dialect: Final[Dialect] = dialect_of(
            str(about.getDatabaseProductName()), str(about.getIdentifierQuoteString())
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._rollback()
            raise
        try:
            self._connection.commit()
        except Py4JJavaError as error:
            self._rollback()
            raise told(error, f"{self._what} has perhaps not committed") from None

    @contextmanager
    def undone(self) -> Iterator[None]:
        """A transaction that only finds something out."""
        try:
            yield
        finally:
            self._rollback()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A part of a transaction: what fails in it is undone, and the rest goes on."""
        point = self._connection.setSavepoint()
        try:
            yield
        except ConnectorFailure:
            self._connection.rollback(point)
            raise
        self._connection.releaseSavepoint(point)

    def execute(self, sql: str, *values: str | int) -> int:
        """How many rows. Raises RecordFault where a row is to blame."""
        try:
            statement = self._prepared(sql, values)
            try:
                return int(statement.executeUpdate())
            finally:
                statement.close()
        except Py4JJavaError as error:
            raise self._failure(error, sql) from None

    def rows(self, sql: str, *values: str | int) -> list[tuple[str | None, ...]]:
        """As texts: all that is asked are names, numbers and reasons."""
        try:
            statement = self._prepared(sql, values)
            try:
                found = statement.executeQuery()
                width = range(1, found.getMetaData().getColumnCount() + 1)
                rows = []
                while found.next():
                    rows.append(tuple(found.getString(at) for at in width))
                return rows
            finally:
                statement.close()
        except Py4JJavaError as error:
            raise self._failure(error, sql) from None

    def describe(self, name: str, keys: Sequence[str] | None) -> Target:
        """`keys` are the columns of the key, and empty where the table's own key is asked for; None: rows
        have none."""
        try:
            place = self._found(name)
            qualified = self._qualified(place)
            columns = self._columns(qualified)
            if keys is not None and not keys:
                keys = self._primary_key(place)
        except Py4JJavaError as error:
            raise told(error, f"{self._what} does not describe {name}") from None
        if keys is not None and not keys:
            raise GiveUp(f"table {name} has no primary key: name the columns of the key in pk.fields")
        names = frozenset(column.name for column in columns)
        chosen = tuple(named_as(key, names) for key in keys or ())
        if strange := [key for key in chosen if key not in names]:
            raise GiveUp(f"table {name} has no column {', '.join(strange)}, which pk.fields names")
        return Target(name, qualified, tuple(columns), chosen)

    def tables_with(self, prefix: str) -> list[str]:
        """Of the connector's own: small letters, digits and `_`."""
        try:
            found = self._about().getTables(
                self._connection.getCatalog(), self._schema(), f"{prefix}%", self._of_type("TABLE")
            )
            return [name for _, _, name in self._listed(found) if name.startswith(prefix)]
        except Py4JJavaError as error:
            raise told(error, f"{self._what} does not list its tables") from None

    def close(self) -> None:
        try:
            self._connection.close()
        except Py4JJavaError:
            pass  # the other end has gone, and the connection with it

    def _about(self) -> Any:
        return self._connection.getMetaData()

    def _prepared(self, sql: str, values: Sequence[str | int]) -> Any:
        statement = self._connection.prepareStatement(sql)
        for at, value in enumerate(values, 1):
            if isinstance(value, int):
                statement.setBigDecimal(at, self._jvm.java.math.BigDecimal(str(value)))
            else:
                statement.setString(at, value)
        return statement

    def _failure(self, error: Py4JJavaError, sql: str) -> ConnectorFailure:
        thrown = error.java_exception
        failure = told(error, f"{self._what} refused {sql.partition(' ')[0]}")
        try:
            state, code = str(thrown.getSQLState()), int(thrown.getErrorCode())
        except Exception:  # it is no SQLException
            return failure
        return RecordFault(_said(thrown)) if self.dialect.is_fault(state, code) else failure

    def _rollback(self) -> None:
        try:
            self._connection.rollback()
        except Py4JJavaError:
            pass  # the connection has gone, and the transaction with it

    # --- tables ---------------------------------------------------------------------------------------

    def _found(self, name: str) -> tuple[str | None, str | None, str]:
        """Catalog, schema and name as the database has them: of a table in the connection's own schema, or
        of SCHEMA.TABLE."""
        first, _, last = name.rpartition(".")
        wanted: list[tuple[str | None, str | None, str]] = [
            (self._connection.getCatalog(), self._schema(), name)
        ]
        if first:
            schema = first.rpartition(".")[2]
            by_schema = bool(self._about().supportsSchemasInDataManipulation())
            own = self._connection.getCatalog()
            wanted.append((own, schema, last) if by_schema else (schema, None, last))
        for each in wanted:
            if (place := self._place(*each)) is not None:
                return place
        raise ConnectorFailure(f"table {name} does not exist: make it")

    def _place(
        self, catalog: str | None, schema: str | None, table: str
    ) -> tuple[str | None, str | None, str] | None:
        listed: dict[str, tuple[str | None, str | None, str]] = {}
        for written in dict.fromkeys((table, table.upper(), table.lower())):
            schemas: tuple[str | None, ...] = (None,)
            if schema:
                schemas = (schema, schema.upper(), schema.lower())
            for spelled in dict.fromkeys(schemas):
                pattern = None if spelled is None else self._escaped(spelled)
                found = self._about().getTables(catalog, pattern, self._escaped(written), None)
                listed |= {place[2]: place for place in self._listed(found)}
        name = named_as(table, frozenset(listed))
        return listed.get(name)

    def _listed(self, found: Any) -> list[tuple[str | None, str | None, str]]:
        places = []
        while found.next():
            places.append((found.getString(1), found.getString(2), str(found.getString(3))))
        found.close()
        return places

    def _escaped(self, name: str) -> str:
        """A pattern that only this name matches."""
        escape = str(self._about().getSearchStringEscape() or "")
        for sign in dict.fromkeys((escape, "%", "_")):
            name = name.replace(sign, escape + sign) if sign else name
        return name

    def _qualified(self, place: tuple[str | None, str | None, str]) -> str:
        catalog, schema, table = place
        in_front = schema or (None if self._about().supportsSchemasInDataManipulation() else catalog)
        return ".".join(self.dialect.quoted(each) for each in (in_front, table) if each)

    def _columns(self, qualified: str) -> list[Column]:
        statement = self._connection.createStatement()
        try:
            about = statement.executeQuery(f"SELECT * FROM {qualified} WHERE 1 = 0").getMetaData()
            return [
                column_of(
                    str(about.getColumnName(at)),
                    int(about.getColumnType(at)),
                    str(about.getColumnTypeName(at)),
                    int(about.getPrecision(at)),
                    int(about.getScale(at)),
                    signed=bool(about.isSigned(at)),
                    own_texts=self.dialect.casts_own,
                )
                for at in range(1, about.getColumnCount() + 1)
            ]
        finally:
            statement.close()
            self._connection.rollback()

    def _primary_key(self, place: tuple[str | None, str | None, str]) -> list[str]:
        found = self._about().getPrimaryKeys(*place)
        columns = []
        while found.next():
            columns.append((int(found.getShort("KEY_SEQ")), str(found.getString("COLUMN_NAME"))))
        found.close()
        return [name for _, name in sorted(columns)]

    def _schema(self) -> str | None:
        found = self._connection.getSchema()
        return None if found is None else str(found)

    def _of_type(self, kind: str) -> Any:
        context = SparkContext._active_spark_context
        assert context is not None, "a worker has a session"
        kinds = context._gateway.new_array(self._jvm.java.lang.String, 1)  # type: ignore[union-attr]  # it runs
        kinds[0] = kind
        return kinds

    @property
    def _jvm(self) -> Any:
        context = SparkContext._active_spark_context
        assert context is not None, "a worker has a session"
        return context._jvm


def _said(thrown: Any) -> str:
    return " ".join(str(thrown.getMessage()).split())
