"""Looks at a service beside the brokers again and again, in a thread of its own: no page waits for it, and it
is asked the same whether one person looks or fifty do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest

log = logging.getLogger("headrace.console")

T = TypeVar("T")

INTERVAL_SECONDS: Final = 15.0
REST: Final = 4.0
"""Times what a look took: a service that has much to tell is asked less often."""
REQUEST_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 60.0
"""All requests of a look together."""
ANSWER_BYTES: Final = 64 * 1024 * 1024
LONGEST_REASON: Final = 500
"""Characters: a service says what it likes."""
_END_SECONDS: Final = 1.0


class Told(NamedTuple, Generic[T]):
    """What a service has told last."""

    found: T | None = None
    """None: nothing yet."""
    at_ms: int = 0
    look: int = 0
    """Counts looks, also those that failed."""
    failing: str = ""
    """Why there is nothing newer."""


class StrangeAnswer(ClientFailure):
    """It answers, and not as such a service does."""


class Asker:
    """The requests of one look."""

    def __init__(self, rest: Rest, now: Callable[[], float] = time.monotonic) -> None:
        self._rest = rest
        self._now = now
        self._until = now() + LOOK_SECONDS

    def get(self, path: str) -> object:
        """Raises ClientFailure."""
        if self._now() > self._until:
            raise ClientFailure(f"the {self._rest.who} takes more than {LOOK_SECONDS:g} s to tell all")
        answer: object = self._rest.get(path)
        return answer

    def strange(self, path: str) -> StrangeAnswer:
        return StrangeAnswer(f"{self._rest.url}{path} answers as no {self._rest.who} does")


class Followed(Generic[T]):
    """What it has told may be read from any thread: it is replaced, never changed."""

    def __init__(self, rest: Rest, look: Callable[[Asker], T], interval: float = INTERVAL_SECONDS) -> None:
        self._rest = rest
        self._look = look
        self._interval = interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"the {rest.who}'s looks", daemon=True)
        self.told: Told[T] = Told()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """A request that is under way is not waited for: its time-out ends it, or the end of the process."""
        self._over.set()
        self._thread.join(_END_SECONDS)

    def once(self) -> None:
        before = self.told
        try:
            found = self._look(Asker(self._rest))
        except ClientFailure as error:
            self.told = before._replace(look=before.look + 1, failing=_sentence(error))
        except Exception as error:  # strangers' answers can be anything; pages go on and say so
            log.exception("a look failed", extra={"service": self._rest.who})
            failing = f"The look failed ({type(error).__name__}); the log of the console says why."
            self.told = before._replace(look=before.look + 1, failing=failing)
        else:
            self.told = Told(found, time.time_ns() // 1_000_000, before.look + 1)

    def _run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self.once()
            took = time.monotonic() - began
            self._over.wait(max(self._interval - took, REST * took))


def _sentence(error: ClientFailure) -> str:
    text = str(error)
    if len(text) > LONGEST_REASON:
        text = f"{text[:LONGEST_REASON]}…"
    hint = f" {error.hint[:1].upper()}{error.hint[1:]}." if error.hint else ""
    return f"{text[:1].upper()}{text[1:]}.{hint}"
