"""`headrace consume TOPIC`: records out, as text or JSON."""

from __future__ import annotations

import sys

import click

from headrace.cli.completions import complete_groups, complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.record_format import Formatter, compile_format
from headrace.cli.render import print_json_line, printable
from headrace.client import offsets
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.group_consumer import GroupConsumer
from headrace.client.start import parse_start, resolve_starts
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-o",
    "--offset",
    default="beginning",
    show_default=True,
    metavar="beginning|end|N|-N|@TIME",
    help="Where to begin: an offset, the last N, or a time (milliseconds or an ISO date).",
)
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@click.option(
    "-g",
    "--group",
    shell_complete=complete_groups,
    help="Read as a member of this group, and commit; --offset is for where it has committed nothing.",
)
@click.option("-c", "--count", type=click.IntRange(1), default=None, help="Stop after so many records.")
@click.option(
    "-e", "--exit", "at_end_exit", is_flag=True, help="Stop at the end instead of waiting for more."
)
@click.option(
    "-f",
    "--format",
    "template",
    default="%s\\n",
    show_default=True,
    metavar="FORMAT",
    help="%s value, %k key, %o offset, %p partition, %T time, %h headers, %t topic, %S and %K lengths.",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
)
@bootstrap_option
@json_option
def consume(
    topic: str,
    offset: str,
    partition: tuple[int, ...],
    group: str | None,
    count: int | None,
    at_end_exit: bool,
    template: str,
    isolation: str,
    bootstrap: str,
    as_json: bool,
) -> int:
    """Print the records of TOPIC, and wait for more."""
    start = parse_start(offset)
    write = None if as_json else compile_format(template)
    if group is not None and partition:
        raise click.UsageError("a group decides who reads which partition: leave --partition out")

    async def as_member(cluster: Cluster) -> int:
        await cluster.topic(topic)  # a wrong name is said before anybody waits for a rebalance
        read_committed = isolation == "read_committed"
        async with GroupConsumer(
            cluster, group or "", [topic], start=start, read_committed=read_committed
        ) as member:
            return await _follow_group(member, count, at_end_exit, write)

    async def operation(cluster: Cluster) -> int:
        partitions = [TopicPartition(topic, index) for index in dict.fromkeys(partition)]
        partitions = partitions or await offsets.partitions_of(cluster, topic)
        positions = await resolve_starts(cluster, partitions, start)
        consumer = Consumer(cluster, positions, read_committed=isolation == "read_committed")
        try:
            return await _follow(consumer, count, at_end_exit, write)
        finally:
            await consumer.close()

    try:
        with_cluster(bootstrap, operation if group is None else as_member)
    except KeyboardInterrupt:
        return 0  # the usual way to stop following
    return 0


async def _follow(consumer: Consumer, count: int | None, at_end_exit: bool, write: Formatter | None) -> int:
    """Until the count is reached, or each partition is at its end, or for ever."""
    printed = 0
    while consumer.positions:
        for fetched in await consumer.poll():
            for record in fetched.records:
                _print(fetched.partition, record, write)
                printed += 1
                if printed == count:
                    return printed
            if at_end_exit and fetched.next_offset >= fetched.end_offset:
                consumer.drop(fetched.partition)
        sys.stdout.flush()
    return printed


async def _follow_group(
    member: GroupConsumer, count: int | None, at_end_exit: bool, write: Formatter | None
) -> int:
    """As `_follow`. What was printed is committed, and nothing else."""
    printed = 0
    while True:
        for fetched in await member.poll():
            for record in fetched.records:
                _print(fetched.partition, record, write)
                printed += 1
                if printed == count:
                    member.processed(fetched.partition, record.offset + 1)
                    return printed
            member.processed(fetched.partition, fetched.next_offset)
            if at_end_exit and fetched.next_offset >= fetched.end_offset:
                member.drop(fetched.partition)
        sys.stdout.flush()
        if at_end_exit and not member.reading:
            return printed


def _print(partition: TopicPartition, record: Record, write: Formatter | None) -> None:
    if write is not None:
        sys.stdout.buffer.write(write(partition, record))
        return
    print_json_line(
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": printable(record.key),
            "value": printable(record.value),
            "headers": [[_text(name), printable(value)] for name, value in record.headers],
        }
    )


def _text(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
