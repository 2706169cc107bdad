"""Answers of a REST interface as plain data and flat paths, without what must differ between two workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.apache_connect import Answer
from tests.oracle.plain import Flat, Value

#: Prose, and what each worker has its own of. Whether it is there is compared.
_OWN: Final = frozenset(
    {
        "message",
        "trace",
        "documentation",
        "worker_id",
        "version",
        "commit",
        "kafka_cluster_id",
        "last_modified",
    }
)
#: The same connectors under the names of each worker's classes.
_CLASSES: Final = {
    "org.apache.kafka.connect.file.FileStreamSourceConnector": "FileStreamSource",
    "org.apache.kafka.connect.file.FileStreamSinkConnector": "FileStreamSink",
    "headrace.spark.connect.connectors.file_source.FileSource": "FileStreamSource",
    "headrace.spark.connect.connectors.file_sink.FileSink": "FileStreamSink",
}
#: The plugins that are installed; and what the answer to /connector-plugins/P/config has too.
_LEFT_OUT: Final = frozenset({"recommended_values", "definition"})
_NAMES: Final = ("name", "class", "id")


def plain(answer: Answer, directory: Path) -> dict[str, Any]:
    kept: dict[str, Any] = {"status": answer.status}
    if "location" in answer.headers:
        kept["location"] = urlsplit(answer.headers["location"]).path
    kept["body"] = _plain(answer.body, "body", str(directory))
    return kept


def _plain(value: Any, field: str, directory: str) -> Any:
    if field in _OWN and value is not None:
        return f"<{field}>"
    if isinstance(value, Mapping):
        return {
            name: _plain(inner, name, directory) for name, inner in value.items() if name not in _LEFT_OUT
        }
    if isinstance(value, list):
        if field == "errors":
            return f"<{len(value)}>"
        elements = [_plain(element, "", directory) for element in value]
        # No list that a worker answers has an order that means something.
        return sorted(elements, key=_name)
    if isinstance(value, str):
        text = value.replace(directory, "<directory>")
        return _CLASSES.get(text, text)
    return value


def flatten(kept: Mapping[str, Any]) -> Flat:
    return {path: value for name, inner in kept.items() for path, value in _walk(inner, name)}


def _walk(value: Any, path: str) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping):
        yield f"{path}.#", len(value)
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.#", len(value)
        for element in value:
            yield from _walk(element, f"{path}[{_name(element)}]")
    else:
        assert value is None or isinstance(value, str | int | float | bool), value
        yield path, value


def _name(element: Any) -> str:
    if isinstance(element, Mapping):
        for name in _NAMES:
            if isinstance(found := element.get(name), str | int):
                return str(found)
        for inner in element.values():
            if isinstance(inner, Mapping):
                return _name(inner)
    return str(element)
