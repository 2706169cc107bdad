"""What all formats of schemas have in common."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol


class Parsed(Protocol):
    """A schema that was understood."""

    @property
    def text(self) -> str:
        """What is stored and returned: as it was sent, without what carries no meaning."""

    @property
    def normalized(self) -> str:
        """One spelling for all schemas that mean the same."""

    @property
    def identity(self) -> Hashable:
        """Equal for two spellings of one schema."""

    def cannot_read(self, writer: Parsed) -> list[str]:
        """Why a reader with this schema cannot read all that `writer` allows; nothing if it can."""

    def formatted(self, format_name: str) -> str:
        """The text in another form that a client may ask for; its usual one for a name that is not known."""
