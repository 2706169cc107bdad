"""Changes and questions about many topics, each in one request for hundreds of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from headrace.client.agreement import until_all_agree
from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigSource, ResourceType
from headrace.client.errors import Refused
from headrace.client.many_settings import set_values
from headrace.client.refusals import RETRIABLE, refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

T = TypeVar("T")

TOPICS_AT_ONCE: Final = 200
PARTITIONS_AT_ONCE: Final = 10_000
"""A broker makes no more by one request."""
_SET: Final = 0
_DELETE: Final = 1
_Outcome = tuple[str, int, str | None]
"""Topic, error code, message."""
_Ask = Callable[[Sequence[str]], Awaitable[list[_Outcome]]]


class NewTopic(NamedTuple):
    """-1 asks for the broker's default."""

    name: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]


async def topic_settings(cluster: Cluster, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What is set for each of these topics itself. One that has gone meanwhile is left out."""
    return await set_values(
        cluster, ResourceType.TOPIC, names, lambda each: each.config_source == ConfigSource.TOPIC
    )


async def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> dict[str, Refused]:
    """Why some were not made; the others are there, and every broker knows them."""
    wanted = {topic.name: topic for topic in topics}

    async def ask(some: Sequence[str]) -> list[_Outcome]:
        request = CreateTopicsRequest(
            topics=[_creatable(wanted[name]) for name in some],
            timeout_ms=cluster.request_timeout_ms,
            validate_only=validate_only,
        )
        reply = await cluster.ask_controller(request, CreateTopicsResponse)
        return [(each.name, each.error_code, each.error_message) for each in reply.topics]

    slices = _in_requests({name: max(1, topic.partitions) for name, topic in wanted.items()})
    refused = await _each(cluster, slices, ask, already=ErrorCode.TOPIC_ALREADY_EXISTS)
    if not validate_only:
        await until_all_agree(cluster, [name for name in wanted if name not in refused], made=True)
    return refused


async def add_partitions(
    cluster: Cluster, totals: Mapping[str, int], *, validate_only: bool = False
) -> dict[str, Refused]:
    """Make so many partitions of each topic; why some were refused."""

    async def ask(some: Sequence[str]) -> list[_Outcome]:
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=totals[name], assignments=None) for name in some],
            timeout_ms=cluster.request_timeout_ms,
            validate_only=validate_only,
        )
        reply = await cluster.ask_controller(request, CreatePartitionsResponse)
        return [(each.name, each.error_code, each.error_message) for each in reply.results]

    refused = await _each(cluster, _in_requests(totals), ask)
    if not validate_only:
        await until_all_agree(cluster, [name for name in totals if name not in refused])
    return refused


async def alter_settings(
    cluster: Cluster, changes: Mapping[str, Mapping[str, str | None]], *, validate_only: bool = False
) -> dict[str, Refused]:
    """Set these settings of each topic; None takes one away. Why some topics were refused."""

    async def ask(some: Sequence[str]) -> list[_Outcome]:
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=int(ResourceType.TOPIC),
                    resource_name=name,
                    configs=[
                        AlterableConfig(
                            name=setting, config_operation=_DELETE if value is None else _SET, value=value
                        )
                        for setting, value in changes[name].items()
                    ],
                )
                for name in some
            ],
            validate_only=validate_only,
        )
        reply = await cluster.ask_controller(request, IncrementalAlterConfigsResponse)
        return [(each.resource_name, each.error_code, each.error_message) for each in reply.responses]

    return await _each(cluster, _slices(list(changes), TOPICS_AT_ONCE), ask)


async def _each(
    cluster: Cluster, slices: Iterable[Sequence[str]], ask: _Ask, *, already: ErrorCode | None = None
) -> dict[str, Refused]:
    """What passes is tried again for those that it happened to. If an answer was lost, `already` says that
    the first attempt has done it."""
    refused: dict[str, Refused] = {}
    for some in slices:
        left = dict.fromkeys(some)
        attempts = 0

        async def attempt(left: dict[str, None] = left) -> None:
            nonlocal attempts
            attempts += 1
            passing: Refused | None = None
            for name, code, message in await ask(list(left)):
                error = refusal(code, f"topic {name}", message)
                if code in RETRIABLE:
                    passing = error
                    continue
                del left[name]
                if code and not (code == already and attempts > 1):
                    refused[name] = error
            cluster.forget()
            if passing is not None:
                raise passing

        await cluster.retried(attempt)
    return refused


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replicas,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.settings.items()],
    )


def _in_requests(partitions: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """A topic that is too large for any request is alone in one."""
    some: list[str] = []
    room = PARTITIONS_AT_ONCE
    for name, count in partitions.items():
        if some and (len(some) == TOPICS_AT_ONCE or count > room):
            yield some
            some, room = [], PARTITIONS_AT_ONCE
        some.append(name)
        room -= count
    if some:
        yield some


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
