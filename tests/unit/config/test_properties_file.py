from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.properties_file import parse_properties, read_properties
from headrace.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a = = b", {"a": "= b"}),
        ("# c\n! c\n\n  # c\na=b", {"a": "b"}),
        ("a=b # not a comment", {"a": "b # not a comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b,\\\n   c,\\\r\n\td", {"a": "b,c,d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u4E2d", {"a": "é中"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=\u2028b", {"a": "\u2028b"}),
        ("a=b\rc=d", {"a": "b", "c": "d"}),
        ("\\\na=b", {"a": "b"}),
        ("a=b\\", {"a": "b"}),
        (
            "log.dirs=/data/a,/data/b\nlisteners=PLAINTEXT://:9092",
            {"log.dirs": "/data/a,/data/b", "listeners": "PLAINTEXT://:9092"},
        ),
    ],
)
def test_syntax_of_javas_properties(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["\na=\\u12", "\na=\\u12g4", "\na=\\u"])
def test_a_broken_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_properties(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_is_read_in_what_editors_write_and_java_reads(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("log.dirs=/données\n# für alle\nbroker.id=1\n".encode(encoding))
    assert read_properties(str(file)) == {"log.dirs": "/données", "broker.id": "1"}


@pytest.mark.parametrize("content", ["broker.id=1".encode("utf-16"), b"a=\\u12"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    """Bytes of UTF-16 taken for anything else would be unknown names, and the broker start without them."""
    file = tmp_path / "server.properties"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"server\.properties: (.*UTF-8|line 1)"):
        read_properties(str(file))
