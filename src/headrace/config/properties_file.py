"""The syntax of Java's properties files, which Kafka's server.properties uses.

Lines end with a line break unless an odd number of backslashes stands before it; `#` and `!` begin a
comment; the key ends at the first unescaped `=`, `:` or blank; backslash escapes are t, n, r, f, uXXXX,
and otherwise the character itself. The last of two equal keys counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.core.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str) -> dict[str, str]:
    with open(path, "rb") as file:
        content = file.read()
    try:
        return parse_properties(decode(content))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def decode(content: bytes) -> str:
    """UTF-8 if it can be, with or without a mark at its beginning; else Latin-1, as Java reads such files."""
    if b"\0" in content:
        raise ConfigError("this is neither UTF-8 nor Latin-1; save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end = _end_of_key(line)
        rest = line[key_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        properties[_unescape(line[:key_end], number)] = _unescape(rest, number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, comments left out, and the number of the first line."""
    pending: str | None = None
    first = 0
    # Not str.splitlines: that also splits at characters which are ordinary text in a properties file.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, raw in enumerate(lines, start=1):
        line = raw.lstrip(_BLANKS)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            first = number
        if _continues(line):
            pending = (pending or "") + line[:-1]
            continue
        yield first, (pending or "") + line
        pending = None
    if pending:
        yield first, pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    escaped = False
    for at, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=:" or character in _BLANKS:
            return at
    return len(line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character != "\\" or at == len(text):
            parts.append(character if character != "\\" else "")
            continue
        escape = text[at]
        at += 1
        if escape == "u":
            digits = text[at : at + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ConfigError(f"line {line}: \\u needs four hexadecimal digits after it")
            parts.append(chr(int(digits, 16)))
            at += 4
        else:
            parts.append(_ESCAPES.get(escape, escape))
    joined = "".join(parts)
    # Two escapes may spell one character outside the basic plane.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
