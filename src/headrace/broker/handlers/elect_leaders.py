"""ElectLeaders: hand leadership back to preferred replicas, or elect one that was not in sync.

Versions 0-2. 1: unclean elections. 2: flexible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.cluster.log_ends import Key
from headrace.broker.cluster.unclean_election import Ends, ends_of_leaderless, longest_first
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.operations import ElectedLeader, ElectionType
from headrace.core.errors import ElectionNotNeeded, RequestTimedOut
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest
from headrace.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(context: RequestContext, request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:  # noqa: ARG001 - every handler has this shape
    asked = None
    if request.topic_partitions is not None:
        asked = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
    ends: dict[Key, Ends] = {}
    if request.election_type == ElectionType.UNCLEAN:
        ends = await ends_of_leaderless(context.runtime, context.metadata, context.partitions, asked)
    longest = {key: longest_first(each) for key, each in ends.items()}
    try:
        decision = context.controller.elect_leaders(request.election_type, asked, longest)
        outcomes = await in_time(context.runtime, context.peers.reachability, decision)
    except RequestTimedOut as error:
        return ElectLeadersResponse(error_code=code_of(error))
    if request.election_type == ElectionType.UNCLEAN:
        _tell(context, outcomes, ends)
    results: dict[str, list[PartitionResult]] = defaultdict(list)
    for outcome in outcomes:
        # Whoever asks for everything is told only of what changed or failed.
        if asked is None and isinstance(outcome.error, ElectionNotNeeded):
            continue
        results[outcome.topic].append(
            PartitionResult(
                partition_id=outcome.partition,
                error_code=code_of(outcome.error),
                error_message=text_of(outcome.error),
            )
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=partitions)
            for topic, partitions in results.items()
        ]
    )


def _tell(context: RequestContext, outcomes: Iterable[ElectedLeader], ends: Mapping[Key, Ends]) -> None:
    """Records may be lost by it: whoever looks for them later finds here when, and how many are known of."""
    for outcome in outcomes:
        if outcome.error is None:
            known = ends.get((outcome.topic, outcome.partition), {})
            elected = known.get(outcome.leader)
            behind = max((end[1] for end in known.values()), default=0) - elected[1] if elected else None
            context.runtime.log.warning(
                "unclean leader election",
                topic=outcome.topic,
                partition=outcome.partition,
                leader=outcome.leader,
                end_offset=elected[1] if elected else None,
                records_behind=behind,
                ends={str(broker_id): end[1] for broker_id, end in known.items()},
            )


API: Final = Api(ApiKey.ELECT_LEADERS, 0, 2, ElectLeadersRequest, handle, at_controller=True)
