"""Whatever is asked for and whatever is denied: all of it is answered, and nothing twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.broker.authorization import division
from headrace.broker.authorization.division import AT_ONCE, divide, keep
from headrace.broker.authorization.guard import ALLOWED, authorised
from headrace.broker.authorization.table import GUARDS
from headrace.broker.authorization.topic_records import list_offsets
from headrace.broker.requests.api import Api, Call
from headrace.broker.runtime.turns import SLICE_SECONDS, Turns
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.security.acl import Operation
from tests.unit.broker.authorization.realm import ALICE, HOST, on_topic, rights_by

NAMES = st.integers(0, 400).map(lambda number: f"t{number}")
SIZES = st.lists(NAMES, unique=True, max_size=80)


class Clock:
    """A microsecond passes whenever somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now

    def wall_ms(self) -> int:
        return 0


def context_on(loop: asyncio.AbstractEventLoop) -> Any:
    return SimpleNamespace(runtime=SimpleNamespace(turns=Turns(loop, Clock())))


def served_by(asked: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=1)
                    for each in topic.partitions
                ],
            )
            for topic in asked.topics
        ]
    )


def ask(names: list[str], allowed: set[str]) -> tuple[ListOffsetsResponse, list[list[str]]]:
    """The answer, and what the handler was asked for."""
    handed_on: list[list[str]] = []

    def handle(_context: Any, request: Any, _call: Call) -> Message:
        handed_on.append([topic.name for topic in request.topics])
        return served_by(request)

    async def serve() -> Any:
        api = Api(ApiKey.LIST_OFFSETS, 1, 9, ListOffsetsRequest, handle)
        connection: Any = None
        call = Call(9, "test", connection, ALICE, HOST, rights_by(on_topic(Operation.DESCRIBE, *allowed)))
        request = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=index)])
                for index, name in enumerate(names)
            ]
        )
        context = context_on(asyncio.get_running_loop())
        served = authorised(context, GUARDS, api, request, call)
        return served if isinstance(served, Message) else await served

    return asyncio.run(serve()), handed_on


@settings(max_examples=60, deadline=None)
@given(SIZES, st.sets(NAMES, max_size=200))
def test_served_and_denied_are_together_what_was_asked_for(names: list[str], allowed: set[str]) -> None:
    answer, handed_on = ask(names, allowed)
    told = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert sorted(topic.name for topic in answer.topics) == sorted(names), "all of them, and none twice"
    assert {name for name, code in told.items() if code == 0} == allowed & set(names)
    assert {code for code in told.values() if code} <= {29}
    assert handed_on in ([], [[name for name in names if name in allowed]]), "in the order of the request"
    asked_in = {topic.name: topic.partitions[0].partition_index for topic in answer.topics}
    assert asked_in == {name: index for index, name in enumerate(names)}


def test_a_handler_is_not_asked_for_nothing() -> None:
    """In some requests an empty list asks for everything."""
    _, handed_on = ask(["a", "b"], set())
    assert handed_on == []


@pytest.mark.parametrize("count", [1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE])
def test_many_are_divided_as_few_are(count: int) -> None:
    names = [f"t{number}" for number in range(count)]
    allowed = set(names[::3])
    answer, handed_on = ask(names, allowed)
    assert sorted(topic.name for topic in answer.topics) == sorted(names)
    assert handed_on == [names[::3]]
    assert ask(names, set(names))[1] == [names]


async def test_no_turn_of_the_loop_looks_at_more_than_a_slice() -> None:
    context = context_on(asyncio.get_running_loop())
    looked = 0
    most, before = 0, 0

    def is_allowed(_: int) -> bool:
        nonlocal looked
        looked += 1
        return True

    async def watch() -> None:
        nonlocal most, before
        while True:
            await asyncio.sleep(0)
            most, before = max(most, looked - before), looked

    watcher = asyncio.ensure_future(watch())
    verdict: Any = divide(context, range(20_000), is_allowed, lambda *_: ALLOWED)
    assert await verdict is ALLOWED
    assert looked == 20_000
    assert most <= SLICE_SECONDS * 1e6 + 2
    looked = most = before = 0
    assert await keep(context, range(20_000), is_allowed) == list(range(20_000))
    assert most <= SLICE_SECONDS * 1e6 + 2
    watcher.cancel()


def test_each_entry_is_asked_about_once() -> None:
    asked: list[int] = []

    def is_allowed(entry: int) -> bool:
        asked.append(entry)
        return entry != 2

    context: Any = None
    divided: list[Any] = []
    divide(context, [1, 2, 3], is_allowed, lambda allowed, denied: divided.append((allowed, denied)))
    assert asked == [1, 2, 3]
    assert divided == [([1, 3], [2])]


def test_what_is_denied_twice_is_answered_once() -> None:
    rights = rights_by([])
    twice = [ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(), ListOffsetsPartition()])] * 2
    context: Any = None
    call: Any = None
    answer: Any = list_offsets(context, rights, ListOffsetsRequest(topics=twice), call)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("t", 1)]


def test_a_response_that_is_refused_as_a_whole_says_only_that() -> None:
    entries = division.Entries("topics", lambda each: each, ListOffsetsResponse, "topics", lambda each: each)
    decided: Any = division.without(ListOffsetsRequest(), entries, ["a"], ["b"])
    whole = SimpleNamespace(error_code=16, topics=[])
    assert decided.complete(whole).topics == []
