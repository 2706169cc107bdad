"""`headrace txn find-hanging` and `headrace txn abort`."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from headrace.cli.completions import complete_topics, complete_transactions
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted, duration_ms, duration_text
from headrace.client import open_transactions, transactions
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.open_transactions import LONGEST_TRANSACTION_MS, OpenTransaction
from headrace.client.topics import describe_topics, list_topics
from headrace.client.transactions import Transaction
from headrace.core.ids import TopicPartition


@click.command("find-hanging")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    help="Only there; may be repeated.",
)
@click.option("-p", "--partition", type=click.IntRange(0), default=None, help="With one --topic: only there.")
@click.option(
    "--broker", type=click.IntRange(0), default=None, help="Only partitions that this broker leads."
)
@click.option(
    "--silent-for",
    metavar="DURATION",
    callback=duration_ms,
    help="Only if the producer has written nothing for so long. Default: 15m, the longest that a transaction"
    " may last unless transaction.max.timeout.ms says otherwise; with --all, 0s.",
)
@click.option(
    "--all", "show_all", is_flag=True, help="Also those that their coordinator will end, and new ones."
)
@bootstrap_option
@json_option
def find_hanging(
    topics: tuple[str, ...],
    partition: int | None,
    broker: int | None,
    silent_for: int | None,
    show_all: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Find open transactions that nobody will end any more.

    A partition has records of them, but no coordinator knows of that. Consumers of committed records stop
    before START for ever. `headrace txn abort --topic T --partition P --start-offset START` ends one.
    """
    if partition is not None and len(topics) != 1:
        raise click.UsageError("--partition needs exactly one --topic")
    now_ms = time.time_ns() // 1_000_000
    quiet_ms = silent_for if silent_for is not None else 0 if show_all else LONGEST_TRANSACTION_MS

    async def operation(cluster: Cluster) -> list[OpenTransaction]:
        states = await list_topics(cluster, internal=True)
        if topics:
            states = await describe_topics(cluster, topics)
        wanted = [
            TopicPartition(topic.name, state.partition)
            for topic in states
            for state in topic.partitions
            if partition in (None, state.partition)
            and broker in (None, state.leader)
            # One that is led by nobody cannot be asked, and holds up nobody who could read it.
            and state.leader >= 0
        ]
        found = await open_transactions.open_transactions(
            cluster, wanted, silent_since_ms=now_ms - quiet_ms if quiet_ms else None
        )
        return [entry for entry in found if show_all or entry.hangs]

    found = with_cluster(bootstrap, operation)
    if as_json:
        print_json([_document(entry, now_ms) for entry in found])
        return
    print_table(
        ("TOPIC", "PARTITION", "START", "PRODUCER", "EPOCH", "LAST-WRITE", "SILENT", "COORDINATOR-SAYS"),
        [
            (
                *entry.producer.partition,
                entry.producer.start_offset,
                entry.producer.producer_id,
                entry.producer.producer_epoch,
                _moment(entry.producer.last_ms),
                duration_text(max(0, now_ms - entry.producer.last_ms)),
                _said(entry),
            )
            for entry in found
        ],
        empty="none: no transaction is open there"
        if show_all and not quiet_ms
        else f"none: no open transaction has been silent for {duration_text(quiet_ms)}",
    )


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def _said(entry: OpenTransaction) -> str:
    if entry.transaction is None:
        return "unknown producer"
    place = "not in this partition" if entry.hangs else "will end it"
    return f"{entry.transaction.transactional_id} is {entry.transaction.state}, {place}"


def _document(entry: OpenTransaction, now_ms: int) -> dict[str, object]:
    producer, known = entry.producer, entry.transaction
    return {
        "topic": producer.partition.topic,
        "partition": producer.partition.partition,
        "start_offset": producer.start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_write_ms": producer.last_ms,
        "silent_ms": now_ms - producer.last_ms,
        "hangs": entry.hangs,
        "id": None if known is None else known.transactional_id,
        "state": None if known is None else known.state,
    }


