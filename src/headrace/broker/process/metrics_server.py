"""Serves /metrics, /healthz and /readyz over HTTP or HTTPS, on the broker's own event loop.

On the loop, because the counters belong to it and need no locks; in slices, because a scrape of thousands
of partitions must not hold up a produce. A thread would do worse: whenever the loop came back from a
system call it would have to wait for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from headrace.broker.process.metrics_guard import MetricsGuard
from headrace.broker.runtime.logging import get_logger
from headrace.core.ports import Clock
from headrace.http.gate import Forbidden, Unauthenticated
from headrace.http.passwords import TooBusy
from headrace.metrics.registry import BrokerMetrics
from headrace.tls.renewable import renewable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

SLICE_SERIES = 64
"""Series rendered between two turns of the loop: less than a millisecond."""
HEAD_LIMIT = 8192
HEAD_TIMEOUT_SECONDS = 5.0
CONNECTIONS = 16

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}
_TEXT = "text/plain; charset=utf-8"


class Health(Protocol):
    """How the broker is: None where it is well, otherwise what is wrong."""

    def broken(self) -> str | None:
        """What only a repair of this broker mends."""
        ...

    def degraded(self) -> str | None:
        """What lies outside it, and a restart would make worse. Told at once, as far as it is known."""
        ...

    async def unready(self) -> str | None:
        """Why no other broker may be stopped now. May ask before it answers."""
        ...


def load() -> None:
    """Import what a MetricsServer needs. For a thread: it reads files, and takes some 60 ms."""
    from headrace.metrics import collector  # noqa: F401 - to have it imported


class MetricsServer:
    def __init__(
        self,
        metrics: BrokerMetrics,
        clock: Clock,
        health: Health,
        *,
        guard: MetricsGuard | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """After `load`. Without a guard everybody is served. `tls` is asked for each connection, so that a
        new certificate counts at once."""
        # Imported here: only a broker that serves metrics pays for prometheus-client.
        from prometheus_client import CollectorRegistry, ProcessCollector

        from headrace.metrics.collector import BrokerCollector

        self._collector = BrokerCollector(metrics, clock.monotonic)
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        self._health = health
        self._guard = guard
        self._tls = tls
        self._server: asyncio.Server | None = None
        # One scrape at a time: a second reader waits, so that two cannot take the loop's time together.
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Bind, and give the address that was bound. OSError where that fails."""
        if self._tls is None:
            self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_LIMIT)
        else:
            self._server = await asyncio.start_server(
                self._serve,
                host,
                port,
                limit=HEAD_LIMIT,
                ssl=renewable(self._tls),
                ssl_handshake_timeout=HEAD_TIMEOUT_SECONDS,
            )
        bound: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        scheme = "http" if self._tls is None else "https"
        get_logger("headrace.metrics").info("metrics", url=f"{scheme}://{bound[0]}:{bound[1]}/metrics")
        return bound

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        # Not wait_closed(): from Python 3.12 on it waits until every peer has read its answer, or for ever.
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._admitted(head, writer) or await self._answer(head))
            async with asyncio.timeout(HEAD_TIMEOUT_SECONDS):
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            # Not an HTTP client, or one that went away; nobody is left to tell.
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _admitted(self, head: bytes, writer: asyncio.StreamWriter) -> bytes | None:
        """What is answered instead to whoever may not ask, before it is looked at what they ask for."""
        if self._guard is None:
            return None
        session = writer.get_extra_info("ssl_object")
        certificate = None if session is None else session.getpeercert(binary_form=True)
        host = str((writer.get_extra_info("peername") or ("",))[0])
        try:
            await self._guard.admit(_authorization(head), certificate, host)
        except Unauthenticated as error:
            return _response(401, f"{error}\n", more=f"WWW-Authenticate: {self._guard.challenge}\r\n")
        except Forbidden as error:
            return _response(403, f"{error}\n")
        except TooBusy as error:
            return _response(503, f"{error}\n")
        return None

    async def _answer(self, head: bytes) -> bytes:
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            return _response(400, "not an HTTP request\n")
        method, target = parts[0], parts[1].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response(405, "only GET\n")
        if target == b"/healthz":
            response = self._liveness()
        elif target == b"/readyz":
            wrong = self._health.broken() or await self._health.unready()
            response = _response(200, "ok\n") if wrong is None else _response(503, f"{wrong}\n")
        elif target in (b"/metrics", b"/"):
            response = await self._metrics()
        else:
            response = _response(404, "there are /metrics, /healthz and /readyz\n")
        return response[: response.index(b"\r\n\r\n") + 4] if method == b"HEAD" else response

    def _liveness(self) -> bytes:
        """503 makes a supervisor restart the broker. So it is kept for what that does not make worse."""
        broken, degraded = self._health.broken(), self._health.degraded()
        if broken is not None:
            return _response(503, f"{broken}\n")
        return _response(200, "ok\n" if degraded is None else f"degraded: {degraded}\n")

    async def _metrics(self) -> bytes:
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

        parts = []
        async with self._turn:
            family_before = ""
            for family in self._collector.slices(SLICE_SERIES):
                if family is not None:
                    text = generate_latest(_Only(family))
                    parts.append(_without_head(text) if family.name == family_before else text)
                    family_before = family.name
                await asyncio.sleep(0)
            # It lists the open descriptors, of which there can be tens of thousands.
            parts.append(await asyncio.to_thread(generate_latest, self._process))
        return _response(200, b"".join(parts), CONTENT_TYPE_PLAIN_0_0_4)


class _Only:
    """A collector of one family: what prometheus-client can render on its own."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _without_head(text: bytes) -> bytes:
    """A family's name and type are said once, at its first piece: two comment lines."""
    return text.split(b"\n", 2)[2]


def _authorization(head: bytes) -> str | None:
    """None where the header is not there, or there twice."""
    found = []
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"authorization":
            found.append(value.decode("latin-1").strip())
    return found[0] if len(found) == 1 else None


def _response(status: int, body: str | bytes, content_type: str = _TEXT, more: str = "") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\n"
        f"{more}"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + content
