"""Watches that last. ZooKeeper's own fire once, and none survives the connection that it was set on.

A watch here is set again after each firing and each reconnection, and tells its listeners only then. So
whatever changed before the telling is seen by a listener that reads, and whatever changes after it is told
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.coordination.ensemble.requests import Request
from headrace.coordination.ensemble.session import Session, is_change
from headrace.core.failures import report
from headrace.core.ports_coordination import CoordinationUnavailable, SessionState
from headrace.core.timers import TimerQueue

Hint = Callable[[], None]
_AGAIN_SECONDS = 0.5


class LastingWatch:
    def __init__(self, session: Session, request: Callable[[Callable[[Any], None]], Request]) -> None:
        """`request` makes the read that sets the watch, out of what ZooKeeper shall call."""
        self._session = session
        self._request = request
        self._listeners: list[Hint] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        session.watch(self._on_session)

    def listen(self, changed: Hint) -> Callable[[], None]:
        self._listeners.append(changed)
        self._set()

        def stop() -> None:
            if changed in self._listeners:
                self._listeners.remove(changed)

        return stop

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._set()

    def _set(self) -> None:
        if not self._listeners:
            return
        self._loop = asyncio.get_running_loop()
        try:
            answer = self._session.send(self._request(self._fired_in_thread))
        except CoordinationUnavailable:
            return  # set when the connection comes back
        answer.add_done_callback(self._is_set)

    def _is_set(self, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled():
            return
        if answer.exception() is not None:
            # A broken connection comes back as a state. If it is not broken, nobody else will ask again.
            if self._session.state is SessionState.CONNECTED and self._loop is not None:
                TimerQueue(self._loop).after(_AGAIN_SECONDS, "a watch set again", self._set)
            return
        for changed in tuple(self._listeners):
            try:
                changed()
            except Exception as error:
                report("a listener of a ZooKeeper watch", error)

    def _fired_in_thread(self, event: Any) -> None:
        if is_change(event) and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._set)
            except RuntimeError:
                pass  # the loop has ended
