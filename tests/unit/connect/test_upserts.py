"""What a batch of records comes to in a table."""

from __future__ import annotations

import pytest

from headrace.connect.api import GiveUp
from headrace.connect.postgres.target import table_name
from headrace.connect.upserts import BadRow, Change, change_of, outcome, text

_COLUMNS = ("id", "v", "doc")


def test_rows_and_envelopes() -> None:
    row = Change(("1",), {"id": "1", "v": "a"})
    assert change_of(b'{"id": 1}', b'{"id": 1, "v": "a"}', ["id"], _COLUMNS) == row
    assert change_of(b"1", b'{"v": "a"}', ["id"], _COLUMNS) == row
    assert change_of(None, {"id": 1, "v": "a", "__op": "u"}, ["id"], _COLUMNS) == row
    assert change_of(b'{"id": 1}', b'{"op": "u", "after": {"id": 1, "v": "a"}}', ["id"], _COLUMNS) == row
    assert change_of(b'{"id": 1}', b'{"op": "d", "before": null}', ["id"], _COLUMNS) == Change(("1",), None)
    assert change_of(b'{"id": 1}', None, ["id"], _COLUMNS) == Change(("1",), None)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b'{"id": 1}', b"x", "the value is no JSON"),
        (b'{"id": 1}', b"[1]", "the value is no JSON object"),
        (None, b'{"v": 1}', "neither the record's key nor its value has id"),
        (b"1", b"[" * 100_000, "the value is no JSON"),
        (b"1", b'{"v": "\\ud800"}', "v has half a surrogate pair"),
        (b'"\\ud800"', b"{}", "id has half a surrogate pair"),
        (b'{"id": 1}', b'{"id": 1, "other": 2}', "the table has no column other"),
    ],
)
def test_what_is_no_row(key: bytes | None, value: bytes, reason: str) -> None:
    with pytest.raises(BadRow, match=reason):
        change_of(key, value, ["id"], _COLUMNS)


def test_numbers_keep_their_digits() -> None:
    """Floats would round them, and make those infinite that are too large."""
    value = b'{"v": 12345678901234567.891, "doc": {"a": [1e400, -0.10, 2, "x"], "b": null}}'
    found = change_of(b"1.50", value, ["id"], _COLUMNS)
    assert found.key == ("1.50",)
    assert found.row == {
        "id": "1.50",
        "v": "12345678901234567.891",
        "doc": '{"a":[1e400,-0.10,2,"x"],"b":null}',
    }


def test_a_column_of_the_table_may_begin_as_what_a_source_adds() -> None:
    value = b'{"v": "a", "__op": "u", "__lsn": "0/1"}'
    assert change_of(b"1", value, ["id"], [*_COLUMNS, "__op"]).row == {"id": "1", "v": "a", "__op": "u"}


def test_the_last_state_of_a_key_counts() -> None:
    one, two, three = ("1",), ("2",), ("3",)
    found = outcome(
        [
            Change(one, {"id": "1", "v": "a", "doc": "long"}),
            Change(one, {"id": "1", "v": "b"}),
            Change(two, {"id": "2", "v": "a", "doc": "gone"}),
            Change(two, None),
            Change(two, {"id": "2", "v": "c"}),
            Change(three, {"id": "3"}),
            Change(three, None),
        ]
    )
    assert found.rows == {one: {"id": "1", "v": "b", "doc": "long"}, two: {"id": "2", "v": "c"}}
    assert found.replaced == {two}, "what it had before is not kept"
    assert found.deleted == {three}


def test_values_as_postgres_reads_them() -> None:
    values = [None, "x", True, 1, 0.1, 1e300, {"a": [1]}]
    assert [text(each) for each in values] == [None, "x", "true", "1", "0.1", "1e+300", '{"a":[1]}']


def test_names_of_tables() -> None:
    assert table_name("${topic}", "orders") == "public.orders"
    assert table_name("${table}", "shop.public.orders") == "public.orders"
    assert table_name("copy.${topic}", "orders") == "copy.orders"
    with pytest.raises(GiveUp, match=r"table\.name\.format"):
        table_name("${topic}", "shop.public.orders")
