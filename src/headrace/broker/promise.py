"""An answer that comes later, told at once to the one who listens: cheaper than a future and its task.

A handler may return one in place of a message. Whoever is in a coroutine may await it instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from headrace.core.tasks import report

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Promise(Generic[R_co]):
    """Decided once: what comes after that changes nothing. One listener at most, told within the call that
    decides, which never fails by it."""

    __slots__ = ("_listener", "_value", "error", "is_decided")

    def __init__(self) -> None:
        self.is_decided = False
        self.error: Exception | None = None
        self._value: Any = None
        self._listener: Callable[[Any], None] | None = None

    def resolve(self, value: Any) -> None:
        if not self.is_decided:
            self.is_decided = True
            self._value = value
            self._tell()

    def reject(self, error: Exception) -> None:
        if not self.is_decided:
            self.is_decided = True
            self.error = error
            self._tell()

    def _tell(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            try:
                listener(self)
            except Exception as error:  # whoever decides has others to tell, and nothing to do with this
                report("the listener of a promise", error)

    def result(self) -> R_co:
        """Of a decided one."""
        assert self.is_decided, "asked before it was decided"
        if self.error is not None:
            raise self.error
        value: R_co = self._value
        return value

    def listen(self, listener: Callable[[Promise[R_co]], None]) -> None:
        """Called with this promise when it is decided; at once if it is."""
        if self.is_decided:
            listener(self)
        else:
            assert self._listener is None, "a promise has one listener"
            self._listener = listener

    def then(
        self, on_value: Callable[[R_co], T], on_error: Callable[[Exception], T] | None = None
    ) -> Promise[T]:
        """A promise of what is made of the answer, or of the refusal. What they raise refuses it."""
        made: Promise[T] = Promise()

        def translate(decided: Promise[R_co]) -> None:
            try:
                if decided.error is None:
                    made.resolve(on_value(decided._value))
                elif on_error is None:
                    made.reject(decided.error)
                else:
                    made.resolve(on_error(decided.error))
            except Exception as error:
                made.reject(error)

        self.listen(translate)
        return made

    def __await__(self) -> Generator[Any, None, R_co]:
        if not self.is_decided:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.listen(lambda _: None if future.done() else future.set_result(None))
            yield from future
        return self.result()
