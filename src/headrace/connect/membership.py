"""A worker as a member of the group of workers: protocol type `connect`, and JSON where members talk.

The name of the protocol is ours, so a worker of another maker that comes into the group by mistake is refused
by the broker, and not given half of the connectors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from headrace.client.classic_member import ClassicMember
from headrace.client.cluster import Cluster
from headrace.connect.assignment import assign
from headrace.connect.stores import ConfigStore

PROTOCOL_TYPE: Final = "connect"
PROTOCOL_NAME: Final = "headrace-1"


class WorkerMember(ClassicMember):
    protocol_type = PROTOCOL_TYPE
    protocol_name = PROTOCOL_NAME

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        url: str,
        configs: ConfigStore,
        owned: Callable[[], Collection[str]],
        *,
        session_timeout_ms: int,
    ) -> None:
        # A worker answers at once: what it runs it goes on running while the group is rebalanced.
        super().__init__(
            cluster, group_id, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=session_timeout_ms
        )
        self.assigned_from: frozenset[str] = frozenset()
        """As the leader: the connectors there were when they were last given out."""
        self._url = url
        self._configs = configs
        self._owned = owned

    async def join(self) -> list[str]:
        """The connectors that this worker is to run."""
        given = _document(await self.join_group()).get("connectors")
        return [name for name in given if isinstance(name, str)] if isinstance(given, list) else []

    def metadata(self) -> bytes:
        return _bytes({"url": self._url, "owned": sorted(self._owned())})

    async def assign(self, told: Mapping[str, bytes]) -> Mapping[str, bytes]:
        await self._configs.up_to_date()
        connectors = frozenset(self._configs.state.names())
        owned = {member: _owned_by(metadata) for member, metadata in told.items()}
        found = assign(owned, connectors)
        self.assigned_from = connectors
        return {member: _bytes({"connectors": names}) for member, names in found.given.items()}


def _owned_by(metadata: bytes) -> list[str]:
    owned = _document(metadata).get("owned")
    return [name for name in owned if isinstance(name, str)] if isinstance(owned, list) else []


def _document(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
