"""How consumed records are written: kcat's format strings.

%s value    %S its length (-1 for null)     %t topic       %T timestamp in ms
%k key      %K its length (-1 for null)     %p partition   %h headers, k=v,k=v
%o offset   %% a percent sign               \\n \\t \\r \\0 \\xNN \\\\ as usual
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record

Piece = bytes | Callable[[TopicPartition, Record], bytes]
Formatter = Callable[[TopicPartition, Record], bytes]


def _number(number: int) -> bytes:
    return b"%d" % number


def _length(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _headers(record: Record) -> bytes:
    return b",".join(
        name.encode("utf-8", "surrogateescape") + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )


_FIELDS: Final[dict[str, Formatter]] = {
    "s": lambda _, record: record.value or b"",
    "S": lambda _, record: _length(record.value),
    "k": lambda _, record: record.key or b"",
    "K": lambda _, record: _length(record.key),
    "t": lambda partition, _: partition.topic.encode(),
    "p": lambda partition, _: _number(partition.partition),
    "o": lambda _, record: _number(record.offset),
    "T": lambda _, record: _number(record.timestamp),
    "h": lambda _, record: _headers(record),
}

_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def unescape(text: str) -> bytes:
    """Delimiters and formats as people type them in a shell: '\\t' is a tab."""
    out = bytearray()
    at = 0
    for found in _ESCAPE.finditer(text):
        out += text[at : found.start()].encode()
        code = found[1]
        if len(code) == 3:
            out.append(int(code[1:], 16))
        else:
            out += _ESCAPES.get(code, code.encode())
        at = found.end()
    return bytes(out + text[at:].encode())


def compile_format(text: str) -> Formatter:
    pieces: list[Piece] = []
    at = 0
    for found in re.finditer(r"%(.?)", text, re.DOTALL):
        pieces.append(unescape(text[at : found.start()]))
        at = found.end()
        if found[1] == "%":
            pieces.append(b"%")
        elif found[1] in _FIELDS:
            pieces.append(_FIELDS[found[1]])
        else:
            raise ClientFailure(
                f"%{found[1]} is not a field of a format",
                "use %s %S %k %K %t %p %o %T %h, and %% for a percent",
            )
    pieces.append(unescape(text[at:]))

    def write(partition: TopicPartition, record: Record) -> bytes:
        return b"".join(piece if isinstance(piece, bytes) else piece(partition, record) for piece in pieces)

    return write
