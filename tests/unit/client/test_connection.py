from __future__ import annotations

import asyncio
import struct

import pytest

from headrace.client.connection import Connection
from headrace.client.errors import ApiMissing, ConnectionLost, NotAKafkaBroker, TimedOut, Unreachable
from headrace.client.link import TcpDialer
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from tests.ports import own_port
from tests.unit.client.scripted_broker import ScriptedBroker


async def test_nothing_listens() -> None:
    port = own_port()
    with pytest.raises(
        Unreachable, match=f"nothing listens at 127.0.0.1:{port}: is the broker running"
    ) as caught:
        await Connection.open("127.0.0.1", port)
    assert "headrace up" in caught.value.hint


async def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(Unreachable, match=r"no.such.host.invalid"):
        await Connection.open("no.such.host.invalid", 9092, timeout=5)


async def test_versions_are_negotiated() -> None:
    async with ScriptedBroker() as broker:
        broker.ranges[MetadataRequest.API_KEY] = (0, 5)
        connection = await Connection.open("127.0.0.1", broker.port)
        assert connection.version_for(MetadataRequest) == 5
        assert connection.version_for(MetadataRequest, at_most=4) == 4
        assert connection.supports(MetadataRequest.API_KEY)
        assert not connection.supports(ListOffsetsRequest.API_KEY)
        with pytest.raises(ApiMissing, match="has none of LIST_OFFSETS"):
            connection.version_for(ListOffsetsRequest)
        await connection.close()


async def test_ranges_that_do_not_meet() -> None:
    async with ScriptedBroker() as broker:
        broker.ranges[MetadataRequest.API_KEY] = (10, 12)
        connection = await Connection.open("127.0.0.1", broker.port)
        with pytest.raises(ApiMissing, match="versions 10 to 12 of METADATA"):
            connection.version_for(MetadataRequest, at_most=9)
        await connection.close()


async def test_an_old_broker_is_asked_in_version_0() -> None:
    asked = []

    def old(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        asked.append(version)
        entry = ApiVersion(api_key=3, min_version=0, max_version=4)
        return ApiVersionsResponse(error_code=35 if version > 0 else 0, api_keys=[entry])

    async with ScriptedBroker({ApiVersionsRequest: old}) as broker:
        connection = await Connection.open("127.0.0.1", broker.port)
        assert asked == [3, 0]
        assert connection.version_for(MetadataRequest) == 4
        await connection.close()


async def test_brokers_speak_without_asking_for_versions_first() -> None:
    async with ScriptedBroker() as broker:
        link = await TcpDialer().dial("127.0.0.1", broker.port, timeout=5)
        connection = Connection.over(link, "broker 7")
        assert connection.version_for(MetadataRequest) == MetadataRequest.MAX_VERSION
        await connection.request(MetadataRequest(topics=[]), MetadataResponse, version=5)
        assert not broker.seen(ApiVersionsRequest)
        await connection.close()
        assert not link.is_open


async def test_answers_in_flight_are_matched() -> None:
    def offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        return ListOffsetsResponse(throttle_time_ms=request.isolation_level)

    async with ScriptedBroker({ListOffsetsRequest: offsets}) as broker:
        connection = await Connection.open("127.0.0.1", broker.port)
        answers = await asyncio.gather(
            *(
                connection.request(
                    ListOffsetsRequest(isolation_level=n % 100), ListOffsetsResponse, version=5
                )
                for n in range(200)
            )
        )
        assert [answer.throttle_time_ms for answer in answers] == [n % 100 for n in range(200)]
        await connection.close()


async def test_no_answer_in_time_ends_the_connection() -> None:
    async with ScriptedBroker({MetadataRequest: lambda request, version: None}) as broker:
        connection = await Connection.open("127.0.0.1", broker.port)
        with pytest.raises(TimedOut, match=r"no answer to MetadataRequest in 0.1 s"):
            await connection.request(MetadataRequest(topics=[]), MetadataResponse, version=5, timeout=0.1)
        assert not connection.is_open
        with pytest.raises(ConnectionLost):
            await connection.request(MetadataRequest(topics=[]), MetadataResponse, version=5)
        await connection.close()


async def test_a_broker_that_goes_away_fails_who_waits() -> None:
    async with ScriptedBroker({MetadataRequest: lambda request, version: None}) as broker:
        connection = await Connection.open("127.0.0.1", broker.port)
        waiting = asyncio.create_task(
            connection.request(MetadataRequest(topics=[]), MetadataResponse, version=5)
        )
        while not broker.seen(MetadataRequest):
            await asyncio.sleep(0.01)
        broker.drop_connections()
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await waiting
        await connection.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -5),
        struct.pack(">i", 0x7FFFFFFF),
        struct.pack(">ii", 4, 99),
        struct.pack(">iihi", 10, 0, 0, 0x7FFFFFFF),
        b"",
    ],
)
async def test_what_is_not_a_broker(reply: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(NotAKafkaBroker):
        await Connection.open("127.0.0.1", port, timeout=5)
    server.close()
    await server.wait_closed()
