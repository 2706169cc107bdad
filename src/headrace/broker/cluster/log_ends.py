"""How far the logs of another broker reach, as it says itself, whether it leads them or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.api import Call
from headrace.broker.cluster.asking import ask
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.handlers import list_offsets
from headrace.core.errors import HeadraceError
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

ANSWER_SECONDS: Final = 5.0
VERSION: Final = list_offsets.FIRST_WITH_LEADER_EPOCH

Key = tuple[str, int]
LogEnd = tuple[int, int]
"""The epoch of the last record, and the end offset."""


async def log_ends(broker: Broker, broker_id: int, keys: Iterable[Key]) -> Mapping[Key, LogEnd]:
    """Nothing of a broker that does not answer, and nothing of a replica that it cannot use."""
    topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for name, index in keys:
        topics[name].append(ListOffsetsPartition(partition_index=index, timestamp=list_offsets.LATEST))
    request = ListOffsetsRequest(
        replica_id=list_offsets.DEBUGGING_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    if broker_id == broker.broker_id:
        answered = list_offsets.handle(broker, request, Call(VERSION, None, broker.to_itself))
        assert isinstance(answered, ListOffsetsResponse), "only times are looked up later"
        return _read(answered)
    link = PeerLink(broker, broker_id)
    try:
        opened = await link.open()
        return _read(await ask(opened, request, ListOffsetsResponse, version=VERSION, timeout=ANSWER_SECONDS))
    except HeadraceError as error:
        broker.log.warning("log end offsets unknown", broker=broker_id, error=str(error))
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
