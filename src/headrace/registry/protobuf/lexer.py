"""The .proto language in tokens. Comments and white space are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

END: Final = "end"
NAME: Final = "name"
NUMBER: Final = "number"
STRING: Final = "string"
SYMBOL: Final = "symbol"

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[fF]?)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<symbol>[{}\[\]()<>=;,.:+\-/])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    rb"\\(?:([abfnrtv\\'\"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_SIMPLE: Final = dict(zip(b"abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))


class SyntaxFault(ValueError):
    """Text that is not of the language; says in which line."""


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def tokens(text: str) -> Iterator[Token]:
    """All of them, and one END."""
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SyntaxFault(f"line {line}: {text[position : position + 20]!r} cannot be read")
        kind = str(match.lastgroup)
        if kind != "skip":
            yield Token(kind, match.group(), line)
        line += match.group().count("\n")
        position = match.end()
    yield Token(END, "", line)


def unquoted(token: Token) -> bytes:
    """The value of a string: escapes may stand for any byte."""

    def value(match: re.Match[bytes]) -> bytes:
        simple, octal, hexadecimal, short, long = match.groups()
        if simple is not None:
            return bytes((_SIMPLE[simple[0]],))
        if octal is not None:
            return bytes((int(octal, 8) & 0xFF,))
        if hexadecimal is not None:
            return bytes((int(hexadecimal, 16),))
        return chr(int(short or long, 16)).encode()

    return _ESCAPE.sub(value, token.text[1:-1].encode())
