"""Whether the log directories are the ones that the last process of this broker left (ADR 15).

A directory that is put back from a copy proves everything about itself: its files fit together, and say what
the copy said. Only somebody else can know that there was more. So the version of its claims is told to the
coordination service each time it has moved on, after it is on the disk. A directory with an older one than
was told is older than what this broker has acknowledged.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import StorageError
from headrace.core.ports_coordination import Coordination
from headrace.log.manager import LogManager


class DirectoryVersions:
    def __init__(self, runtime: Runtime, logs: LogManager, coordination: Coordination) -> None:
        self._runtime = runtime
        self._logs = logs
        self._coordination = coordination
        self._told: dict[UUID, int] = {}
        """As the service has them, with directories that are not here now."""
        self._stale = False
        """Until `renew`."""

    async def are_stale(self) -> bool:
        """Asked before this process registers first. What it writes from now on is newer than that."""
        self._told = dict(await self._coordination.versions(self._runtime.broker_id))
        for directory in self._logs.raise_versions(self._told):
            self._stale = True
            self._runtime.log.error(
                "a log directory is older than the last process of this broker left it, as after a restore:"
                " nothing in it is vouched for",
                directory=directory.path,
            )
        return self._stale and self._runtime.environment.wholeness.freshness

    async def renew(self) -> None:
        """From here on a directory that was older is the newest again: it says what it has now, above what
        was told. Or the next process would be distrusted too, with all that this one is about to be given.

        Not before the directories name this process as the first of which they have lost nothing: they would
        prove what they have lost.
        """
        if not self._stale:
            return
        self._stale = False  # once: a process that registers again has its logs in use
        for job in self._logs.take_claims_again():
            with suppress(StorageError):  # offline, and said so; or full, and the next checkpoint does it
                await self._runtime.loop.run_in_executor(None, job.run)

    async def tell(self) -> None:
        said = self._told | self._logs.versions()
        if said != self._told:
            await self._coordination.note_versions(self._runtime.broker_id, said)
            self._told = said
