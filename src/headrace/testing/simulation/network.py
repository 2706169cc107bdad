"""A network in memory: hosts, ports, delays, cuts, and connections that break in the ways that TCP breaks.

A process that dies resets its connections and refuses new ones. A host that loses power falls silent, and
knows nothing of old connections when it is back. A cut path is silent; what was sent over it arrives when it
is healed, if both ends still live, and even if the sender has given up meanwhile. Loss is a stall: the kernel
sends again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

from headrace.core.ports import Buffer
from headrace.core.ports_network import PeerRefused, PeerReset, PeerSilent
from headrace.testing.simulation.stream import Segment, Stream
from headrace.testing.simulation.virtual_loop import ProcessLoop
from headrace.testing.simulation.virtual_time import Scheduler

if TYPE_CHECKING:
    from headrace.testing.simulation.endpoint import SimulatedConnection, SimulatedEndpoint

SYN_AGAIN_SECONDS: Final = (1.0, 2.0, 4.0, 8.0)
FIRST_FREE_PORT: Final = 32768


@dataclass(slots=True)
class Weather:
    """What a path does to what is sent over it. The same for all paths, beside what is set for one."""

    least_delay: float = 0.0001
    most_delay: float = 0.002
    stall_chance: float = 0.0
    """Per frame: a lost packet, sent again after a while; everything behind it waits."""
    most_stall: float = 1.5
    reset_chance: float = 0.0
    """Per frame: the connection breaks under it."""
    late_chance: float = 0.3
    """That what a peer had sent when it gave up arrives much later."""
    most_lateness: float = 8.0
    late_read_chance: float = 0.02
    """That an answer that is a range of a file is read from it a moment after it was decided."""


class SimulatedNetwork:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.random = scheduler.random
        self.loop = ProcessLoop(scheduler, "network")
        self.weather = Weather()
        self.fingerprint = 0
        """Of every frame that arrived, and when: two runs that are the same have the same."""
        self.frames = 0
        self.on_delivery: Callable[[str, str, bytes], None] | None = None
        self.on_sent: Callable[[SimulatedLink, bytes], None] | None = None
        """Told of every request when it is under way: late messages that matter are rare by chance alone."""
        self.listening: dict[tuple[str, int], SimulatedEndpoint] = {}
        self.slow_paths: dict[tuple[str, str], float] = {}
        """Seconds that a path takes on top."""
        self._cuts: dict[tuple[str, str], None] = {}
        self._down: dict[str, None] = {}
        self._connections: dict[SimulatedLink, None] = {}
        self._next_port = FIRST_FREE_PORT

    # --- what the weather does ---

    def delay(self, source: str, target: str) -> float:
        weather, random = self.weather, self.random
        seconds = random.uniform(weather.least_delay, weather.most_delay)
        if weather.stall_chance and random.random() < weather.stall_chance:
            seconds += random.uniform(0.2, weather.most_stall)
        if self.slow_paths:
            seconds += self.slow_paths.get((source, target), 0.0) * random.random()
        return seconds

    def passes(self, source: str, target: str) -> bool:
        return (source, target) not in self._cuts and target not in self._down

    def on_frame(self, stream: Stream, frame: bytes) -> None:
        self.frames += 1
        self.fingerprint = crc32(frame, self.fingerprint ^ (int(self.scheduler.now * 1e6) & 0xFFFFFFFF))
        if self.on_delivery is not None:
            self.on_delivery(stream.source, stream.target, frame)

    # --- what tests do to it ---

    def cut(self, source: str, target: str) -> None:
        """Nothing comes through from `source` to `target`, until `heal`. The other direction is untouched."""
        self._cuts[source, target] = None

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Both None: every cut."""
        for path in list(self._cuts):
            if source in (None, path[0]) and target in (None, path[1]):
                del self._cuts[path]
        self._resume_streams()

    def calm(self) -> None:
        self.weather = Weather()
        self.slow_paths.clear()
        self.heal()

    def process_died(self, host: str) -> None:
        """Its kernel closes for it: peers are reset, and nobody listens any more."""
        self._unbind(host)
        for link in list(self._connections):
            if host == link.host:
                self.linger(link.up, lost=self.random.random() < 0.5)
                link.forget_client()
            elif host == link.peer_host:
                self._reset_client(link)
                link.forget_server()

    def host_down(self, host: str) -> None:
        """Power is lost: nothing comes in or out, and what was under way from it is on the wire or gone."""
        self._down[host] = None
        self._unbind(host)
        for link in list(self._connections):
            if host == link.host:
                link.forget_client()
            elif host == link.peer_host:
                link.forget_server()

    def host_up(self, host: str) -> None:
        self._down.pop(host, None)
        self._resume_streams()

    def reset_connections(self, one: str, other: str) -> None:
        """Break what is open between two hosts, as a firewall does that has lost its table."""
        for link in list(self._connections):
            if {link.host, link.peer_host} == {one, other}:
                self.reset(link)

    def stall(self, source: str, target: str, seconds: float) -> None:
        """What is under way from one host to another comes that much later; nothing is lost."""
        for link in self._connections:
            for stream in (link.up, link.down):
                if stream.source == source and stream.target == target:
                    stream.postpone(seconds)

    def overtake(self, link: SimulatedLink, seconds: float) -> None:
        """The end that dialled hears a reset, and begins anew; what it had sent comes that much later."""
        link.up.postpone(seconds)
        link.down.drop()
        link.down.push(None)

    def reset(self, link: SimulatedLink) -> None:
        """Both ends live, and hear of it on their own."""
        self._reset_client(link)
        self.linger(link.up, lost=self.random.random() < 0.5)

    def _reset_client(self, link: SimulatedLink) -> None:
        """Answers that were under way may come before the reset, or be overtaken by it."""
        if self.random.random() < 0.5:
            link.down.drop()
        link.down.push(None)

    def linger(self, stream: Stream, *, lost: bool = False) -> None:
        """The sender has gone. What it sent arrives, perhaps much later, and then the end of the stream."""
        if lost:
            stream.drop()
        elif self.random.random() < self.weather.late_chance:
            stream.postpone(self.random.uniform(0.0, self.weather.most_lateness))
        stream.push(None)

    def _unbind(self, host: str) -> None:
        for address in [address for address in self.listening if address[0] == host]:
            del self.listening[address]

    def _resume_streams(self) -> None:
        for link in list(self._connections):
            for stream in (link.up, link.down):
                if stream.is_stalled and self.passes(stream.source, stream.target):
                    stream.resume(self.random.uniform(0.0, 1.0))

    # --- what endpoints and dialers do ---

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def forget(self, link: SimulatedLink) -> None:
        self._connections.pop(link, None)

    def connect(
        self, dialer: SimulatedDialer, target: tuple[str, int], answer: asyncio.Future[SimulatedLink]
    ) -> None:
        self._send_syn(dialer, target, answer, 0)

    def _send_syn(
        self,
        dialer: SimulatedDialer,
        target: tuple[str, int],
        answer: asyncio.Future[SimulatedLink],
        attempt: int,
    ) -> None:
        if answer.done() or not dialer.loop.is_alive:
            return
        seconds = self.delay(dialer.host, target[0])
        self.loop.call_later(seconds, self._on_syn, dialer, target, answer, attempt)

    def _on_syn(
        self,
        dialer: SimulatedDialer,
        target: tuple[str, int],
        answer: asyncio.Future[SimulatedLink],
        attempt: int,
    ) -> None:
        there = self.passes(dialer.host, target[0]) and dialer.host not in self._down
        back = self.passes(target[0], dialer.host)
        if not (there and back):
            if attempt < len(SYN_AGAIN_SECONDS):
                wait = SYN_AGAIN_SECONDS[attempt]
                self.loop.call_later(wait, self._send_syn, dialer, target, answer, attempt + 1)
            return
        seconds = self.delay(target[0], dialer.host)
        endpoint = self.listening.get(target)
        if endpoint is None:
            refusal = PeerRefused(f"nobody listens at {target[0]}:{target[1]}")
            dialer.loop.call_later(seconds, _refuse, answer, refusal)
            return
        link = SimulatedLink(self, dialer, target)
        self._connections[link] = None
        endpoint.adopt(link, target)
        dialer.loop.call_later(seconds, _connected, answer, link)


