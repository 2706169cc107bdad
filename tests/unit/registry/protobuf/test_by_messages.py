"""What counts as compatible keeps what was written: schemas and messages are drawn, protobuf itself reads."""

from __future__ import annotations

from typing import Any

from google.protobuf import message_factory
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from headrace.registry.protobuf.schema import ProtobufSchema

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(1, 100) for name in ("int32", "int64", "uint32", "uint64", "sint32", "sint64")},
    **{name: st.integers(1, 100) for name in ("fixed32", "fixed64", "sfixed32", "sfixed64")},
    "bool": st.just(True),
    "float": st.sampled_from((0.5, 2.0)),
    "double": st.sampled_from((0.25, 4.0)),
    "string": st.sampled_from(("a", "xyz")),
    "bytes": st.sampled_from((b"b", b"ab")),
    "E": st.integers(1, 2),
}
_LABELS = ("", "optional ", "repeated ")
#: number: (label, type, name of its oneof)
Fields = dict[int, tuple[str, str, str | None]]


@st.composite
def _field(draw: st.DrawFn) -> tuple[str, str, str | None]:
    kind = draw(st.sampled_from((*_VALUES, "I")))
    oneof = draw(st.sampled_from((None, None, None, "o", "p")))
    return ("" if oneof else draw(st.sampled_from(_LABELS)), kind, oneof)


_FIELDS = st.dictionaries(st.integers(1, 6), _field(), min_size=1, max_size=5)


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Fields, Fields]:
    old = draw(_FIELDS)
    new = dict(old)
    for number in old:
        change = draw(st.integers(0, 7))
        label, kind, oneof = old[number]
        if change == 0:
            del new[number]
        elif change == 1:
            new[number] = draw(_field())
        elif change == 2:
            new[number] = ("", kind, draw(st.sampled_from((None, "o", "p"))))
        elif change == 3 and kind != "I":
            new[number] = (label, draw(st.sampled_from(sorted(_VALUES))), oneof)
    if draw(st.booleans()):
        new[7] = draw(_field())
    return old, new


def _text(fields: Fields) -> str:
    lines = [
        'syntax = "proto3";',
        "enum E { Z = 0; X = 1; Y = 2; }",
        "message I { int32 x = 1; }",
        "message M {",
    ]
    for number, (label, kind, oneof) in fields.items():
        if oneof is None:
            lines.append(f"{label}{kind} f{number} = {number};")
    for name in ("o", "p"):
        members = [(number, kind) for number, (_, kind, oneof) in fields.items() if oneof == name]
        if members:
            lines.append(f"oneof {name} {{ {' '.join(f'{kind} f{n} = {n};' for n, kind in members)} }}")
    return "\n".join([*lines, "}"])


def _parsed(fields: Fields) -> ProtobufSchema:
    return ProtobufSchema.parse(_text(fields), {})


def _class(schema: ProtobufSchema) -> Any:
    return message_factory.GetMessageClass(schema.descriptor.message_types_by_name["M"])


def _fill(message: Any, fields: Fields, data: st.DataObject) -> None:
    for number, (label, kind, _) in fields.items():
        name = f"f{number}"
        if not data.draw(st.booleans()):
            continue
        if kind == "I":
            target = getattr(message, name).add() if label == "repeated " else getattr(message, name)
            target.x = 5
        elif label == "repeated ":
            getattr(message, name).append(data.draw(_VALUES[kind]))
        else:
            setattr(message, name, data.draw(_VALUES[kind]))


@given(pair=_pairs(), data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_compatible_keeps_what_was_written(pair: tuple[Fields, Fields], data: st.DataObject) -> None:
    old, new = pair
    writer, reader = _parsed(old), _parsed(new)
    if reader.cannot_read(writer):
        event("incompatible")
        return
    event("compatible")
    written = _class(writer)()
    _fill(written, old, data)
    read = _class(reader).FromString(written.SerializeToString())
    kept = {field.number: value for field, value in read.ListFields()}
    for field, value in written.ListFields():
        declared = new.get(field.number)
        if declared is not None and declared[:2] == old[field.number][:2]:
            assert field.number in kept, (_text(old), _text(new), field.number)
            if declared[1] != "I":
                assert kept[field.number] == value


@given(fields=_FIELDS)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_spelling_is_the_same_schema(fields: Fields) -> None:
    schema = _parsed(fields)
    for text in (schema.normalized, schema.formatted("serialized")):
        again = ProtobufSchema.parse(text, {})
        assert not schema.cannot_read(again)
        assert again.identity == schema.identity
    assert ProtobufSchema.parse(schema.formatted("serialized"), {}).text.startswith('syntax = "proto3"')
