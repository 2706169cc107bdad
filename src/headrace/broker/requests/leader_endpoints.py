"""Where the leaders are that an answer names (KIP-951)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from headrace.broker.cluster.metadata_cache import MetadataCache

if TYPE_CHECKING:
    from headrace.protocol.node_endpoints import Endpoint


def endpoints_of(metadata: MetadataCache, leaders: Collection[int], listener: str) -> list[Endpoint]:
    return [(id_, host, port, rack) for id_, host, port, rack in metadata.nodes(listener) if id_ in leaders]