def _refuse(answer: asyncio.Future[SimulatedLink], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _connected(answer: asyncio.Future[SimulatedLink], link: SimulatedLink) -> None:
    if answer.done():
        link.close()
    else:
        answer.set_result(link)


class SimulatedLink:
    """The end of a connection that dialled. Implements `core.ports_network.Link`."""

    __slots__ = (
        "_network",
        "_waiting",
        "down",
        "host",
        "is_open",
        "loop",
        "peer_host",
        "peer_port",
        "server",
        "up",
    )

    def __init__(self, network: SimulatedNetwork, dialer: SimulatedDialer, target: tuple[str, int]) -> None:
        self._network = network
        self.loop = dialer.loop
        self.host = dialer.host
        self.peer_host, self.peer_port = target
        self.is_open = True
        self.server: SimulatedConnection | None = None
        self._waiting: deque[asyncio.Future[memoryview]] = deque()
        self.down = Stream(network, self.peer_host, self.host, self.loop, self._receive)
        self.up = self.down
        """Set once the server's end exists."""

    def send(self, frame: Buffer) -> asyncio.Future[memoryview]:
        future: asyncio.Future[memoryview] = self.loop.create_future()
        if not self.is_open:
            future.set_exception(PeerReset(f"the connection to {self.peer_host} is closed"))
            return future
        self._waiting.append(future)
        future.add_done_callback(self._on_done)
        weather = self._network.weather
        if weather.reset_chance and self._network.random.random() < weather.reset_chance:
            self._network.reset(self)
        self.up.push(bytes(frame))
        if self._network.on_sent is not None:
            self._network.on_sent(self, bytes(frame))
        return future

    def _on_done(self, future: asyncio.Future[memoryview]) -> None:
        if future.cancelled():
            self.close()

    def close(self) -> None:
        if self.is_open:
            self._network.linger(self.up)
            self._end("was closed")

    def _end(self, why: str) -> None:
        self.is_open = False
        self.down.drop()
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(PeerReset(f"the connection to {self.peer_host}:{self.peer_port} {why}"))
                future.exception()  # whoever pipelined requests need not look at each of them
        if self.server is None:
            self._network.forget(self)

    def _receive(self, segment: Segment) -> None:
        if not self.is_open:
            return
        if segment is None:
            self._end("was reset")
            self._network.linger(self.up, lost=self._network.random.random() < 0.5)
            return
        future = self._waiting.popleft()
        if not future.done():
            future.set_result(memoryview(bytearray(segment)))

    def forget_client(self) -> None:
        """The process or host at this end is gone."""
        self.is_open = False
        self._waiting = deque()
        self.down.drop()

    def forget_server(self) -> None:
        """The process or host at the other end is gone; what still arrives there is answered with a reset."""
        self.server = None
        self.up = Stream(
            self._network, self.host, self.peer_host, self._network.loop, self._answer_with_reset
        )
        if not self.is_open:
            self._network.forget(self)

    def _answer_with_reset(self, segment: Segment) -> None:
        if segment is None:
            self._network.forget(self)
        elif self.is_open:
            self.down.push(None)


class SimulatedDialer:
    """Dials from one host, for one process. Implements `core.ports_network.Dialer`."""

    __slots__ = ("_network", "host", "loop")

    def __init__(self, network: SimulatedNetwork, loop: ProcessLoop, host: str) -> None:
        self._network = network
        self.loop = loop
        self.host = host

    async def dial(self, host: str, port: int, *, timeout: float) -> SimulatedLink:
        answer: asyncio.Future[SimulatedLink] = self.loop.create_future()
        self._network.connect(self, (host, port), answer)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise PeerSilent(f"{host}:{port} gave no answer in {timeout:g} s") from None
