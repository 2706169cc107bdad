"""`headrace audit retire`: a producer that will never tell its end is dead, says somebody who knows."""

from __future__ import annotations

import time

import click

from headrace.audit import event
from headrace.audit.verdict import window_text
from headrace.cli.audit_options import moment_ms
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure
from headrace.client.offsets import ends_of, partitions_of
from headrace.client.producer import Producer
from headrace.protocol.records import NewRecord


@click.command()
@click.argument("producer")
@click.option("--server", default=None, help="Only where it ran; default: everywhere.")
@click.option("--at", metavar="MOMENT", callback=moment_ms, help="Since when it is gone. Default: now.")
@click.option("--events", default=event.DEFAULT_TOPIC, show_default=True, metavar="TOPIC")
@bootstrap_option
@json_option
def retire(
    producer: str, server: str | None, at: int | None, events: str, bootstrap: str, as_json: bool
) -> None:
    """Say that a PRODUCER is gone for good, and will not tell of its last records.

    Windows that begin after that are judged without it. Those before stay incomplete: what it did not tell of
    is not known. A producer that starts again under its name needs no such help.
    """
    moment = time.time_ns() // 1_000_000 if at is None else at

    async def operation(cluster: Cluster) -> list[event.Event]:
        last = await _last_events(cluster, events, producer, server)
        gone = [each for each in last.values() if not each.closing]
        if not gone:
            where = f" on {server}" if server else ""
            raise ClientFailure(
                f"no producer {producer}{where} has begun and not ended",
                f"its events would be in the topic {events}",
            )
        sender = Producer(cluster)
        for each in gone:
            value = event.retirement(each.producer, each.incarnation, moment)
            await sender.send(events, NewRecord(key=each.key, value=value))
        await sender.flush()
        return gone

    gone = with_cluster(bootstrap, operation)
    if as_json:
        print_json([{**each._asdict(), "counts": len(each.counts), "retired_ms": moment} for each in gone])
        return
    for each in gone:
        until = window_text(each.complete_until_ms)
        click.echo(f"{each.producer} on {each.server} is retired; it has told of all until {until}")


async def _last_events(
    cluster: Cluster, topic: str, producer: str, server: str | None
) -> dict[str, event.Event]:
    """By incarnation."""
    ends = await ends_of(cluster, await partitions_of(cluster, topic))
    consumer = Consumer(cluster, {place: first for place, (first, _) in ends.items()})
    found: dict[str, event.Event] = {}
    try:
        while any(consumer.positions[place] < end for place, (first, end) in ends.items() if end > first):
            for fetched in await consumer.poll():
                for record in fetched.records:
                    try:
                        told = event.decode(bytes(record.value or b""))
                    except event.InvalidEvent:
                        continue
                    if told.producer == producer and server in (None, told.server):
                        found[told.incarnation] = told
    finally:
        await consumer.close()
    return found
