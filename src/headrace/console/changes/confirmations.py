"""The yes to a plan: good for this plan, this viewer and this page, and for once.

It also shows that whoever says yes was shown the plan: another site's form cannot know it.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from typing import Final

MOST_KEPT: Final = 1000
"""Of those that were used. Whoever uses an older one once more meets a plan that has changed."""


class Confirmations:
    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._used: OrderedDict[str, int] = OrderedDict()

    def make(self, viewer: str, path: str, fingerprint: str) -> str:
        nonce = secrets.token_hex(16)
        return f"{nonce}.{self._seal(nonce, viewer, path, fingerprint)}"

    def fits(self, given: str, viewer: str, path: str, fingerprint: str) -> bool:
        nonce, _, seal = given.partition(".")
        return hmac.compare_digest(seal.encode(), self._seal(nonce, viewer, path, fingerprint).encode())

    def use(self, given: str, number: int) -> None:
        """It has led to this change."""
        self._used[given] = number
        while len(self._used) > MOST_KEPT:
            self._used.popitem(last=False)

    def change_of(self, given: str) -> int | None:
        """What it has led to before: a button that is pressed twice means one change."""
        return self._used.get(given)

    def _seal(self, nonce: str, viewer: str, path: str, fingerprint: str) -> str:
        parts = [nonce, viewer, path, fingerprint]
        whole = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.digest(self._key, whole.encode("utf-8", "surrogatepass"), "sha256").hex()
