"""Who used which right, and who was denied which: what `headrace acl shadow` and `acl suggest` are told.

Clients choose names and how often they ask, so everything here has a bound, and one principal cannot take the
place of all others. A restart forgets it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from headrace.security.acl_usage import Access

MOST_KEPT: Final = 5_000
"""Of each kind."""
MOST_OF_ONE: Final = 1_000
"""Of one principal."""
LONGEST_KEPT_NAME: Final = 256
"""Of a principal or a resource. Topics have no longer ones."""


class Seen:
    __slots__ = ("count", "first_ms", "last_host", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.count = 0
        self.first_ms = self.last_ms = now_ms
        self.last_host = ""


class AccessTable:
    """Of one kind: what was used, or what was denied."""

    def __init__(self) -> None:
        self._seen: dict[Access, Seen] = {}
        self._of_one: defaultdict[str, int] = defaultdict(int)
        """Invariant: how many keys of `_seen` each principal has; none has 0."""
        self.overflow = 0
        """How often something was not noted, because there is too much of it or its name is long."""

    def note(self, access: Access, host: str, now_ms: int) -> None:
        seen = self._seen.get(access)
        if seen is None:
            if not self._has_room_for(access):
                self.overflow += 1
                return
            seen = self._seen[access] = Seen(now_ms)
            self._of_one[access.principal] += 1
        seen.count += 1
        seen.last_ms = now_ms
        seen.last_host = host

    def _has_room_for(self, access: Access) -> bool:
        return (
            len(access.principal) <= LONGEST_KEPT_NAME
            and len(access.name) <= LONGEST_KEPT_NAME
            and len(self._seen) < MOST_KEPT
            and self._of_one.get(access.principal, 0) < MOST_OF_ONE
        )

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[tuple[Access, Seen]]:
        """As it is now: what is noted while somebody reads does not matter to the reader."""
        return iter(list(self._seen.items()))


class AccessMemory:
    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.used = AccessTable()
        """What the rules allowed. It is noted once for each host and each change of rules, not counted."""
        self.denied = AccessTable()
        """What the rules denied, each time; in shadow mode it was done all the same."""
