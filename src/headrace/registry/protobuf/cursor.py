"""A place in the tokens of a .proto file, and what every rule of the grammar asks of it."""

from __future__ import annotations

from headrace.registry.protobuf.lexer import (
    END,
    NAME,
    NUMBER,
    STRING,
    SYMBOL,
    SyntaxFault,
    Token,
    tokens,
    unquoted,
)
from headrace.registry.protobuf.options import Value


class Cursor:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    @property
    def following(self) -> Token:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    @property
    def at_end(self) -> bool:
        return self.token.kind == END

    def next(self) -> Token:
        token = self.token
        if token.kind != END:
            self._at += 1
        return token

    def fail(self, expected: str) -> SyntaxFault:
        found = self.token.text or "the end of the file"
        return SyntaxFault(f"line {self.token.line}: {expected} is expected, not {found!r}")

    def sees(self, text: str) -> bool:
        return self.token.text == text and self.token.kind != STRING

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.next()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(repr(text))

    def name(self) -> str:
        if self.token.kind != NAME:
            raise self.fail("a name")
        return self.next().text

    def dotted(self) -> str:
        """A name with dots; one in front makes it absolute."""
        parts = ["." if self.accept(".") else ""]
        parts.append(self.name())
        while self.accept("."):
            parts.append("." + self.name())
        return "".join(parts)

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.token
        try:
            value = int(token.text, 8 if token.text.isdecimal() and token.text.startswith("0") else 0)
        except ValueError:
            raise self.fail("a number") from None
        self.next()
        return -value if negative else value

    def string(self) -> bytes:
        """One or several in a row, which are one."""
        if self.token.kind != STRING:
            raise self.fail("a string")
        value = b""
        while self.token.kind == STRING:
            value += unquoted(self.next())
        return value

    def option_name(self) -> str:
        """`name`, `(one.of.mine).part` or `features.name`."""
        parts = []
        while True:
            if self.accept("("):
                parts.append(f"({self.dotted()})")
                self.expect(")")
            else:
                parts.append(self.name())
            if not self.accept("."):
                return ".".join(parts)

    def value(self) -> Value:
        if self.sees("{"):
            self._skip_aggregate()
            return None
        if self.token.kind == STRING:
            return self.string()
        negative = False
        if self.token.kind == SYMBOL and self.token.text in "+-":
            negative = self.next().text == "-"
        if self.token.kind == NAME:
            name = self.next().text
            if name in ("inf", "nan"):
                return f"-{name}" if negative else name
            return name
        if self.token.kind != NUMBER:
            raise self.fail("a value")
        return self._number(negative)

    def _number(self, negative: bool) -> int | float:
        text = self.token.text
        if text.isdecimal() or text[:2].lower() == "0x":
            value: int | float = self.integer()
        else:
            value = float(text.rstrip("fF"))
            self.next()
        return -value if negative else value

    def _skip_aggregate(self) -> None:
        depth = 0
        while True:
            if self.at_end:
                raise self.fail("'}'")
            text = self.token.text if self.token.kind == SYMBOL else ""
            depth += (text == "{") - (text == "}")
            self.next()
            if depth == 0:
                return
