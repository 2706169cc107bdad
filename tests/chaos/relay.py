"""A TCP relay that delays, stalls, throttles and resets: what no firewall does, and every network can.

It is a process, so that it can stand on a broker's own host, and it is told what to do by lines of JSON on
its standard input. A broker advertises its relay's address, so clients and the other brokers come through it.

    with Relay(place, port, to_port) as relay:
        relay.set(Weather(delay_ms=200, jitter_ms=100))
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.broker_process import Place

CHECKOUT = Path(__file__).resolve().parents[2]
CHUNK = 64 * 1024
#: RST instead of FIN when the socket is closed: the peer learns that something broke.
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Weather:
    """What happens to bytes on their way. The default is a fine day."""

    delay_ms: float = 0.0
    """In each direction, for every chunk. Order is kept, as TCP would."""
    jitter_ms: float = 0.0
    """Up to so much more, by chance."""
    stalled: bool = False
    """Nothing passes, and no connection breaks."""
    refusing: bool = False
    """New connections are reset, and those that exist too."""
    resets: float = 0.0
    """The chance that a chunk is lost together with its connection, which is what TCP makes of great loss."""
    bytes_per_second: float = 0.0
    """Per connection and direction; 0 is no limit."""


class Relay:
    """The handle: starts the process, and tells it the weather."""

    def __init__(self, place: Place, port: int, to_port: int, *, to_address: str = "", seed: int = 0) -> None:
        self.place = place
        self.port = port
        self.weather = Weather()
        self._arguments = [place.address, str(port), to_address or place.address, str(to_port), str(seed)]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        command = [*self.place.prefix, sys.executable, "-m", "tests.chaos.relay", *self._arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT
        )
        self._expect("listening")
        return self

    def set(self, weather: Weather) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self.weather = weather
        self._process.stdin.write(json.dumps(asdict(weather)) + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the relay said {line!r} where {word!r} was due")

    def close(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server:
    """The relay itself, in its own process."""

    def __init__(self, at: tuple[str, int], to: tuple[str, int], seed: int) -> None:
        self._at = at
        self._to = to
        self._random = random.Random(seed)
        self._weather = Weather()
        self._changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._probing: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self.serve, *self._at)

    def _suspect(self) -> None:
        """A connection onward broke. While nobody listens there, nobody may listen here: peers tell a dead
        process from a dead network by a port that refuses."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection(*self._to)
            except OSError:
                if self._server is not None:
                    self._server.close()
                    self._server = None
                await asyncio.sleep(0.05)
                continue
            writer.close()
            if self._server is None:
                await self.listen()
            return

    def set(self, weather: Weather) -> None:
        self._weather = weather
        self._changed.set()
        self._changed = asyncio.Event()
        if weather.refusing:
            for writer in list(self._writers):
                _reset(writer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._weather.refusing:
                return
            try:
                onward_reader, onward = await asyncio.open_connection(*self._to)
            except OSError:
                self._suspect()
                return
            self._writers.add(onward)
            try:
                back = asyncio.create_task(self._pump(onward_reader, writer))
                pumps = [asyncio.create_task(self._pump(reader, onward)), back]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                if back.done():
                    self._suspect()
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
            finally:
                _reset(onward)
                self._writers.discard(onward)
        finally:
            _reset(writer)
            self._writers.discard(writer)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Reading and sending are apart: a delay holds bytes back, and does not slow them down."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=256)
        sender = asyncio.create_task(self._send(waiting, sink))
        try:
            while not sender.done():
                data = await source.read(CHUNK)
                if not data:
                    break
                weather = self._weather
                if weather.resets and self._random.random() < weather.resets:
                    return
                delay = weather.delay_ms + self._random.random() * weather.jitter_ms
                await waiting.put((time.monotonic() + delay / 1000, data))
            await waiting.put((0.0, b""))
            await sender
        except OSError:
            pass
        finally:
            sender.cancel()

    async def _send(self, waiting: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
        while True:
            due, data = await waiting.get()
            if not data:
                return
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            while self._weather.stalled:
                await self._changed.wait()
            if rate := self._weather.bytes_per_second:
                await asyncio.sleep(len(data) / rate)
            sink.write(data)
            await sink.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.close()


async def _main(address: str, port: str, to_address: str, to_port: str, seed: str) -> None:
    relay = _Server((address, int(port)), (to_address, int(to_port)), int(seed))
    await relay.listen()
    print("listening", flush=True)
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        given: dict[str, Any] = json.loads(line)
        relay.set(Weather(**given))
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:6]))
