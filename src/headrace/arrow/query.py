"""SQL over topics, by DuckDB. A topic is a table, of which only what a query names is decoded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from tempfile import TemporaryDirectory
from typing import Any, Final

from headrace.client.errors import ClientFailure

try:
    import duckdb
except ModuleNotFoundError as error:
    raise ClientFailure(
        f"{error.name} is not installed", "`pip install 'headrace[query]'` brings it"
    ) from None

from headrace.arrow.schema import SCHEMA
from headrace.arrow.topic import Topic

_ROWS: Final = 10_000
"""Of a result that are in Python's memory at once."""


class _Table:
    """What DuckDB scans. It keeps the error of a reader, of which DuckDB makes a text."""

    def __init__(self, topic: Topic, on_read: Callable[[int], None]) -> None:
        self._topic = topic
        self._on_read = on_read
        self.failure: Exception | None = None

    def __arrow_c_schema__(self) -> Any:
        return self._topic.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._topic.reader_of(self._watched).__arrow_c_stream__(requested_schema)

    def _watched(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                yield batch
                self._on_read(batch.num_rows)
        except Exception as error:
            self.failure = error
            raise


class Result:
    def __init__(self, columns: list[str], batches: Iterable[Any]) -> None:
        self.columns = columns
        self.batches = batches
        """RecordBatches, which are made as they are taken."""


class Database:
    """In memory, with a directory for what does not fit."""

    def __init__(
        self, memory: str, open_topic: Callable[[str], Topic], on_read: Callable[[int], None]
    ) -> None:
        self._open_topic = open_topic
        self._on_read = on_read
        self._tables: list[_Table] = []
        self._spilled = TemporaryDirectory(prefix="headrace-query-")
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        try:
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute("SET preserve_insertion_order = false")
            self._connection.execute(f"SET temp_directory = {_quoted(self._spilled.name)}")
            self._connection.execute(f"SET memory_limit = {_quoted(memory)}")
        except duckdb.Error as error:
            self.close()
            raise ClientFailure(
                f"--memory {memory}: {_first_line(error)}", "write it as 500MB or 2GB"
            ) from None

    def close(self) -> None:
        self._connection.close()
        self._spilled.cleanup()

    def run(self, sql: str) -> Result:
        """ClientFailure, or what a reader of a topic has raised."""
        self._tables = []
        try:
            names = self._topics_in(sql)
            for name in names:
                self._connection.register(name, SCHEMA.empty_table())
            columns = self._planned(sql)
            for name in names:
                self._connection.unregister(name)
                table = _Table(self._open_topic(name).select(columns), self._on_read)
                self._tables.append(table)
                self._connection.register(name, table)
            relation = self._connection.sql(sql)
            return Result(list(relation.columns), self._guarded(relation.to_arrow_reader(_ROWS)))
        except duckdb.Error as error:
            raise self._meaning(error) from None

    def _topics_in(self, sql: str) -> list[str]:
        """Tables that are neither part of the query itself nor files nor in a schema of DuckDB."""
        answer = self._connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
        parsed = json.loads(answer[0][0])
        if parsed.get("error"):
            hint = "a query is one SELECT" if parsed.get("error_type") == "not implemented" else ""
            raise ClientFailure(f"the query cannot be read: {parsed.get('error_message')}", hint)
        if len(parsed.get("statements", ())) != 1:
            raise ClientFailure("a query is one SELECT", "run them one after the other")
        own = {each["key"] for found in _all(parsed, "cte_map") for each in found.get("map", ())}
        tables = [each for each in _nodes(parsed) if each.get("type") == "BASE_TABLE"]
        names = {each["table_name"] for each in tables if not each.get("schema_name")} - own
        return sorted(name for name in names if not os.path.exists(name) and not set(name) & set("/*"))

    def _planned(self, sql: str) -> list[str]:
        """The columns that a query takes of topics, by DuckDB's own plan over empty ones."""
        answer = self._connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
        plan = json.loads(answer[0][1])
        taken = set(_projections(plan))
        return [name for name in SCHEMA.names if name in taken] or ["partition"]

    def _guarded(self, reader: Any) -> Iterator[Any]:
        try:
            yield from reader
        except (duckdb.Error, OSError) as error:
            raise self._meaning(error) from None

    def _meaning(self, error: Exception) -> Exception:
        for table in self._tables:
            if table.failure is not None:
                return table.failure
        return ClientFailure(f"the query failed: {_first_line(error)}", _hint(error))


def _projections(plan: Any) -> Iterator[str]:
    """The columns of all scans of Arrow's tables, whichever topic they are of."""
    for node in plan:
        info = node.get("extra_info", {})
        if "ARROW_SCAN" in node.get("name", ""):
            named = info.get("Projections", list(SCHEMA.names))
            yield from [named] if isinstance(named, str) else named
        yield from _projections(node.get("children", []))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _nodes(each)


def _all(document: Any, name: str) -> Iterator[Any]:
    return (each[name] for each in _nodes(document) if name in each)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _hint(error: Exception) -> str:
    if isinstance(error, duckdb.OutOfMemoryException):
        return "give it more with --memory, or ask for less at once"
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return f"a topic has the columns {', '.join(SCHEMA.names)}; `decode(value)` makes text of bytes"
    return ""
