"""Who is told when a partition moves. Told on the event loop, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

from headrace.core.errors import HeadraceError
from headrace.core.failures import report

EVERYTHING: Final = 1 << 62


class Watcher(Protocol):
    """A fetch, or a session of fetches, that wants to know when there is more to read."""

    def on_append(self, size: int) -> None:
        """The log grew. For replicas, which read up to its end."""
        ...

    def on_commit(self, size: int) -> None:
        """The high watermark moved over about `size` bytes."""
        ...

    def on_change(self) -> None:
        """Leadership, epoch or log start changed: whatever was known must be looked up again."""
        ...

    def on_step_back(self) -> None:
        """A replica has said less than before: perhaps an old word that came late. Only told to those who
        read as replicas; what they said is to be heard again when they ask next."""
        ...


class CommitWaiter(Protocol):
    """An acknowledgement that is held until its batch is committed."""

    def on_decided(self, token: int, error: HeadraceError | None) -> None:
        """Committed, or it will never be known here. `token` is what the waiter gave."""
        ...


def tell_append(readers: Iterable[Watcher], size: int) -> None:
    """Each of them fails alone: the others hear of it all the same, and what was written stays written."""
    for reader in tuple(readers):
        try:
            reader.on_append(size)
        except Exception as error:
            report("a reader that was told of an append", error)


def tell_commit(readers: Iterable[Watcher], size: int) -> None:
    for reader in tuple(readers):
        try:
            reader.on_commit(size)
        except Exception as error:
            report("a reader that was told of a commit", error)


def tell_change(readers: Iterable[Watcher]) -> None:
    for reader in tuple(readers):
        try:
            reader.on_change()
        except Exception as error:
            report("a reader that was told of a change", error)


def decide(waiter: CommitWaiter, token: int, error: HeadraceError | None) -> None:
    """Those behind it are told even if it raises."""
    try:
        waiter.on_decided(token, error)
    except Exception as failure:
        report("an acknowledgement that was held", failure)


class DelayedAcknowledgements:
    """Those of one term, by the offset that must be committed. Invariant: offsets never descend."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[tuple[int, CommitWaiter, int]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, end_offset: int, waiter: CommitWaiter, token: int) -> None:
        queue = self._queue
        if queue and queue[-1][0] > end_offset:
            # A repeated batch: it lies before others that wait already.
            place = sum(1 for each in queue if each[0] <= end_offset)
            queue.insert(place, (end_offset, waiter, token))
            return
        queue.append((end_offset, waiter, token))

    def take(self, up_to: int) -> list[tuple[int, CommitWaiter, int]]:
        """Those whose offset is reached. Taken out before anyone is told: telling may add others."""
        queue = self._queue
        taken = []
        while queue and queue[0][0] <= up_to:
            taken.append(queue.popleft())
        return taken
