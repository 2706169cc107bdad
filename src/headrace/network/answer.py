"""What a request handler gives back to the connection that carried the request."""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.ports import Buffer, FileRange

Part = Buffer | FileRange
Parts = list[Part]


def bytes_in_memory(parts: Parts) -> int:
    """File ranges cost none."""
    return sum(len(part) for part in parts if not isinstance(part, FileRange))


class Pending:
    """An answer that comes later: whoever holds it calls `complete` once, with the parts to send.

    While a pending answer is `exclusive`, the connection serves no further request, so that requests of
    one connection take effect in order. Produce requests are not exclusive: they take effect when they
    arrive, and only their acknowledgement waits.
    """

    __slots__ = (
        "_on_complete",
        "abandoned",
        "exclusive",
        "on_abandon",
        "on_answered",
        "on_overtaken",
        "parts",
    )

    def __init__(self, *, exclusive: bool = True) -> None:
        self.exclusive = exclusive
        self.parts: Parts | None = None
        self.abandoned = False
        """The connection is gone: nobody waits for this any more."""
        self.on_abandon: Callable[[], object] | None = None
        self.on_answered: Callable[[], None] | None = None
        self.on_overtaken: Callable[[], None] | None = None
        """Called when the peer has sent something behind this request, which has to wait for its answer."""
        self._on_complete: Callable[[], None] | None = None

    def complete(self, parts: Parts) -> None:
        if self.parts is not None or self.abandoned:
            return
        self.parts = parts
        on_answered, on_complete = self.on_answered, self._on_complete
        self._let_go()
        if on_answered is not None:
            on_answered()
        if on_complete is not None:
            on_complete()

    def attach(self, on_complete: Callable[[], None]) -> None:
        self._on_complete = on_complete

    def abandon(self) -> None:
        self.abandoned = True
        on_abandon = self.on_abandon
        self._let_go()
        if on_abandon is not None:
            on_abandon()

    def _let_go(self) -> None:
        """Whoever completes this holds it, and is held by it: without this each answer that was waited for
        would be left to the garbage collector."""
        self.on_abandon = self.on_answered = self.on_overtaken = self._on_complete = None


class NoAnswer:
    """The request wants no response (Produce with acks=0)."""


NO_ANSWER = NoAnswer()

Answer = Parts | Pending | NoAnswer
