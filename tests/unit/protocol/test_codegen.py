"""The generator, on definitions small enough to read. That the committed modules are what it makes from
Kafka's own is proved by `python -m codegen --check`, which needs Maven."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from codegen import jars
from codegen.api_keys import parse_api, write_api_keys
from codegen.definitions import read_jar
from codegen.model import parse_message, snake_case
from codegen.python_writer import write_module
from codegen.versions import NONE, OPEN, Versions

from headrace.protocol.message import Message

DEFINITION: dict[str, Any] = {
    "apiKey": 99,
    "type": "request",
    "name": "ToyRequest",
    "validVersions": "1-4",
    "flexibleVersions": "3+",
    "fields": [
        {"name": "Gone", "type": "int32", "versions": "0"},
        {"name": "Count", "type": "int32", "versions": "1+", "default": "0x10"},
        {"name": "Class", "type": "int16", "versions": "1+", "about": "Prose stays where it is."},
        {"name": "Late", "type": "string", "versions": "2+", "nullableVersions": "4+"},
        {"name": "Items", "type": "[]Item", "versions": "1+", "fields": [
            {"name": "Key", "type": "int64", "versions": "1+", "mapKey": True},
            {"name": "Ids", "type": "[]uuid", "versions": "2+", "ignorable": True},
        ]},
        {"name": "Hint", "type": "int8", "taggedVersions": "4+", "tag": 1, "default": -1},
    ],
}  # fmt: skip


def load(definition: dict[str, Any]) -> type[Any]:
    text = write_module(parse_message(definition))
    namespace: dict[str, Any] = {"__name__": "toy"}
    exec(compile(text, "toy", "exec"), namespace)  # our own generator's output
    found: type[Any] = namespace[definition["name"]]
    assert issubclass(found, Message)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", (3, 3)), ("0-4", (0, 4)), ("2+", (2, OPEN)), ("none", NONE), (" 1 - 2 ", (1, 2))],
)
def test_versions_are_read(text: str, expected: tuple[int, int]) -> None:
    assert Versions.parse(text) == expected


@pytest.mark.parametrize(
    ("versions", "within", "condition"),
    [
        ("0+", "1-4", ""),
        ("2+", "1-4", "version >= 2"),
        ("0-2", "1-4", "version <= 2"),
        ("2-3", "1-4", "2 <= version <= 3"),
        ("2", "1-4", "version == 2"),
    ],
)
def test_conditions_are_as_short_as_they_can_be(versions: str, within: str, condition: str) -> None:
    assert Versions.parse(versions).condition(Versions.parse(within)) == condition


@pytest.mark.parametrize(
    ("name", "snake"),
    [("TopicId", "topic_id"), ("throttleTimeMs", "throttle_time_ms"), ("KRaftVersion", "kraft_version")],
)
def test_names(name: str, snake: str) -> None:
    assert snake_case(name) == snake


def test_the_module_of_a_message() -> None:
    toy = load(DEFINITION)
    assert (toy.API_KEY, toy.MIN_VERSION, toy.MAX_VERSION, toy.FIRST_FLEXIBLE) == (99, 1, 4, 3)
    assert toy.__slots__ == ("count", "class_", "late", "items", "hint")
    assert toy().count == 16
    assert toy().hint == -1


def test_bytes_of_each_version() -> None:
    toy = load(DEFINITION)
    message = toy(count=1, class_=2)
    assert message.to_bytes(1).hex() == "00000001" + "0002" + "00000000"
    assert message.to_bytes(2).hex() == "00000001" + "0002" + "0000" + "00000000"
    assert message.to_bytes(3).hex() == "00000001" + "0002" + "01" + "01" + "00"
    message.hint = 5
    assert message.to_bytes(4).hex() == "00000001" + "0002" + "01" + "01" + "01" + "01" + "01" + "05"
    for version in (1, 3):
        with pytest.raises(ValueError, match="hint"):
            message.to_bytes(version)
    message.hint, message.late = -1, None
    assert message.to_bytes(4).hex() == "00000001" + "0002" + "00" + "01" + "00"
    with pytest.raises(ValueError, match="null"):
        message.to_bytes(3)


def test_the_least_size_of_an_element_depends_on_the_version() -> None:
    text = write_module(parse_message(DEFINITION))
    # int64; with an array of four or one bytes; with the tags of a flexible version.
    assert "reader.compact_array_length(10) if version >= 3 else reader.array_length(8)" in text


def test_prose_is_not_copied() -> None:
    assert "Prose" not in write_module(parse_message(DEFINITION))


def test_a_common_structure_has_the_versions_of_all_its_places() -> None:
    definition = {
        **DEFINITION,
        "fields": [
            {"name": "Old", "type": "[]Pair", "versions": "1-2"},
            {"name": "New", "type": "[]Pair", "versions": "3+"},
        ],
        "commonStructs": [
            {"name": "Pair", "versions": "1+", "fields": [
                {"name": "Left", "type": "int8", "versions": "1+"},
                {"name": "Right", "type": "int8", "versions": "4+"},
            ]},
        ],
    }  # fmt: skip
    message = parse_message(definition)
    assert message.structures["Pair"].versions == (1, 4)
    assert "if version >= 4:" in write_module(message)


def test_a_jar_is_read_with_its_comments(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "toy.jar", "w") as jar:
        jar.writestr("common/message/ToyRequest.json", "// comment\n" + json.dumps(DEFINITION, indent=1))
        dead = {**DEFINITION, "name": "DeadRequest", "apiKey": 98, "validVersions": "none"}
        jar.writestr("common/message/DeadRequest.json", json.dumps(dead))
        jar.writestr("elsewhere/Other.json", "{}")
    definitions = read_jar(tmp_path / "toy.jar")
    assert [message.name for message in definitions.messages] == ["ToyRequest"]
    assert [(api.key, api.name) for api in definitions.apis] == [(98, "DEAD"), (99, "TOY")]


def test_the_table_of_api_keys() -> None:
    namespace: dict[str, Any] = {"__name__": "toy"}
    classic = {**DEFINITION, "name": "OldRequest", "apiKey": 1, "flexibleVersions": "none"}
    text = write_api_keys([parse_api(classic), parse_api(DEFINITION)], "")
    exec(compile(text, "toy", "exec"), namespace)  # our own generator's output
    assert {each.name: int(each) for each in namespace["ApiKey"]} == {"OLD": 1, "TOY": 99}
    assert namespace["FIRST_FLEXIBLE"] == {99: 3}


def test_a_jar_with_other_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *arguments, **options: None)
    monkeypatch.setattr(jars, "STORED_JARS", {})
    monkeypatch.setattr(jars, "WIRE_JARS", {"toy.jar": hashlib.sha256(b"toy").hexdigest()})
    with pytest.raises(jars.BadJar, match="was not fetched"):
        jars.fetch(tmp_path)
    (tmp_path / "toy.jar").write_bytes(b"forged")
    with pytest.raises(jars.BadJar, match="has the checksum"):
        jars.fetch(tmp_path)
    (tmp_path / "toy.jar").write_bytes(b"toy")
    jars.fetch(tmp_path)
