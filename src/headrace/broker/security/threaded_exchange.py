"""An exchange whose steps a thread makes, because they touch files or compute for long.

The loop serves nothing else of the peer meanwhile, so that no two steps of one exchange run at once.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from headrace.core.completion import Completion
from headrace.security.mechanism import AuthenticationFailed, Exchange, Step


class LoginThread:
    """One for all peers of a listener: a file that answers slowly delays logins, and nothing else."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, name)

    def step(self, exchange: Exchange, token: bytes) -> Completion[Step]:
        done: Completion[Step] = Completion()
        future = self._loop.run_in_executor(self._thread, exchange.step, token)
        future.add_done_callback(partial(_tell, done))
        return done

    def stop(self) -> None:
        """Who waits hears nothing any more: the connections end as well."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _tell(done: Completion[Step], future: asyncio.Future[Step]) -> None:
    if future.cancelled():
        return
    error = future.exception()
    if error is None:
        done.complete(future.result())
    else:
        done.fail(error if isinstance(error, Exception) else RuntimeError(repr(error)))


class ThreadedExchange:
    """`headrace.security.mechanism.PreparedExchange`: to prepare a step is to make it."""

    __slots__ = ("_exchange", "_made", "_thread", "_token")

    def __init__(self, exchange: Exchange, thread: LoginThread) -> None:
        self._exchange = exchange
        self._thread = thread
        self._made: Completion[Step] | None = None
        """The step that is prepared, and not taken yet."""
        self._token = b""

    def prepare(self, token: bytes) -> Completion[None]:
        made = self._made = self._thread.step(self._exchange, token)
        self._token = token
        done: Completion[None] = Completion()
        made.when_done(lambda _: done.complete(None))
        return done

    def step(self, token: bytes) -> Step:
        """What the prepared step has said. Raises AuthenticationFailed."""
        made, self._made = self._made, None
        if made is None or not made.is_done or token != self._token:
            raise AuthenticationFailed("Authentication failed", "a step that nobody has prepared")
        return made.result()
