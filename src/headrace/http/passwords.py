"""Passwords, checked by whoever knows the users, and remembered for some seconds.

A check costs milliseconds of a processor, or a log-in at a broker; a scraper or a serializer sends the same
password with every request.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.config.secret import Secret
from headrace.core.errors import HeadraceError

REMEMBERED_SECONDS: Final = 10.0
"""So long a password counts that was changed meanwhile, where nobody tells of changes."""
MOST_REMEMBERED: Final = 256
AT_ONCE: Final = 2
MOST_WAITING: Final = 64
FAILURE_SECONDS: Final = 0.1
"""As for SASL (`connection.failed.authentication.delay.ms`): guessing shall not be quick. Counted from the
question on, so that the answer does not tell how long the check took: that depends on who exists."""

Check = Callable[[str, Secret], Awaitable[bool]]


class TooBusy(HeadraceError):
    """More passwords wait to be checked than anybody means well with."""


class Passwords:
    def __init__(self, check: Check, epoch: Callable[[], int] = lambda: 0) -> None:
        """`epoch` moves when any password changes; what was remembered before does not count then."""
        self._check = check
        self._epoch = epoch
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        """Until when, and of which epoch. By a keyed digest, so that no password is kept."""
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._turn_of_known = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def are_right(self, user: str, password: Secret) -> bool:
        """Raises TooBusy, and whatever the check raises."""
        now, epoch = asyncio.get_running_loop().time(), self._epoch()
        digest = hmac.digest(self._key, f"{len(user)}:{user}{password.reveal()}".encode(), "sha256")
        until, known = self._right.get(digest, (0.0, epoch))
        if now < until and known == epoch:
            return True
        if digest in self._right:
            # It was right a while ago. Whoever guesses keeps nobody out who has been here before.
            async with self._turn_of_known:
                is_right = await self._check(user, password)
        else:
            is_right = await self._checked_in_turn(user, password)
        if is_right:
            self._right[digest] = now + REMEMBERED_SECONDS, epoch
            self._right.move_to_end(digest)
            if len(self._right) > MOST_REMEMBERED:
                self._right.popitem(last=False)
        else:
            self._right.pop(digest, None)
            took = asyncio.get_running_loop().time() - now
            await asyncio.sleep(max(0.0, FAILURE_SECONDS - took))
        return is_right

    async def _checked_in_turn(self, user: str, password: Secret) -> bool:
        if self._waiting >= MOST_WAITING:
            raise TooBusy("too many passwords wait to be checked: ask again")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._check(user, password)
        finally:
            self._waiting -= 1
