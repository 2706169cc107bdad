"""Whether the log directories are the ones that the last process of this broker left (ADR 15).

A directory that is put back from a copy proves everything about itself: its files fit together, and say what
the copy said. Only somebody else can know that there was more. So the version of its claims is told to the
coordination service each time it has moved on, after it is on the disk. A directory with an older one than
was told is older than what this broker has acknowledged.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.core.errors import StorageError
from headrace.core.ports_coordination import Coordination

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class DirectoryVersions:
    def __init__(self, broker: Broker, coordination: Coordination) -> None:
        self._broker = broker
        self._coordination = coordination
        self._told: dict[UUID, int] = {}
        """As the service has them, with directories that are not here now."""
        self._stale = False
        """Until `renew`."""

    async def are_stale(self) -> bool:
        """Asked before this process registers first. What it writes from now on is newer than that."""
        broker = self._broker
        self._told = dict(await self._coordination.versions(broker.broker_id))
        for directory in broker.logs.raise_versions(self._told):
            self._stale = True
            broker.log.error(
                "a log directory is older than the last process of this broker left it, as after a restore:"
                " nothing in it is vouched for",
                directory=directory.path,
            )
        return self._stale and broker.world.wholeness.freshness

    async def renew(self) -> None:
        """From here on a directory that was older is the newest again: it says what it has now, above what
        was told. Or the next process would be distrusted too, with all that this one is about to be given.

        Not before the directories name this process as the first of which they have lost nothing: they would
        prove what they have lost.
        """
        if not self._stale:
            return
        self._stale = False  # once: a process that registers again has its logs in use
        broker = self._broker
        for job in broker.logs.take_claims_again():
            with suppress(StorageError):  # offline, and said so; or full, and the next checkpoint does it
                await broker.loop.run_in_executor(None, job.run)

    async def tell(self) -> None:
        said = self._told | self._broker.logs.versions()
        if said != self._told:
            await self._coordination.note_versions(self._broker.broker_id, said)
            self._told = said
