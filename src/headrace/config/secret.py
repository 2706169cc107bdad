"""A value that is never shown: passwords, keys, and texts that hold them."""

from __future__ import annotations

import hmac
from typing import Final

HIDDEN: Final = "[hidden]"
"""What Kafka writes in its place as well."""


class Secret:
    """Only `reveal` gives the text, so that a log line, an error or an f-string cannot."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")
