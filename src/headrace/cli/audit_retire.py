"""`headrace audit retire`: a producer that will never tell its end is dead, says somebody who knows."""

from __future__ import annotations

import time

import click

from headrace.audit import event
from headrace.audit.event import Event
from headrace.audit.verdict import window_text
from headrace.cli.audit_options import moment_ms
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.cli.values import duration_text
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure
from headrace.client.offsets import ends_of, partitions_of
from headrace.client.producer import Producer
from headrace.protocol.records import NewRecord
from headrace.spark.audit.config import AuditConfig
from headrace.spark.audit.picture import patience_ms

Heard = tuple[Event, int]
"""An event, and when it was stored."""


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
    """Declare a PRODUCER dead: it will never report its last records.

    Windows that begin after that are judged without it. Those before stay incomplete: what it did not tell of
    is not known. A producer that starts again under its name needs no such help. Processes may share a name:
    those that were heard a moment ago are named and left out.
    """
    now = time.time_ns() // 1_000_000

    async def operation(cluster: Cluster) -> list[tuple[Event, int]]:
        last = await _last_events(cluster, events, producer, server)
        unended = [heard for heard in last.values() if not heard[0].closing]
        where = f"{producer} on {server}" if server else producer
        if not unended:
            raise ClientFailure(
                f"no producer {where} has begun and not ended", f"its events would be in the topic {events}"
            )
        silent = [told for told, heard_ms in unended if _patience_left_ms(told, heard_ms, now) < 0]
        _name_living([heard for heard in unended if heard[0] not in silent], now)
        if not silent:
            raise ClientFailure(f"no producer {where} is silent")
        # Nobody is gone before the last word.
        gone = [(told, max(now if at is None else at, told.time_ms)) for told in silent]
        sender = Producer(cluster)
        for told, end_ms in gone:
            value = event.retirement(told.producer, told.incarnation, end_ms)
            await sender.send(events, NewRecord(key=told.key, value=value))
        await sender.flush()
        return gone

    gone = with_cluster(bootstrap, operation)
    if as_json:
        print_json([{**told._asdict(), "counts": len(told.counts), "retired_ms": end} for told, end in gone])
        return
    for told, _ in gone:
        until = window_text(told.complete_until_ms)
        click.echo(f"{told.producer} on {told.server} is retired; it has told of all until {until}")


def _patience_left_ms(told: Event, heard_ms: int, now: int) -> int:
    return heard_ms + patience_ms(told.interval_ms, AuditConfig.silent_after_ms) - now


def _name_living(living: list[Heard], now: int) -> None:
    for told, heard_ms in living:
        ago, left = duration_text(now - heard_ms), duration_text(_patience_left_ms(told, heard_ms, now) + 1)
        click.echo(
            f"{told.producer} on {told.server} was heard {ago} ago, so it is left out; "
            f"if it is gone, say so again in {left}",
            err=True,
        )


async def _last_events(cluster: Cluster, topic: str, producer: str, server: str | None) -> dict[str, Heard]:
    """By incarnation."""
    ends = await ends_of(cluster, await partitions_of(cluster, topic))
    consumer = Consumer(cluster, {place: first for place, (first, _) in ends.items()})
    found: dict[str, Heard] = {}
    try:
        while any(consumer.positions[place] < end for place, (first, end) in ends.items() if end > first):
            for fetched in await consumer.poll():
                for record in fetched.records:
                    try:
                        told = event.decode(bytes(record.value or b""))
                    except event.InvalidEvent:
                        continue
                    if told.producer != producer or server not in (None, told.server):
                        continue
                    # One that is sent again comes after later ones.
                    before = found.get(told.incarnation)
                    if before is None or told.sequence >= before[0].sequence:
                        found[told.incarnation] = (told, record.timestamp)
    finally:
        await consumer.close()
    return found
