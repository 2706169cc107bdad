"""Which version the log directories of each broker have come to: one lasting node per broker, as JSON.

A directory that is put back from an older copy has an older version than the cluster has heard of (ADR 15).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from headrace.coordination.ensemble.paths import Paths
from headrace.coordination.ensemble.requests import Exists, Missing, create, get, put, stored
from headrace.coordination.ensemble.session import Session
from headrace.core.ids import BrokerId


class DirectoryVersions:
    def __init__(self, session: Session, paths: Paths) -> None:
        self._session = session
        self._paths = paths

    async def note(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        """The process that has the lock of the directories is the only one that writes."""
        self._session.require_connected()
        path = self._paths.versions_of(broker_id)
        data = json.dumps({str(each): version for each, version in versions.items()}).encode()
        try:
            await self._session.change(put(path, data))
        except Missing:
            try:
                await self._session.change(create(path, data))
            except Exists:  # of its own making, before the connection broke
                await self._session.change(put(path, data))

    async def of(self, broker_id: BrokerId) -> Mapping[UUID, int]:
        (answer,) = await self._session.ask_latest(get(self._paths.versions_of(broker_id)))
        node = stored(answer)
        if node is None:
            return {}
        try:
            return {UUID(each): int(version) for each, version in json.loads(node.data).items()}
        except (ValueError, TypeError, AttributeError):
            return {}  # somebody else has written there: as if nothing were known
