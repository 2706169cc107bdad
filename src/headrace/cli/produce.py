"""`headrace produce TOPIC`: lines in, records out."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, pairs, with_cluster
from headrace.cli.record_format import unescape
from headrace.cli.record_lines import record_maker, split_records, standard_input
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.producer import Producer
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
_LINGER_SECONDS = 0.05
_LAST_SECONDS = 1.0
_QUEUE = 16


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.option("-k", "--key", metavar="TEXT", help="The key of each record.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="What separates key and value on a line.")
@click.option(
    "-D", "--delimiter", default="\\n", show_default=True, metavar="TEXT", help="What ends a record."
)
@click.option(
    "-H", "--header", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A header of each record."
)
@click.option("-p", "--partition", type=click.IntRange(0), default=None, help="Default: by key, or in turn.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice([codec.name.lower() for codec in Compression]),
    default="none",
    show_default=True,
)
@click.option("-a", "--acks", type=click.Choice(list(_ACKS)), default="all", show_default=True)
@click.option("-Z", "--empty-as-null", is_flag=True, help="An empty value, or key, is null.")
@click.option(
    "--from-file", type=click.File("rb"), metavar="PATH", help="Read this file instead of standard input."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a batch is tried again while the cluster cannot take it.",
)
@bootstrap_option
@json_option
def produce(
    topic: str,
    key: str | None,
    key_delimiter: str | None,
    delimiter: str,
    header: dict[str, str],
    partition: int | None,
    compression: str,
    acks: str,
    empty_as_null: bool,
    from_file: BinaryIO | None,
    timeout: float,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Send lines from standard input or a file to TOPIC, one record each.

    At the end, also at a bad one, it says how many were delivered. While the cluster cannot be reached it
    says so on standard error and tries again, for --timeout. The exit code is 0 only if all were delivered.
    """
    end = unescape(delimiter)
    if not end:
        raise click.UsageError("--delimiter must not be empty")
    if key is not None and key_delimiter:
        raise click.UsageError("the key is either --key or what stands before --key-delimiter")
    make = record_maker(
        key=None if key is None else key.encode(),
        key_delimiter=unescape(key_delimiter) if key_delimiter else None,
        empty_as_null=empty_as_null,
        headers=tuple((name, value.encode()) for name, value in header.items()),
        now_ms=lambda: time.time_ns() // 1_000_000,
    )
    source: Any = from_file if from_file is not None else standard_input()
    sending = _Sending(topic)

    async def operation(cluster: Cluster) -> None:
        await cluster.topic(topic, create=True)  # a wrong name is said before anything is read
        sending.producer = producer = Producer(
            cluster,
            acks=_ACKS[acks],
            compression=Compression.named(compression),
            delivery_timeout=timeout,
            first_partition=time.time_ns() % 1000,
        )
        with _progress(from_file) as advance:
            records = _records(split_records(source, end), end, make, advance)
            await _pump(producer, topic, partition, sending.counted(records))

    try:
        with_cluster(bootstrap, operation, progress=sending.progress)
    except BaseException:
        sending.report_failure(as_json)
        raise
    sending.report(as_json)


class _Sending:
    """How far it is, for the line at the end and for those in between."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._started = time.monotonic()
        self._read = 0
        self.producer: Producer | None = None

    def counted(self, records: Iterator[list[NewRecord]]) -> Iterator[list[NewRecord]]:
        for some in records:
            self._read += len(some)
            yield some

    @property
    def delivered(self) -> int:
        return 0 if self.producer is None else self.producer.records_sent

    def progress(self) -> str:
        return f"{counted(self.delivered, 'record')} delivered so far" if self._read else ""

    def report(self, as_json: bool) -> None:
        seconds = time.monotonic() - self._started
        if as_json:
            print_json({"topic": self._topic, "records": self.delivered, "seconds": round(seconds, 3)})
        else:
            count = counted(self.delivered, "record")
            click.echo(f"sent {count} to {self._topic} in {seconds:.2f} s", err=True)

    def report_failure(self, as_json: bool) -> None:
        """What was read and not acknowledged may have arrived or not: nobody can tell."""
        if self.producer is None:
            return
        if as_json:
            self.report(as_json)
        lost = self._read - self.delivered
        rest = f"; {lost} more were read and not acknowledged" if lost else ""
        count = counted(self.delivered, "record")
        click.echo(f"delivered {count} to {self._topic}{rest}", err=True)


async def _pump(
    producer: Producer, topic: str, partition: int | None, records: Iterator[list[NewRecord]]
) -> None:
    """Reading blocks, so a thread reads; what it has is sent when batches are full or the input pauses."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[list[NewRecord] | BaseException | None] = asyncio.Queue(_QUEUE)

    def put(item: list[NewRecord] | BaseException | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()

    def read() -> None:
        try:
            for some in records:
                put(some)
            put(None)
        except Exception as error:
            put(error)

    # A daemon thread: a read that waits for a terminal must not keep a failed command alive.
    threading.Thread(target=read, name="headrace-input", daemon=True).start()
    try:
        await _send_all(producer, topic, partition, queue)
    except asyncio.CancelledError:
        # Ctrl-C: what was typed goes out, if somebody takes it at once.
        with suppress(TimeoutError, ClientFailure):
            async with asyncio.timeout(_LAST_SECONDS):
                await producer.flush()
        raise


async def _send_all(
    producer: Producer,
    topic: str,
    partition: int | None,
    queue: asyncio.Queue[list[NewRecord] | BaseException | None],
) -> None:
    while True:
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                item = await queue.get()
        except TimeoutError:
            await producer.flush()
            item = await queue.get()
        if item is None:
            break
        if isinstance(item, BaseException):
            raise item
        for record in item:
            await producer.send(topic, record, partition)
    await producer.flush()


def _records(
    chunks: Iterator[list[bytes]],
    end: bytes,
    make: Callable[[bytes], NewRecord],
    advance: Callable[[int], None] | None,
) -> Iterator[list[NewRecord]]:
    for lines in chunks:
        yield [make(line) for line in lines]
        if advance is not None:
            advance(sum(map(len, lines)) + len(end) * len(lines))


@contextmanager
def _progress(file: BinaryIO | None) -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal while a file is read; nothing otherwise."""
    if file is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("sending", total=os.fstat(file.fileno()).st_size)
        yield lambda size: progress.advance(task, size)
