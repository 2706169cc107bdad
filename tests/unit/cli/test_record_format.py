from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from headrace.cli.record_format import compile_format, unescape
from headrace.cli.record_lines import ByteSource, record_maker, split_records
from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord, Record

RECORD = Record(42, 1700, b"key", b"value", (("a", b"1"), ("b", None)))
EMPTY = Record(43, 1701, None, None)
PLACE = TopicPartition("topic", 3)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("%s\\n", b"value\n"),
        ("%t/%p@%o %T %k=%s %h", b"topic/3@42 1700 key=value a=1,b=NULL"),
        ("%K:%S", b"3:5"),
        ("100%% \\x41\\t\\\\\\0", b"100% A\t\\\0"),
        ("", b""),
        ("é", "é".encode()),
    ],
)
def test_formats(template: str, text: bytes) -> None:
    assert compile_format(template)(PLACE, RECORD) == text


def test_nulls_have_length_minus_one() -> None:
    assert compile_format("[%k|%s|%K|%S|%h]")(PLACE, EMPTY) == b"[||-1|-1|]"


@pytest.mark.parametrize("template", ["%", "%z", "abc%"])
def test_unknown_fields(template: str) -> None:
    with pytest.raises(ClientFailure, match="is not a field"):
        compile_format(template)


def test_escapes() -> None:
    assert unescape("a\\tb\\x00\\q") == b"a\tb\x00q"


class Chunks:
    """A pipe that gives what it has, in pieces of its own choosing."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def read1(self, size: int, /) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def cut(source: ByteSource, delimiter: bytes) -> list[bytes]:
    return [line for lines in split_records(source, delimiter) for line in lines]


def test_records_are_cut_across_chunks() -> None:
    assert cut(Chunks(b"a\nb", b"c\n", b"\n", b"d"), b"\n") == [b"a", b"bc", b"", b"d"]
    assert cut(Chunks(b"a|", b"|b||"), b"||") == [b"a", b"b"]
    assert cut(io.BytesIO(b""), b"\n") == []


def test_a_line_comes_as_soon_as_it_is_read() -> None:
    assert next(split_records(Chunks(b"a\nb\nc", b"never"), b"\n")) == [b"a", b"b"]


def maker(**options: object) -> Callable[[bytes], NewRecord]:
    settings = {"key_delimiter": None, "empty_as_null": False, "headers": (), "now_ms": lambda: 5, **options}
    return record_maker(**settings)  # type: ignore[arg-type]  # built from keywords


def test_lines_become_records() -> None:
    assert maker()(b"k:v") == NewRecord(b"k:v", None, 5)
    keyed = maker(key_delimiter=b":", headers=(("h", b"1"),))
    assert keyed(b"k:v:w") == NewRecord(b"v:w", b"k", 5, (("h", b"1"),))
    assert keyed(b"no key") == NewRecord(b"no key", None, 5, (("h", b"1"),))
    assert keyed(b":") == NewRecord(b"", b"", 5, (("h", b"1"),))


def test_all_records_may_have_one_key() -> None:
    assert maker(key=b"k")(b"a:b") == NewRecord(b"a:b", b"k", 5)


def test_empty_values_may_be_null() -> None:
    nulls = maker(key_delimiter=b":", empty_as_null=True)
    assert nulls(b"gone:") == NewRecord(None, b"gone", 5)
    assert nulls(b":v") == NewRecord(b"v", None, 5)
    assert nulls(b"") == NewRecord(None, None, 5)
