from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.broker.process import metrics_server
from headrace.broker.process.metrics_server import MetricsServer
from headrace.metrics.registry import BrokerMetrics, PartitionGauges


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class Served:
    def __init__(self) -> None:
        self.metrics = BrokerMetrics()
        self.wrong: str | None = None
        self.outside: str | None = None
        self.server = MetricsServer(self.metrics, SystemClock(), self)
        self.address = ("", 0)

    def broken(self) -> str | None:
        return self.wrong

    def degraded(self) -> str | None:
        return self.outside

    async def unready(self) -> str | None:
        return self.outside

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(request)
        raw = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        await writer.wait_closed()
        head, _, body = raw.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return int(status.split(" ")[1]), headers, body


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    served.address = await served.server.start("127.0.0.1", 0)
    yield served
    await served.server.stop()


async def test_metrics_can_be_parsed_and_hold_every_partition_once(served: Served) -> None:
    served.metrics.topic("a").messages_in += 5
    served.metrics.read_partitions = lambda: [PartitionGauges("a", at, at, 0, 0, 1) for at in range(200)]
    status, headers, body = await served.ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert int(headers["Content-Length"]) == len(body)
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    assert len(families["kafka_log_log_size"].samples) == 200
    assert body.count(b"# TYPE kafka_log_log_size ") == 1
    assert families["kafka_server_brokertopicmetrics_messagesin"].samples[0].value == 5
    assert "process_resident_memory_bytes" in families


async def test_what_a_restart_makes_worse_is_said_and_asks_for_none(served: Served) -> None:
    assert (await served.ask(b"GET /readyz HTTP/1.1\r\n\r\n"))[::2] == (200, b"ok\n")
    served.outside = "ZooKeeper does not answer"
    assert (await served.ask(b"GET /healthz HTTP/1.1\r\n\r\n"))[::2] == (
        200,
        b"degraded: ZooKeeper does not answer\n",
    )
    assert (await served.ask(b"GET /readyz HTTP/1.1\r\n\r\n"))[::2] == (503, b"ZooKeeper does not answer\n")


async def test_health(served: Served) -> None:
    assert (await served.ask(b"GET /healthz HTTP/1.1\r\n\r\n"))[::2] == (200, b"ok\n")
    served.wrong = "directory /data/a failed"
    assert (await served.ask(b"GET /healthz?x=1 HTTP/1.1\r\n\r\n"))[::2] == (
        503,
        b"directory /data/a failed\n",
    )


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /metrics SPDY/9\r\n\r\n", 400),
    ],
)
async def test_what_is_not_served(served: Served, request_bytes: bytes, status: int) -> None:
    assert (await served.ask(request_bytes))[0] == status


async def test_head_has_no_body(served: Served) -> None:
    status, headers, body = await served.ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert (status, headers["Content-Length"], body) == (200, "3", b"")


async def test_a_head_that_never_ends_is_cut_off(served: Served) -> None:
    reader, writer = await asyncio.open_connection(*served.address)
    writer.write(b"GET /" + b"a" * 4 * metrics_server.HEAD_LIMIT)
    try:
        assert await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionResetError:
        # The server closed while bytes of ours were still unread: the system answers with a reset.
        pass
    writer.close()
    assert (await served.ask(b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200


async def test_a_silent_peer_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "HEAD_TIMEOUT_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*served.address)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()


async def test_a_large_scrape_leaves_the_loop_free(served: Served) -> None:
    rows = [PartitionGauges(f"topic-{at}", 0, at, 0, at, 1) for at in range(4000)]
    served.metrics.read_partitions = lambda: rows
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    status, _, body = await served.ask(b"GET /metrics HTTP/1.1\r\n\r\n")
    counting.cancel()
    assert status == 200
    assert body.count(b"\nkafka_log_log_size{") == 4000
    # Four families in slices of 64 series: the loop must have turned at least that often.
    assert turns > 4 * 4000 / metrics_server.SLICE_SERIES


async def test_stopping_ends_open_connections() -> None:
    served = Served()
    served.address = await served.server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*served.address)
    await asyncio.sleep(0.01)
    await asyncio.wait_for(served.server.stop(), 5)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
