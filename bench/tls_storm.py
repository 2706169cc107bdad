"""`python -m bench.tls_storm`: thousands of clients that come back at once by SASL_SSL, beside Apache Kafka.

Three brokers of each make. All clients connect to one of them, authenticate and ask for metadata; then all
hang up in one moment and come back, as they do after a switch of the network was restarted. Meanwhile a
producer sends a steady load to a partition with three replicas: its latencies are reported alone, and while
they come back.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import shutil
import ssl
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from bench import apache_kafka, load_generator
from bench.case import Make
from bench.cluster import BROKERS, Cluster
from bench.headrace_broker import Headrace
from bench.process_cost import cpu_seconds
from bench.protection import PASSWORD, USER, Protection
from headrace.protocol.headers import frame_request
from headrace.protocol.message import Message
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest

CLIENTS = 10_000
PROCESSES = 2
RATE = 200
ALONE_S = 15
PATIENCE_S = 300.0
SPARE_FILES = 500
AT_ONCE = 500
"""Handshakes that one process has under way: a client machine has an end too."""
SPAWNED = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Storm:
    served: int
    seconds: float


class Clients:
    """Those of one process."""

    def __init__(self, port: int, authority: Path, count: int) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(authority))
        self._count = count
        self._open: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def come(self) -> Storm:
        """All of them, each until it is served."""
        began = time.monotonic()
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._until_served(gate, began) for _ in range(self._count)))
        return Storm(len(self._open), time.monotonic() - began)

    def leave(self) -> None:
        for _, writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _until_served(self, gate: asyncio.Semaphore, began: float) -> None:
        while time.monotonic() - began < PATIENCE_S:
            async with gate:
                try:
                    async with asyncio.timeout(60):
                        self._open.append(await self._connect())
                    return
                except (OSError, asyncio.IncompleteReadError, TimeoutError):
                    pass
            await asyncio.sleep(0.2)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
        try:
            await _ask(reader, writer, SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = f"\0{USER}\0{PASSWORD}".encode()
            answer = await _ask(reader, writer, SaslAuthenticateRequest(auth_bytes=token), 1)
            if struct.unpack_from(">h", answer, 4)[0]:
                raise OSError("not authenticated")
            await _ask(reader, writer, MetadataRequest(topics=[]), 4)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Message, version: int
) -> bytes:
    writer.write(frame_request(request, version, 1, "storm"))
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


def play(pipe: Connection, port: int, authority: Path, count: int) -> None:
    """A process of clients: comes, and comes back each time it is told to."""

    async def run() -> None:
        clients = Clients(port, authority, count)
        loop = asyncio.get_running_loop()
        while True:
            pipe.send(await clients.come())
            if await loop.run_in_executor(None, pipe.recv) is None:
                return
            clients.leave()

    asyncio.run(run())


def allow_files(clients: int) -> int:
    """As many as brokers, who inherit it, need for so many clients: Headrace gives half of it to connections.
    How many clients there can be: a machine may allow fewer."""
    count = 4 * clients + 10_000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except ValueError:  # not even root may raise it here
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        possible = min(clients, hard // 2 - SPARE_FILES)
        if possible < clients:
            print(f"this machine allows {hard} open files: {possible} clients instead of {clients}")
        return possible
    return clients


def storm(cluster: Cluster, protection: Protection, clients: int) -> None:
    cluster.topics.create("steady", 1, BROKERS)
    victim = cluster.brokers[0]
    pids = cluster.broker_pids
    steady = paced(cluster, ALONE_S * RATE)
    alone = steady.result()
    print(f"  the producer alone: p50 {alone.p50_us / 1000:.2f} ms, p99 {alone.p99_us / 1000:.2f} ms")
    port = int(victim.bootstrap.rpartition(":")[2])
    empty = victim.resident_bytes()
    pipes: list[Connection] = []
    processes = []
    for _ in range(PROCESSES):
        ours, theirs = SPAWNED.Pipe()
        arguments = (theirs, port, protection.directory / "ca.pem", clients // PROCESSES)
        processes.append(SPAWNED.Process(target=play, args=arguments))
        processes[-1].start()
        pipes.append(ours)
    try:
        first = [pipe.recv() for pipe in pipes]
        served, kilobytes = sum(each.served for each in first), (victim.resident_bytes() - empty) / 1000
        print(f"  {served} clients are there, and take {kilobytes / max(served, 1):.1f} KB each")
        before = [cpu_seconds(pid) for pid in pids]
        steady = paced(cluster, int(PATIENCE_S) * RATE)
        for pipe in pipes:
            pipe.send("again")
        back = [pipe.recv() for pipe in pipes]
        steady.stop()
        beside = steady.result()
        after = [cpu_seconds(pid) for pid in pids]
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join()
    served, seconds = sum(each.served for each in back), max(each.seconds for each in back)
    print(f"  {served} of {clients} came back and were served within {seconds:.1f} s")
    print(f"  CPU of their broker meanwhile {after[0] - before[0]:.1f} s, of the others "
          f"{sum(after[1:]) - sum(before[1:]):.1f} s")  # fmt: skip
    print(f"  the producer meanwhile: p50 {beside.p50_us / 1000:.2f} ms, p99 {beside.p99_us / 1000:.2f} ms,"
          f" longest {beside.max_us / 1000:.0f} ms, {beside.failed} of {beside.records} failed")  # fmt: skip


def paced(cluster: Cluster, records: int) -> load_generator.Running:
    return load_generator.start_producer(
        cluster.bootstrap, "steady", records=records, rate=RATE, properties={"acks": "all", "linger.ms": 0}
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tls_storm", description=__doc__)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--make", choices=("headrace", "kafka", "both"), default="both")
    options = parser.parse_args(words)
    count = allow_files(options.clients)
    directory = Path(tempfile.mkdtemp(prefix="storm-"))
    try:
        protection = Protection.make(directory / "certificates", Headrace().command)
        makes: list[Make] = []
        if options.make != "headrace":
            makes.append(apache_kafka.ApacheKafka(apache_kafka.find_jars(), protection=protection))
        if options.make != "kafka":
            makes.append(Headrace(protection=protection))
        for make in makes:
            print(f"{make.name}, {count} clients", flush=True)
            cluster = make.cluster(directory / make.name.replace(" ", "-"))
            cluster.start()
            try:
                storm(cluster, protection, count)
            finally:
                cluster.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
