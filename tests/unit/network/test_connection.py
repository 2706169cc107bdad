"""The connection against a real socket pair: framing, order, limits."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.core.errors import InvalidRequest
from headrace.core.memory import MemoryShare
from headrace.core.ports import File, FileRange
from headrace.log.os_disk import OsDisk
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import NO_RESPONSE, DelayedResponse, Response
from tests.unit.network import cold_files, tls_material


def open_file(path: Path) -> File:
    return OsDisk().open(str(path))


class Script:
    """A handler that answers by the first byte of the frame."""

    def __init__(self) -> None:
        self.pending: list[DelayedResponse] = []
        self.seen: list[bytes] = []
        self.file: File | None = None
        self.range = (0, 0)
        self.hurries = False
        """Answers that wait end their waiting when something comes behind them."""

    def file_range(self) -> FileRange:
        assert self.file is not None
        return FileRange(self.file, *self.range)

    def _end_waiting(self, pending: DelayedResponse) -> None:
        asyncio.get_running_loop().call_soon(lambda: pending.complete([b"early!"]))

    def __call__(self, connection: Connection, frame: memoryview) -> Response:
        data = bytes(frame)
        self.seen.append(data)
        if data[:1] == b"w":
            pending = DelayedResponse(exclusive=True)
            self.pending.append(pending)
            if self.hurries:
                pending.on_overtaken = lambda: self._end_waiting(pending)
            return pending
        if data[:1] == b"p":
            pending = DelayedResponse(exclusive=False)
            self.pending.append(pending)
            return pending
        if data[:1] == b"n":
            return NO_RESPONSE
        if data[:1] == b"L":
            return [b"=" * 100_000]
        if data[:1] == b"!":
            raise InvalidRequest("refused")
        if data[:1] == b"f":
            assert self.file is not None
            return [b"head:", self.file_range(), b":tail"]
        return [b"=" + data]


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.fixture
async def script() -> Script:
    return Script()


@pytest.fixture(params=["plaintext", "TLS"])
async def endpoint(script: Script, request: pytest.FixtureRequest) -> AsyncIterator[Endpoint]:
    threads = ThreadPoolExecutor(1)
    endpoint = Endpoint(
        asyncio.get_running_loop(),
        threads,
        max_frame_bytes=8_000_000,
        max_connections=3,
        max_in_flight=4,
    )
    if request.param == "TLS":
        endpoint.tls[""] = tls_material.settings()
    yield endpoint
    endpoint.close()
    threads.shutdown()


async def dial(endpoint: Endpoint, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = tls_material.client_context() if endpoint.tls else None
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def connect(endpoint: Endpoint, script: Script) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = endpoint.bind("127.0.0.1", 0)
    endpoint.start_accepting(script)
    return await dial(endpoint, port)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except ConnectionError:
        pass


async def test_frames_cut_anywhere_are_served_once(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    stream = frame(b"one") + frame(b"two" * 1000) + frame(b"x")
    for at in range(0, len(stream), 7):
        writer.write(stream[at : at + 7])
        await writer.drain()
        await asyncio.sleep(0)
    expected = b"=one=" + b"two" * 1000 + b"=x"
    assert await reader.readexactly(len(expected)) == expected
    await close(writer)


async def test_many_frames_in_one_read_are_answered_in_order(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(b"".join(frame(b"%d" % n) for n in range(200)))
    expected = b"".join(b"=%d" % n for n in range(200))
    assert await reader.readexactly(len(expected)) == expected
    await close(writer)


async def test_a_large_frame_arrives_whole(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    body = b"b" + os.urandom(5_000_000)
    writer.write(frame(body))
    await writer.drain()
    assert await reader.readexactly(len(body) + 1) == b"=" + body
    await asyncio.sleep(0)
    assert endpoint.request_memory.share.used_bytes == 0
    await close(writer)


async def test_an_exclusive_answer_holds_back_later_requests(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"wait") + frame(b"after"))
    while not script.pending:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)
    assert script.seen == [b"wait"]
    writer.write(frame(b"last"))
    await asyncio.sleep(0.02)
    assert script.seen == [b"wait"]
    script.pending[0].complete([b"!"])
    assert await reader.readexactly(12) == b"!=after=last"
    await close(writer)


@pytest.mark.parametrize("together", [True, False])
async def test_an_answer_that_waits_is_told_that_something_came_behind_it(
    endpoint: Endpoint, script: Script, together: bool
) -> None:
    script.hurries = True
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"wait") + (frame(b"after") if together else b""))
    if not together:
        while not script.pending:
            await asyncio.sleep(0.001)
        writer.write(frame(b"after"))
    assert await reader.readexactly(12) == b"early!=after"
    await close(writer)


async def test_pipelined_answers_keep_the_order_of_requests(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"p1") + frame(b"p2") + frame(b"x"))
    while len(script.seen) < 3:
        await asyncio.sleep(0.001)
    script.pending[1].complete([b"two"])
    await asyncio.sleep(0.02)
    script.pending[0].complete([b"one"])
    assert await reader.readexactly(8) == b"onetwo=x"
    await close(writer)


async def test_no_more_than_the_limit_is_in_flight(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(b"".join(frame(b"p%d" % n) for n in range(8)))
    await asyncio.sleep(0.05)
    assert len(script.seen) == 4
    for n in range(8):
        while len(script.pending) <= n:
            await asyncio.sleep(0.001)
        script.pending[n].complete([b"%d" % n])
    assert await reader.readexactly(8) == b"01234567"
    await close(writer)


@pytest.mark.parametrize("length", [20, 16 * 1024, 16 * 1024 + 1, 3_000_000])
async def test_file_ranges_lie_between_their_neighbours(
    endpoint: Endpoint, script: Script, tmp_path: Path, length: int
) -> None:
    content = os.urandom(length + 50)
    path = tmp_path / "data"
    path.write_bytes(content)
    script.file = open_file(path)
    script.range = (10, length)
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"f") + frame(b"x"))
    expected = b"head:" + content[10 : 10 + length] + b":tail=x"
    assert await reader.readexactly(len(expected)) == expected
    await close(writer)
    script.file.close()


async def test_a_cold_range_is_read_by_a_thread(endpoint: Endpoint, script: Script, tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    script.file = open_file(cold_files.write(tmp_path, content))
    script.range = (0, len(content))
    reader, writer = await connect(endpoint, script)
    expected = b"head:" + content + b":tail"
    for _ in range(cold_files.ATTEMPTS):
        cold_files.drop_pages(tmp_path)
        writer.write(frame(b"f"))
        assert await reader.readexactly(len(expected)) == expected
        if endpoint.page_cache.cold_reads:
            break
    await close(writer)
    script.file.close()
    assert endpoint.page_cache.cold_reads == 1


@pytest.mark.parametrize("length", [0, -1, 8_000_001, 2**31 - 1])
async def test_an_impossible_length_ends_the_connection(
    endpoint: Endpoint, script: Script, length: int
) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(struct.pack(">i", length) + b"rest")
    assert await reader.read() == b""
    assert not endpoint.connections
    await close(writer)


async def test_a_length_alone_holds_little_memory(endpoint: Endpoint, script: Script) -> None:
    _, writer = await connect(endpoint, script)
    writer.write(struct.pack(">i", 7_900_000) + b"begin")
    while not endpoint.request_memory.share.used_bytes:
        await asyncio.sleep(0.001)
    assert endpoint.request_memory.share.used_bytes <= 1024 * 1024
    await close(writer)


async def test_a_peer_that_does_not_read_is_not_served_further(endpoint: Endpoint, script: Script) -> None:
    _, writer = await connect(endpoint, script)
    body = b"b" * 100_000
    for _ in range(300):
        writer.write(frame(body))
    await asyncio.sleep(0.3)
    assert len(script.seen) < 300
    writer.transport.abort()


async def test_an_abandoned_answer_is_told(endpoint: Endpoint, script: Script) -> None:
    _, writer = await connect(endpoint, script)
    writer.write(frame(b"w"))
    while not script.pending:
        await asyncio.sleep(0.001)
    await close(writer)
    while endpoint.connections:
        await asyncio.sleep(0.001)
    assert script.pending[0].is_abandoned
    script.pending[0].complete([b"late"])


async def test_connections_above_the_limit_are_refused(endpoint: Endpoint, script: Script) -> None:
    port = endpoint.bind("127.0.0.1", 0)
    endpoint.start_accepting(script)
    writers = []
    for _ in range(3):
        _, writer = await dial(endpoint, port)
        writers.append(writer)
    try:
        reader, writer = await dial(endpoint, port)
    except ConnectionError:
        assert endpoint.tls, "before the handshake"
    else:
        assert await reader.read() == b""
        writers.append(writer)
    assert endpoint.refused == 1
    for writer in writers:
        await close(writer)


async def test_many_questions_with_large_answers_do_not_pile_up(endpoint: Endpoint, script: Script) -> None:
    _, writer = await connect(endpoint, script)
    writer.write(frame(b"L") * 20_000)
    await asyncio.sleep(0.3)
    served = len(script.seen)
    assert served * 100_000 < 30_000_000  # what the socket and one joined send hold, not two gigabytes
    await asyncio.sleep(0.1)
    assert len(script.seen) == served
    writer.transport.abort()


async def test_answers_behind_another_count_as_in_flight(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"p") + frame(b"x") * 50)
    await asyncio.sleep(0.05)
    assert len(script.seen) == 4
    script.pending[0].complete([b"first"])
    assert await reader.readexactly(5 + 50 * 2) == b"first" + b"=x" * 50
    await close(writer)


async def test_what_was_answered_before_a_refusal_is_still_sent(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"one") + frame(b"two") + frame(b"!"))
    assert await reader.read() == b"=one=two"
    await close(writer)


class Crowd:
    """An endpoint with little memory, and peers of it."""

    def __init__(self, handler: Script, speaks_tls: bool) -> None:
        self.threads = ThreadPoolExecutor(1)
        self.endpoint = Endpoint(
            asyncio.get_running_loop(),
            self.threads,
            max_frame_bytes=8_000_000,
            requests=MemoryShare("requests", 1),
            answers=MemoryShare("answers", 20_000_000),
        )
        if speaks_tls:
            self.endpoint.tls[""] = tls_material.settings()
        self.port = self.endpoint.bind("127.0.0.1", 0)
        self.endpoint.start_accepting(handler)
        self.peers: list[asyncio.StreamWriter] = []

    async def join(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await dial(self.endpoint, self.port)
        self.peers.append(writer)
        return reader, writer

    def leave(self) -> None:
        for writer in self.peers:
            writer.transport.abort()
        self.endpoint.close()
        self.threads.shutdown()


@pytest.fixture(params=["plaintext", "TLS"])
async def crowd(script: Script, request: pytest.FixtureRequest) -> AsyncIterator[Crowd]:
    crowd = Crowd(script, request.param == "TLS")
    yield crowd
    crowd.leave()


async def test_without_room_frames_are_served_as_they_would_be_with_it(crowd: Crowd, script: Script) -> None:
    """Cut anywhere, small and large, with others behind them: nothing is lost, doubled or out of order."""
    crowd.endpoint.request_memory.keep(2 << 20)
    assert crowd.endpoint.request_memory.is_tight
    reader, writer = await crowd.join()
    bodies = [b"one", b"x" * 3000, b"y" * 5000, b"z" * 300_000, b"n", b"l" * 3_000_000, b"end"]
    stream = b"".join(frame(body) for body in bodies)
    for at in range(0, len(stream), 70_001):
        writer.write(stream[at : at + 70_001])
        await asyncio.sleep(0)
    expected = b"".join(b"=" + body for body in bodies if body != b"n")
    assert await reader.readexactly(len(expected)) == expected
    assert script.seen == bodies
    assert crowd.endpoint.request_memory.share.used_bytes == 2 << 20


async def test_a_frame_waits_until_another_one_is_finished(crowd: Crowd, script: Script) -> None:
    body = b"a" * 7_000_000
    first_reader, first = await crowd.join()
    second_reader, second = await crowd.join()
    memory = crowd.endpoint.request_memory
    first.write(frame(body)[:-1])
    while not any(claim.is_granted for claim in memory.claims()):
        await asyncio.sleep(0.001)
    second.write(frame(body))
    while not memory.waiting_count:
        await asyncio.sleep(0.001)
    assert script.seen == []
    first.write(b"a")
    assert len(await second_reader.readexactly(7_000_001)) == 7_000_001
    assert len(await first_reader.readexactly(7_000_001)) == 7_000_001
    assert memory.share.used_bytes == 0


async def test_a_frame_that_stands_still_makes_room_for_one_that_waits(crowd: Crowd, script: Script) -> None:
    body = b"a" * 7_000_000
    still_reader, still = await crowd.join()
    reader, writer = await crowd.join()
    memory = crowd.endpoint.request_memory
    still.write(frame(body)[:200_000])
    while not any(claim.is_granted for claim in memory.claims()):
        await asyncio.sleep(0.001)
    writer.write(frame(body))
    while not memory.waiting_count:
        await asyncio.sleep(0.001)
    crowd.endpoint.tick += 100
    crowd.endpoint.close_overdue()
    assert await still_reader.read() == b""
    assert len(await reader.readexactly(7_000_001)) == 7_000_001


async def test_what_comes_behind_a_request_that_blocks_is_counted(crowd: Crowd, script: Script) -> None:
    reader, writer = await crowd.join()
    writer.write(frame(b"w") + frame(b"x") * 10_000)
    memory = crowd.endpoint.request_memory
    while not memory.share.used_bytes:
        await asyncio.sleep(0.001)
    assert memory.share.used_bytes <= 50_000
    script.pending[0].complete([b"first"])
    assert await reader.readexactly(5 + 20_000) == b"first" + b"=x" * 10_000
    assert memory.share.used_bytes == 0


async def test_peers_that_do_not_read_hold_no_more_than_their_share(crowd: Crowd, script: Script) -> None:
    writers = [(await crowd.join())[1] for _ in range(40)]
    for writer in writers:
        writer.write(frame(b"L") * 200)
    share = crowd.endpoint.unsent.share
    while not share.refusals:
        await asyncio.sleep(0.001)
    assert share.used_bytes <= share.limit_bytes
    reader, writer = await crowd.join()
    writer.write(frame(b"x"))
    assert await reader.readexactly(2) == b"=x"


async def test_answers_behind_one_that_pends_do_not_pile_up(crowd: Crowd, script: Script) -> None:
    reader, writer = await crowd.join()
    writer.write(frame(b"p") + frame(b"L") * 60)
    while len(script.seen) < 12:
        await asyncio.sleep(0.001)
    assert crowd.endpoint.unsent.share.used_bytes > 1 << 20
    script.pending[0].complete([b"first"])
    assert len(await reader.readexactly(5 + 60 * 100_000)) == 6_000_005
    assert crowd.endpoint.unsent.share.used_bytes == 0


async def test_a_muted_connection_serves_nothing_and_sends_what_is_due(
    endpoint: Endpoint, script: Script
) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"p-later") + frame(b"also"))
    while len(script.seen) < 2:
        await asyncio.sleep(0)
    (connection,) = endpoint.connections
    connection.mute()
    writer.write(frame(b"muted-1") + frame(b"muted-2"))
    script.pending[0].complete([b"=later"])
    assert await reader.readexactly(11) == b"=later=also"
    writer.write(frame(b"m" * 200_000))
    await asyncio.sleep(0.05)
    assert script.seen == [b"p-later", b"also"]
    connection.unmute()
    rest = b"=muted-1=muted-2=" + b"m" * 200_000
    assert await reader.readexactly(len(rest)) == rest
    await close(writer)


async def test_requests_behind_one_that_mutes_wait(endpoint: Endpoint, script: Script) -> None:
    """All came in one read: the connection stops right behind the request that was over its quota."""

    def mute_after_first(connection: Connection, view: memoryview) -> Response:
        answer = script(connection, view)
        if bytes(view) == b"over":
            connection.mute()
        return answer

    port = endpoint.bind("127.0.0.1", 0)
    endpoint.start_accepting(mute_after_first)
    reader, writer = await dial(endpoint, port)
    writer.write(frame(b"1st") + frame(b"over") + frame(b"behind") + frame(b"x" * 100_000))
    assert await reader.readexactly(9) == b"=1st=over"
    await asyncio.sleep(0.05)
    assert script.seen == [b"1st", b"over"]
    (connection,) = endpoint.connections
    assert connection.is_muted
    connection.unmute()
    assert await reader.readexactly(7) == b"=behind"
    assert len(await reader.readexactly(100_001)) == 100_001
    writer.write(frame(b"again"))
    assert await reader.readexactly(6) == b"=again"
    await close(writer)


async def test_a_muted_connection_that_its_peer_leaves_is_closed(endpoint: Endpoint, script: Script) -> None:
    reader, writer = await connect(endpoint, script)
    writer.write(frame(b"x"))
    assert await reader.readexactly(2) == b"=x"
    (connection,) = endpoint.connections
    connection.mute()
    await close(writer)
    async with asyncio.timeout(10):
        while endpoint.connections:
            await asyncio.sleep(0.01)
    connection.unmute()
    assert connection.closed


async def test_a_connection_over_its_quota_is_held_and_closed(endpoint: Endpoint, script: Script) -> None:
    over: list[float] = []
    endpoint.delay_of = lambda _host, _listener: over.pop() if over else 0.0
    port = endpoint.bind("127.0.0.1", 0)
    endpoint.start_accepting(script)
    over.append(0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = asyncio.get_running_loop().time()
    with pytest.raises(EOFError):
        await reader.readexactly(1)
    assert asyncio.get_running_loop().time() - began >= 0.04
    await close(writer)
    reader, writer = await dial(endpoint, port)
    writer.write(frame(b"x"))
    assert await reader.readexactly(2) == b"=x"
    await close(writer)
