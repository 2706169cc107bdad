"""What a client says that it waits for."""

from __future__ import annotations

import asyncio

import pytest

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused, TimedOut
from headrace.client.waits import Waits
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import DescribeClusterResponse
from tests.unit.client.scripted_broker import ScriptedBroker


def test_a_question_without_an_answer_is_told_until_it_has_one() -> None:
    waits = Waits()
    number = waits.asked("h:1", ApiKey.CREATE_TOPICS)
    assert waits.trouble(60) is None
    assert waits.trouble(0) == "the broker at h:1 has not answered CreateTopics for 0 s"
    waits.answered(number)
    assert waits.trouble(0) is None


def test_whoever_waits_for_other_members_is_in_no_trouble() -> None:
    waits = Waits()
    waits.answered(waits.asked("h:1", ApiKey.JOIN_GROUP))
    waits.asked("h:1", ApiKey.SYNC_GROUP)
    assert waits.trouble(0) is None


def test_what_is_tried_again_is_told_with_its_last_reason() -> None:
    waits, one, other = Waits(), object(), object()
    waits.failed(one, ClientFailure("first"))
    waits.failed(one, ClientFailure("second"))
    waits.failed(other, ClientFailure("third"))
    assert waits.trouble(0) == "second"
    waits.done(one)
    assert waits.trouble(0) == "third"


async def test_a_cluster_notes_silence_and_failures_and_forgets_them() -> None:
    told: list[str | None] = []
    broker = ScriptedBroker({DescribeClusterRequest: lambda _request, _version: None})
    async with broker, Cluster(broker.address, request_timeout=0.2) as cluster:

        async def ask() -> None:
            asking = asyncio.ensure_future(cluster.ask_any(DescribeClusterRequest(), DescribeClusterResponse))
            while not broker.seen(DescribeClusterRequest):
                await asyncio.sleep(0.001)
            told.append(cluster.waits.trouble(0))
            await asking

        with pytest.raises(TimedOut):
            await ask()
        assert told == [f"the broker at {broker.address} has not answered DescribeCluster for 0 s"]
        assert cluster.waits.trouble(0) is None

        async def refuse() -> None:
            told.append(cluster.waits.trouble(0))
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")

        with pytest.raises(Refused):
            await cluster.retried(refuse, timeout=0.05)
        assert told[1:3] == [None, "no leader"]
        assert cluster.waits.trouble(0) is None
