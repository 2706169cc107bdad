"""`sasl.jaas.config` as text: a login module, a flag and options. No class is loaded.

Tokens are cut as Kafka cuts them, by the rules of Java's StreamTokenizer. No error repeats any of the text:
where a quote is missing, any part of it can be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.core.errors import ConfigError

FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})

_SKIPPED: Final = re.compile(r"(?:[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)*", re.DOTALL)
"""Blanks and comments. A single slash begins a comment to the end of the line as well."""
_WORD: Final = re.compile(r"[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9_$.\-\u00a0-\U0010ffff]*")
"""What starts otherwise, as numbers do, has to be quoted."""
_QUOTED: Final = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\r\n])*)\1""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROL: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = frozenset("01234567")


@dataclass(frozen=True, slots=True)
class LoginModule:
    class_name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    text: str
    is_sign: bool
    """`=`, `;` or another character that is no word by itself."""


_END: Final = _Token("", True)


def parse_login_module(text: str) -> LoginModule:
    """The one module of `text`: a property of a listener may hold no more, in Kafka too. Raises
    ConfigError."""
    tokens = _tokens(text)
    class_name, flag = _word(next(tokens, _END)), _word(next(tokens, _END))
    if not class_name:
        raise _wrong("it begins with the class of a login module")
    if flag is None or flag.lower() not in FLAGS:
        raise _wrong("after the class comes required, requisite, sufficient or optional")
    options = _options(tokens)
    if next(tokens, None) is not None:
        raise _wrong("only one login module is taken, and something follows its semicolon")
    return LoginModule(class_name, flag.lower(), options)


def _options(tokens: Iterator[_Token]) -> dict[str, str]:
    """Up to the semicolon. Of an option that is given twice the last counts, as in Java."""
    options: dict[str, str] = {}
    for count, token in enumerate(tokens, start=1):
        if token.is_sign and token.text == ";":
            return options
        name = _word(token)
        equals = next(tokens, _END)
        value = _word(next(tokens, _END))
        if not name or value is None or not equals.is_sign or equals.text != "=":
            raise _wrong(f"option {count} is not name=value; quote values that are not plain words")
        options[name] = value
    raise _wrong("it ends without a semicolon")


def _word(token: _Token) -> str | None:
    return None if token.is_sign else token.text


def _tokens(text: str) -> Iterator[_Token]:
    at = _skip(text, 0)
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            yield _Token(_ESCAPE.sub(_unescaped, quoted[2]), is_sign=False)
            at = quoted.end()
        elif word := _WORD.match(text, at):
            yield _Token(word[0], is_sign=False)
            at = word.end()
        elif text[at] in "\"'":
            raise _wrong("a quote is not closed on its line")
        else:
            yield _Token(text[at], is_sign=True)
            at += 1
        at = _skip(text, at)


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return at if found is None else found.end()


def _unescaped(escape: re.Match[str]) -> str:
    body = escape[1]
    return chr(int(body, 8)) if body[0] in _OCTAL else _CONTROL.get(body, body)


def _wrong(problem: str) -> ConfigError:
    return ConfigError(f"The JAAS configuration cannot be read: {problem}")
