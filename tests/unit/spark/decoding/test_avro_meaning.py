"""Whether numbers of one schema may be taken for those of another."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.spark.decoding.avro_meaning import means_the_same


def _record(name: str, **fields: Any) -> dict[str, Any]:
    typed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": typed}


def _decimal(precision: int, scale: int | None = None) -> dict[str, Any]:
    found = {"type": "bytes", "logicalType": "decimal", "precision": precision}
    return found if scale is None else {**found, "scale": scale}


def _logical(logical: str, type_: str = "long") -> dict[str, Any]:
    return {"type": type_, "logicalType": logical}


def _money(scale: int) -> dict[str, Any]:
    return {
        "type": "fixed", "name": "Money", "namespace": "shop", "size": 8,
        "logicalType": "decimal", "precision": 18, "scale": scale,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "writer", "same"),
    [
        ("long", "int", True),
        (_decimal(12, 2), _decimal(10, 2), True),
        (_decimal(12, 4), _decimal(10, 2), False),
        (_decimal(12, 4), _decimal(12), False),
        (_decimal(12, 0), _decimal(12), True),
        (_logical("timestamp-micros"), _logical("timestamp-millis"), False),
        (_logical("timestamp-millis"), _logical("local-timestamp-millis"), True),
        (_logical("timestamp-millis"), _logical("local-timestamp-micros"), False),
        (_logical("time-micros"), _logical("time-millis", "int"), False),
        (_logical("timestamp-millis"), _logical("date", "int"), False),
        # One says nothing, or something that is no number's: then there is nothing to go wrong.
        (_logical("timestamp-micros"), "long", True),
        ("bytes", _decimal(10, 2), True),
        (_logical("uuid", "string"), _logical("email", "string"), True),
    ],
)
def test_one_value_at_every_depth(reader: Any, writer: Any, same: bool) -> None:
    assert means_the_same(reader, writer) is same
    for wrapped in (
        lambda type_: _record("R", a="int", b=type_),
        lambda type_: {"type": "array", "items": type_},
        lambda type_: {"type": "map", "values": ["null", type_]},
        lambda type_: ["null", _record("R", b={"type": "array", "items": _record("I", c=type_)})],
    ):
        assert means_the_same(wrapped(reader), wrapped(writer)) is same
    assert means_the_same(["null", reader], writer) is same
    assert means_the_same(reader, ["null", writer]) is same


def test_names_stand_for_their_types() -> None:
    old = {**_record("R", a=_money(2), b="shop.Money"), "namespace": "shop"}
    new = {**_record("R", b=_money(4), a="Money"), "namespace": "shop"}
    assert not means_the_same(new, old)
    assert means_the_same({**_record("R", b=_money(2)), "namespace": "shop"}, old)


def test_fields_go_by_their_names_and_those_they_had() -> None:
    old = _record("R", a=_decimal(10, 2), b=_decimal(10, 4))
    assert means_the_same(_record("R", b=_decimal(10, 4), c=_decimal(10, 1), a=_decimal(10, 2)), old)
    renamed = {"name": "z", "aliases": ["a"], "type": _decimal(10, 4)}
    assert not means_the_same({"type": "record", "name": "R", "fields": [renamed]}, old)


def test_a_choice_is_compared_with_what_avro_takes_for_it() -> None:
    both = [_logical("date", "int"), _logical("timestamp-millis")]
    assert means_the_same(both, both)
    assert means_the_same(both, _logical("date", "int"))
    assert not means_the_same(["null", _logical("timestamp-millis")], ["null", _logical("date", "int")])


def test_a_type_within_itself_ends() -> None:
    def tree(scale: int) -> dict[str, Any]:
        return _record("Tree", left=["null", "Tree"], price=_decimal(10, scale), right=["null", "Tree"])

    assert means_the_same(tree(2), tree(2))
    assert not means_the_same(tree(2), tree(3))
