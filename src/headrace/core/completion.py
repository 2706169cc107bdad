"""A result that comes later: the one type for it. Cheaper than a future and its task, because the listener is
called at once, within the call that completes it.

A handler may return a completion in place of a response. A coroutine may await it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from headrace.core.failures import report

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Completion(Generic[R_co]):
    """Done once: what comes after that changes nothing. It has one listener at most, and what the listener
    raises never reaches whoever completes it."""

    __slots__ = ("_listener", "_value", "error", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self.error: Exception | None = None
        self._value: Any = None
        self._listener: Callable[[Any], None] | None = None

    def complete(self, value: Any) -> None:
        if not self.is_done:
            self.is_done = True
            self._value = value
            self._call_listener()

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.is_done = True
            self.error = error
            self._call_listener()

    def _call_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            try:
                listener(self)
            except Exception as error:  # whoever completes this has others to tell
                report("the listener of a completion", error)

    def result(self) -> R_co:
        """The value, or the error raised. Only once it is done."""
        assert self.is_done, "asked before it was done"
        if self.error is not None:
            raise self.error
        value: R_co = self._value
        return value

    def when_done(self, listener: Callable[[Completion[R_co]], None]) -> None:
        """Call `listener` with this completion when it is done; at once if it is."""
        if self.is_done:
            listener(self)
        else:
            assert self._listener is None, "a completion has one listener"
            self._listener = listener

    def then(
        self, on_value: Callable[[R_co], T], on_error: Callable[[Exception], T] | None = None
    ) -> Completion[T]:
        """A completion of what these make of the value or of the error. It fails with what they raise."""
        made: Completion[T] = Completion()

        def translate(done: Completion[R_co]) -> None:
            try:
                if done.error is None:
                    made.complete(on_value(done._value))
                elif on_error is None:
                    made.fail(done.error)
                else:
                    made.complete(on_error(done.error))
            except Exception as error:
                made.fail(error)

        self.when_done(translate)
        return made

    def __await__(self) -> Generator[Any, None, R_co]:
        if not self.is_done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_done(lambda _: None if future.done() else future.set_result(None))
            yield from future
        return self.result()
