"""A connection of the web server that is not waited for without end: uvicorn itself waits for a request that
comes byte by byte, and for a peer that reads nothing of an answer, as long as they like."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS: Final = 10.0
"""From the first byte of a request, or from the connection on, until the end of its headers."""
BODY_SECONDS: Final = 60.0
READ_SECONDS: Final = 60.0
"""That a peer may take for the next bytes of an answer."""


class PatientProtocol(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        super().connection_made(transport)
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._awaits = ""
        self._await("head")

    def connection_lost(self, exc: Exception | None) -> None:
        self._await("")
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _look(self) -> None:
        """What is awaited now. The same as before: its time goes on."""
        if self.transport.is_closing():
            self._await("")
        elif self._is_between():
            # Between requests the server has a time of its own, until the next one begins.
            self._await("head" if self.timeout_keep_alive_task is None else "")
        else:
            self._await("body" if self.conn.their_state is h11.SEND_BODY else "")

    def _is_between(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _await(self, what: str) -> None:
        if what == self._awaits:
            return
        self._awaits = what
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if what:
            seconds = HEAD_SECONDS if what == "head" else BODY_SECONDS
            self._late = self.loop.call_later(seconds, self.transport.abort)
