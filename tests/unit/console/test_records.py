"""Strangers' bytes as text, filters that end soon, and searches that stand in an address."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console.records.filters import MOST_BYTES, Filter, FilterRefused, TooLarge
from headrace.console.records.search import (
    Refused,
    moment_in,
    newest_positions,
    offset_in,
    positions,
    wanted,
    written,
)
from headrace.console.records.texts import IN_A_LIST, pretty, row, text_of
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record

ORDER = Record(7, 1_760_000_000_000, b"eu-1", b'{"amount": 120, "lines": [1, 2]}', (("trace", b"x"),))


def takes(text: str, record: Record = ORDER) -> bool:
    return Filter(text).takes("orders", 3, record)


@pytest.mark.parametrize(
    "text",
    [
        "value.amount > 100",
        'key.startsWith("eu-") && partition == 3',
        "offset == 7 && timestamp == 1760000000000",
        'headers["trace"] == "x" && has(value.amount)',
        "value.lines.exists(line, line == 2)",
        "size(value.lines) == 2 || topic != 'orders'",
    ],
)
def test_a_filter_takes(text: str) -> None:
    assert takes(text)


@pytest.mark.parametrize(
    "value",
    [
        r'{"amount": 120, "note": "\ud800"}',
        r'{"amount": 120, "\udc00": 1}',
        r'{"amount": 120, "note": "\ud83d\ude00 \ud83d\\ \\ud800 \uDBFFx"}',
        r'{"amount": 120, "note": "\\\ud800\ud800\udc00"}',
        r'{"amount": 120, "note": NaN, "long": 100000000000000000000000}',
        '\ufeff{"amount": 120}',
    ],
)
def test_no_record_hides_from_a_filter(value: str) -> None:
    record = Record(7, 0, b"\xff", value.encode(), (("\udcff", b"\xff"), ("trace", None)))
    assert takes("value.amount == 120", record)
    assert takes("offset == 7", record)


@pytest.mark.parametrize("more", ["[" * 100 + "]" * 100, "[" * 9000 + "]" * 9000, "9" * 5000])
def test_what_is_not_taken_apart_is_counted(more: str) -> None:
    """Otherwise it could hide, and nobody would be told that something was left out."""
    record = Record(7, 0, None, f'{{"amount": 120, "more": {more}}}'.encode(), ())
    with pytest.raises(TooLarge):
        takes("value.amount == 120", record)


def test_text_that_only_begins_like_json_is_text() -> None:
    assert takes("value.contains('began')", Record(7, 0, None, b"[INFO] began", ()))


@pytest.mark.parametrize(
    "text", ["value.amount > 200", "value.nothing == 1", "1/0 == 1", "value + 1 == 2", "offset"]
)
def test_a_filter_does_not_take(text: str) -> None:
    assert not takes(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(((", "Syntax error"),
        ("nothing == 1", "nothing is not known"),
        ("value.matches('(a{1000}){100}')", "matches cannot be used"),
        ("value.lines.map(a, value.lines.map(key, key)) == []", "more than once"),
        ("x" * 501, "longer than 500"),
        ("value.lines // \n .map(a, a) == []", "line break"),
        ("timestamp('2020-01-01T00:00:00Z') == 1", "cannot be used"),
        ("__import__('os') == 1", "cannot be used"),
        ("value.lines.sortBy(a, a) == []", "is not known"),
    ],
)
def test_a_filter_that_could_take_long_or_do_more_is_refused(text: str, why: str) -> None:
    with pytest.raises(FilterRefused, match=why):
        Filter(text)


def test_json_that_is_nested_without_end_stays_text() -> None:
    """Whoever takes it apart needs a stack as deep: the process would end."""
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(TooLarge):
        takes("value == 1", ORDER._replace(value=deep))
    assert takes("size(value) == 130", ORDER._replace(value=b"[" * 65 + b"]" * 65))
    assert text_of(deep, 10).text == "[" * 10


def test_a_value_that_is_too_large_is_said_to_be() -> None:
    with pytest.raises(TooLarge):
        takes("true", ORDER._replace(value=b"x" * (MOST_BYTES + 1)))


def test_bytes_as_text() -> None:
    assert text_of(None, 10).kind == "null"
    assert text_of(b"", 10).kind == "empty"
    assert text_of(b"\xff\xfeabc", 10) == ("bytes", "\\xff\\xfeabc", 5, 5, None)
    assert text_of("äöü".encode(), 3) == ("text", "ä", 6, 2, None), "the cut went through a character"
    assert text_of(b"\x00\x00\x00\x00\x05rest", 100).schema_id == 5
    long = text_of(b"x" * 1_000_000, IN_A_LIST)
    assert long.is_cut
    assert (len(long.text), long.whole_bytes) == (IN_A_LIST, 1_000_000)


@given(st.binary(max_size=300), st.integers(1, 300))
def test_any_bytes_can_be_shown(data: bytes, most: int) -> None:
    text = text_of(data, most)
    assert text.whole_bytes == len(data)
    assert text.shown_bytes <= most
    text.text.encode()
    json.dumps(pretty(text))


def test_a_row_has_bounds() -> None:
    record = ORDER._replace(headers=tuple((f"h{at}", b"x" * 9000) for at in range(100)))
    made = row(3, record)
    assert (len(made.headers), made.more_headers) == (20, 80)
    assert len(made.headers[0].value.text) == IN_A_LIST


def test_json_is_shown_line_by_line() -> None:
    assert pretty(text_of(ORDER.value, 1000)).splitlines()[1] == '  "amount": 120,'
    assert pretty(text_of(b"{broken", 1000)) == "{broken"


def _nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner) | st.dictionaries(st.text(), inner)


@pytest.mark.parametrize(
    "written", ['{"a": 1e999}', '{"a": 1, "a": 2}', '{"a": 1.10, "b": 12345678901234567890.123}', '"\\u202e"']
)
def test_a_record_is_laid_out_and_not_written_anew(written: str) -> None:
    """By itself it had `Infinity`, other digits, and one of two members of a name."""
    shown = pretty(text_of(f"[{written}]".encode(), 1000))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", f"[{written}]")


@given(
    st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), _nested, max_leaves=9)
)
def test_layout_is_that_of_json(value: object) -> None:
    text = json.dumps([value])
    assert pretty(text_of(text.encode(), 10_000)) == json.dumps([value], indent=2)


def test_a_search_stands_in_its_address() -> None:
    places = {TopicPartition("orders", 0): 12, TopicPartition("orders", 3): 9}
    assert written(places) == "0:12,3:9"
    assert positions("0:12,3:9") == {0: 12, 3: 9}
    assert positions("x,1:,:2,-1:4," + "9" * 50 + ":1") == {}
    asked = wanted({"filter": "offset > 1", "after": "0:12", "done": "5", "whole": "x", "from": "nowhere"})
    assert (asked.after, asked.done, asked.whole, asked.begin, asked.is_search) == (
        {0: 12},
        5,
        0,
        "newest",
        True,
    )


def test_offsets_and_moments_as_people_write_them() -> None:
    assert offset_in("12") == 12
    assert moment_in("2025-10-09T08:53:20") == moment_in("2025-10-09T10:53:20+02:00") == 1_760_000_000_000
    assert moment_in("1760000000000") == 1_760_000_000_000
    for bad in ("", "x", "-1", "9" * 40):
        with pytest.raises(Refused):
            offset_in(bad)
        with pytest.raises(Refused):
            moment_in(bad)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8), st.integers(1, 40))
def test_the_newest_are_enough_and_not_many_more(bounds: list[tuple[int, int]], records: int) -> None:
    ends = {TopicPartition("t", at): (first, first + length) for at, (first, length) in enumerate(bounds)}
    found = newest_positions(ends, records)
    told = sum(ends[place][1] - offset for place, offset in found.items())
    there = sum(end - first for first, end in ends.values())
    assert min(records, there) <= told <= records + len(ends)
    assert all(ends[place][0] <= offset < ends[place][1] for place, offset in found.items())
