"""CreateTopics.

Versions 2-7. 4: -1 takes the broker's defaults for partitions and replication. 5: flexible, and the answer
describes what was made. 6: over a quota a topic is refused. 7: topic ids.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.configs import topic_entries
from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.operations import CreatedTopic, NewTopic
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_topics_request import CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_STRICT: Final = 6
"""From here on clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(context: RequestContext, request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    wanted = [
        NewTopic(
            name=topic.name,
            num_partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            assignments=[(item.partition_index, item.broker_ids) for item in topic.assignments],
            configs=[(config.name, config.value) for config in topic.configs],
        )
        for topic in request.topics
    ]
    quota = context.mutations.of(call.principal, call.client_id, is_strict=call.version >= FIRST_STRICT)
    refused: list[CreatedTopic] = []
    if not request.validate_only:
        wanted, refused = quota.divide(
            wanted,
            partial(_partitions, context),
            lambda topic, error: CreatedTopic(topic.name, error=error),
        )
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.create_topics(wanted, validate_only=request.validate_only),
        lambda error: [CreatedTopic(topic.name, error=error) for topic in wanted],
    )
    if not request.validate_only:
        sizes = {topic.name: _partitions(context, topic) for topic in wanted}
        quota.give_back(sum(sizes[outcome.name] for outcome in outcomes if outcome.error is not None))
    outcomes += refused
    if context.runtime.is_standalone:
        await context.storage.hosting.caught_up()
    overrides = {
        topic.name: {name: value for name, value in topic.configs if value is not None} for topic in wanted
    }
    described: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]] = {}
    results = []
    for outcome in outcomes:
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        results.append(_result(context, outcome, overrides.get(outcome.name, {}), call.version, described))
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_ms, topics=results)


def _partitions(context: RequestContext, topic: NewTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return topic.num_partitions if topic.num_partitions > 0 else context.runtime.config.num_partitions


def _result(
    context: RequestContext,
    outcome: CreatedTopic,
    overrides: dict[str, str],
    version: int,
    described: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]],
) -> CreatableTopicResult:
    if outcome.error is not None:
        return CreatableTopicResult(
            name=outcome.name,
            error_code=code_of(outcome.error),
            error_message=text_of(outcome.error),
            configs=[],
        )
    result = CreatableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_message=None,
        num_partitions=outcome.num_partitions,
        replication_factor=outcome.replication_factor,
    )
    if version >= 5:
        key = tuple(overrides.items())
        known = described.get(key)
        if known is None:  # most topics of a request are configured alike
            known = described[key] = _configs(context, overrides)
        result.configs = known
    return result


def _configs(context: RequestContext, overrides: dict[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in topic_entries(context.runtime, context.metadata, overrides)
    ]


API: Final = Api(ApiKey.CREATE_TOPICS, 2, 7, CreateTopicsRequest, handle, at_controller=True)
