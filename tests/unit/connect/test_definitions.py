"""What a worker answers when somebody asks whether a configuration is right."""

from __future__ import annotations

from typing import Any

from headrace.connect.definitions import validated
from headrace.connect.plugins import described
from headrace.spark.connect.connectors.file_source import FileSource

RIGHT = {"name": "n", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}


def _values(**changed: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """How many errors, and what is said of each setting."""
    given = {**RIGHT, **{name.replace("_", "."): value for name, value in changed.items()}}
    found = validated(described(FileSource, "file-source"), given)
    return found["error_count"], {each["value"]["name"]: each["value"] for each in found["configs"]}


def test_what_is_right_is_shown_as_it_was_given() -> None:
    errors, values = _values(tasks_max="3")
    assert errors == 0
    assert values["tasks.max"]["value"] == "3"
    assert values["topic"]["value"] == "t"


def test_a_number_out_of_bounds_is_shown_and_what_is_no_number_is_not() -> None:
    errors, values = _values(tasks_max="0")
    assert (errors, values["tasks.max"]["value"]) == (1, "0")
    errors, values = _values(tasks_max="many")
    assert (errors, values["tasks.max"]["value"]) == (2, None)


def test_a_topic_needs_a_name() -> None:
    errors, values = _values(topic="")
    assert errors == 1
    assert values["topic"]["errors"] == ["Invalid value  for configuration topic: String must be non-empty"]
