"""Between values and bytes, as Kafka Connect's converters do it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.connect.converters import Converter, Unconvertible, converter_of
from headrace.connect.settings import BadSetting

JSON = "org.apache.kafka.connect.json.JsonConverter"


def _of(name: str, **more: str) -> Converter:
    given = {"value.converter": name} | {
        f"value.converter.{key.replace('_', '.')}": v for key, v in more.items()
    }
    return converter_of(given, "value.converter")


@pytest.mark.parametrize("value", [None, b"bytes", "text", {"a": 1}])
def test_without_a_converter_nothing_is_added(value: Any) -> None:
    expected = {None: None, b"bytes": b"bytes", "text": b"text"}.get(
        value if not isinstance(value, dict) else "", b'{"a":1}'
    )
    assert Converter().to_bytes(value) == expected
    assert Converter().from_bytes(b"\xff") == b"\xff"


def test_json_has_the_envelope_unless_it_is_refused() -> None:
    whole, plain = _of(JSON), _of(JSON, schemas_enable="false")
    assert json.loads(whole.to_bytes("a") or b"") == {
        "schema": {"type": "string", "optional": False}, "payload": "a",
    }  # fmt: skip
    assert plain.to_bytes({"a": [1]}) == b'{"a":[1]}'
    for each in (whole, plain):
        value = {"a": 1, "b": [True, None], "c": 0.5, "d": None}
        assert each.from_bytes(each.to_bytes(value)) == value
        assert each.to_bytes(None) is None
        assert each.from_bytes(None) is None


def test_structs_tell_their_fields() -> None:
    document = json.loads(_of("JsonConverter").to_bytes({"id": 1, "at": None}) or b"")
    assert document["schema"] == {
        "type": "struct",
        "fields": [
            {"type": "int64", "optional": True, "field": "id"},
            {"type": "string", "optional": True, "field": "at"},
        ],
        "optional": False,
    }


@pytest.mark.parametrize(
    ("converter", "data"), [(_of(JSON), b'{"a":1}'), (_of(JSON), b"{"), (_of("StringConverter"), b"\xff")]
)
def test_what_is_of_another_form_is_refused(converter: Converter, data: bytes) -> None:
    with pytest.raises(Unconvertible):
        converter.from_bytes(data)


def test_strings_and_bytes() -> None:
    assert _of("StringConverter").to_bytes(5) == b"5"
    assert _of("StringConverter").from_bytes("ö".encode()) == "ö"
    assert _of("ByteArrayConverter").to_bytes(b"a") == b"a"
    with pytest.raises(Unconvertible):
        _of("ByteArrayConverter").to_bytes("a")


def test_others_are_refused() -> None:
    with pytest.raises(BadSetting, match="AvroConverter"):
        _of("io.confluent.connect.avro.AvroConverter")
