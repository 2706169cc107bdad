"""A request in parts asks for the same as the whole, and the answers to the parts make the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.broker.requests.duplicates import drop_duplicates
from headrace.broker.requests.long_answers import LongAnswer
from headrace.broker.requests.request_parts import is_long, parts_of
from headrace.broker.requests.request_shapes import SHAPES, Listed, Shape
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

VERSION = 9
SHAPE = SHAPES[int(ApiKey.OFFSET_FETCH) << 8 | VERSION]


def _request(groups: dict[str, dict[str, list[int]] | None]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=list(indexes))
                    for name, indexes in topics.items()
                ],
            )
            for group, topics in groups.items()
        ]
    )


def _answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
    """What a broker says that knows nothing."""
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(partition_index=index, committed_offset=index)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in request.groups
        ]
    )


def _in_parts(request: OffsetFetchRequest, shape: Shape) -> tuple[int, bytes]:
    answer = LongAnswer(shape.answers, VERSION)
    largest = 0
    for part in parts_of(request, shape):
        assert isinstance(part, OffsetFetchRequest)
        asked = sum(len(t.partition_indexes) for g in part.groups for t in g.topics or ())
        largest = max(largest, asked)
        for _ in answer.add(_answer(part)):
            pass
    return largest, answer.whole().to_bytes(VERSION)


@pytest.mark.parametrize("part", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "groups",
    [
        {"a": {"t": list(range(20))}},
        {"a": {"t": [0, 1], "u": [5]}, "b": {"t": [0, 1, 2, 3]}, "c": {}},
        {"a": None, "b": {"t": list(range(9)), "u": list(range(9))}, "c": None},
        {str(number): {"t": [0]} for number in range(10)},
    ],
)
def test_the_answers_to_the_parts_are_the_answer(groups: Any, part: int) -> None:
    request = _request(groups)
    largest, whole = _in_parts(request, SHAPE._replace(part=part))
    assert whole == _answer(request).to_bytes(VERSION)
    assert largest <= part


def test_a_request_is_long_by_its_innermost_things() -> None:
    assert not is_long(_request({"a": {"t": list(range(400))}}), SHAPE)
    assert is_long(_request({"a": {"t": list(range(300)), "u": list(range(300))}}), SHAPE)
    assert not is_long(_request({"a": None}), SHAPE)
    assert is_long(_request({"a": None, "b": None}), SHAPE)


def test_what_is_mentioned_twice_stays_together() -> None:
    shape = SHAPES[int(ApiKey.CREATE_TOPICS) << 8 | 7]._replace(part=3)
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in "abccdeff"])
    drop_duplicates(request, shape)
    parts: list[Any] = list(parts_of(request, shape))
    assert ["".join(topic.name for topic in part.topics) for part in parts] == ["abcc", "def" + "f"]


def test_mentions_are_joined() -> None:
    request = _request({"a": {"t": [1, 2, 1]}})
    request.groups += _request({"b": None, "a": {"t": [3, 2], "u": [1]}}).groups
    drop_duplicates(request, SHAPE)
    assert request == _request({"a": {"t": [1, 2, 3], "u": [1]}, "b": None})


@pytest.mark.parametrize("rest", [None, []])
def test_who_asks_for_everything_and_for_something_asks_for_everything(rest: list[str] | None) -> None:
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=keys)
        for keys in (["retention.ms"], rest)
    ]
    request = DescribeConfigsRequest(resources=resources)
    drop_duplicates(request, SHAPES[int(ApiKey.DESCRIBE_CONFIGS) << 8 | 4])
    assert len(request.resources) == 1
    assert not request.resources[0].configuration_keys


def test_every_list_that_is_named_exists() -> None:
    """A slip in the table would show only when somebody sends such a request."""
    from headrace.broker.requests.apis import BY_KEY

    for number, shape in SHAPES.items():
        api = BY_KEY[number >> 8]
        if api.lowest <= number & 0xFF <= api.highest:
            outermost: tuple[Listed, ...] = shape.lists[:1]
            assert all(each.field in api.request.__slots__ for each in outermost), api.key