@click.command()
@click.argument("transactional_id", metavar="[ID]", required=False, shell_complete=complete_transactions)
@click.option("-t", "--topic", shell_complete=complete_topics, help="Where a transaction hangs.")
@click.option("-p", "--partition", type=click.IntRange(0), default=None, help="The partition of --topic.")
@click.option("--start-offset", type=click.IntRange(0), default=None, help="Where the hanging one begins.")
@click.option("--producer-id", type=click.IntRange(0), default=None, help="Or: whose it is.")
@click.option(
    "--force", is_flag=True, help="Even if its coordinator will end it: parts of it may be committed."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@bootstrap_option
@json_option
def abort(
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    producer_id: int | None,
    force: bool,
    yes: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """End a transaction that holds consumers up. What it wrote is aborted.

    \b
    headrace txn abort payments-7
    headrace txn abort --topic orders --partition 3 --start-offset 8120

    With the ID, the coordinator aborts it in all its partitions, and its producer is shut out until it starts
    again. Use this while `headrace txn describe ID` shows it as Ongoing.

    With a partition, an abort marker is written there by hand. Use this for what `headrace txn find-hanging`
    shows, of which no coordinator knows.
    """
    if transactional_id is not None:
        if topic is not None or partition is not None or start_offset is not None or producer_id is not None:
            raise click.UsageError("give an ID or a partition, not both")
        _abort_by_id(transactional_id, yes, bootstrap, as_json)
        return
    if topic is None or partition is None or (start_offset is None) == (producer_id is None):
        raise click.UsageError(
            "give an ID, or --topic, --partition and one of --start-offset and --producer-id"
        )
    _abort_in_partition(
        TopicPartition(topic, partition), start_offset, producer_id, force, yes, bootstrap, as_json
    )


def _abort_by_id(transactional_id: str, yes: bool, bootstrap: str, as_json: bool) -> None:
    async def look(cluster: Cluster) -> Transaction:
        (outcome,) = (await transactions.describe_transactions(cluster, [transactional_id])).values()
        if isinstance(outcome, Transaction):
            return outcome
        raise outcome

    known = with_cluster(bootstrap, look)
    if not yes:
        click.confirm(
            f"{transactional_id} is {known.state} in {counted(len(known.partitions), 'partition')}. "
            "Abort what is open, and shut its producer out?",
            abort=True,
            err=True,
        )
    with_cluster(bootstrap, lambda cluster: transactions.fence(cluster, transactional_id))
    partitions = [str(partition) for partition in known.partitions]
    if as_json:
        print_json({"id": transactional_id, "was": known.state, "aborted": partitions})
    else:
        click.echo(
            f"aborted {transactional_id}, which was {known.state}: {counted(len(partitions), 'partition')}"
        )


def _abort_in_partition(
    partition: TopicPartition,
    start_offset: int | None,
    producer_id: int | None,
    force: bool,
    yes: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    async def look(cluster: Cluster) -> OpenTransaction:
        return await open_transactions.find_open(
            cluster, partition, start_offset=start_offset, producer_id=producer_id
        )

    found = with_cluster(bootstrap, look)
    producer, known = found.producer, found.transaction
    if known is not None and not found.hangs and not force:
        raise ClientFailure(
            f"this transaction does not hang: it is {known.state} under the id {known.transactional_id}, and"
            " its coordinator will end it in all its partitions",
            f"`headrace txn abort {known.transactional_id}` ends it now; --force writes a marker to this"
            " partition alone",
        )
    if not yes:
        click.confirm(
            f"abort what producer {producer.producer_id} wrote to {partition} from offset"
            f" {producer.start_offset} on?",
            abort=True,
            err=True,
        )
    with_cluster(bootstrap, lambda cluster: open_transactions.write_abort_marker(cluster, producer))
    if as_json:
        print_json({"aborted": _document(found, time.time_ns() // 1_000_000)})
    else:
        click.echo(
            f"aborted {partition} from offset {producer.start_offset} on, producer {producer.producer_id}"
        )
