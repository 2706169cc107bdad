"""What a request handler gives back to the connection that carried the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.core.completion import Completion
from headrace.core.ports import Buffer, FileRange

Part = Buffer | FileRange
Parts = list[Part]


def bytes_in_memory(parts: Parts) -> int:
    """File ranges cost none."""
    return sum(len(part) for part in parts if not isinstance(part, FileRange))


class DelayedResponse(Completion[Parts]):
    """A response that comes later: whoever holds it completes it with the parts to send.

    While a delayed response is `exclusive`, the connection serves no further request, so that requests of
    one connection take effect in order. Produce requests are not exclusive: they take effect when they
    arrive, and only their acknowledgement waits.
    """

    __slots__ = ("exclusive", "is_abandoned", "on_abandon", "on_answered", "on_overtaken")

    def __init__(self, *, exclusive: bool = True) -> None:
        super().__init__()
        self.exclusive = exclusive
        self.is_abandoned = False
        """The connection is gone: nobody waits for this any more."""
        self.on_abandon: Callable[[], object] | None = None
        self.on_answered: Callable[[Parts], None] | None = None
        """Told what is sent, just before it is: it may change the list."""
        self.on_overtaken: Callable[[], None] | None = None
        """Called when the peer has sent something behind this request, which has to wait for its answer."""

    @property
    def parts(self) -> Parts:
        """What to send. Only once it is done."""
        parts: Parts = self._value
        return parts

    def complete(self, value: Any) -> None:
        if self.is_done:
            return
        on_answered = self.on_answered
        self._release()
        try:
            if on_answered is not None:
                on_answered(value)
        finally:
            super().complete(value)

    def abandon(self) -> None:
        self.is_done = self.is_abandoned = True
        on_abandon = self.on_abandon
        self._release()
        self._listener = None
        if on_abandon is not None:
            on_abandon()

    def _release(self) -> None:
        """Whoever completes this holds it, and is held by it: without this each response that was waited for
        would be left to the garbage collector."""
        self.on_abandon = self.on_answered = self.on_overtaken = None


class NoResponse:
    """The request wants no response (Produce with acks=0)."""


NO_RESPONSE = NoResponse()

Response = Parts | DelayedResponse | NoResponse
