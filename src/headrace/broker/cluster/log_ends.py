"""How far the logs of a broker reach, whether it leads them or not: as it says itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import HeadraceError
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.protocol.offset_timestamps import DEBUGGING_CONSUMER, FIRST_WITH_LEADER_EPOCH, LATEST

UNKNOWN_EPOCH: Final = -1
ANSWER_SECONDS: Final = 5.0
VERSION: Final = FIRST_WITH_LEADER_EPOCH

Key = tuple[str, int]
LogEnd = tuple[int, int]
"""The epoch of the last record, and the end offset."""


async def log_ends(
    runtime: Runtime, metadata: MetadataCache, broker_id: int, keys: Iterable[Key]
) -> Mapping[Key, LogEnd]:
    """Nothing of a broker that does not answer, and nothing of a replica that it cannot use."""
    topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for name, index in keys:
        topics[name].append(ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    link = PeerLink(runtime, metadata, broker_id)
    try:
        opened = await link.open()
        return _read(await ask(opened, request, ListOffsetsResponse, version=VERSION, timeout=ANSWER_SECONDS))
    except HeadraceError as error:
        runtime.log.warning("log end offsets unknown", broker=broker_id, error=str(error))
        return {}
    finally:
        link.close()


def _read(response: ListOffsetsResponse) -> dict[Key, LogEnd]:
    return {
        (topic.name, each.partition_index): (each.leader_epoch, each.offset)
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    }


def own_log_ends(partitions: PartitionTable, keys: Iterable[Key]) -> Mapping[Key, LogEnd]:
    """The same of this broker: nothing of a replica that it cannot use."""
    ends: dict[Key, LogEnd] = {}
    for key in keys:
        partition = partitions.find(*key)
        if partition is None:
            continue
        try:
            partition.check_any(UNKNOWN_EPOCH)
        except HeadraceError:
            continue
        ends[key] = (partition.log.latest_epoch, partition.log.end_offset)
    return ends
