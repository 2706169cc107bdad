"""`headrace txn list` and `headrace txn describe`."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from headrace.cli.completions import complete_transactions
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.values import duration_ms, duration_text
from headrace.client import transactions
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.grouping import by_topic
from headrace.client.transactions import ListedTransaction, Transaction


@click.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(transactions.STATES, case_sensitive=False),
    help="Only in this state; may be repeated.",
)
@click.option(
    "--older-than",
    metavar="DURATION",
    callback=duration_ms,
    help="Only transactions that run longer than this: 90s, 15m, 2h.",
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match as a whole.")
@bootstrap_option
@json_option
def list_(
    states: tuple[str, ...], older_than: int | None, pattern: str | None, bootstrap: str, as_json: bool
) -> None:
    """List transactional ids, their state and how long it lasts.

    AGE is how long the transaction is open. An id without an open transaction has none.
    """

    async def operation(cluster: Cluster) -> list[tuple[ListedTransaction, Transaction | None]]:
        found = await transactions.list_transactions(
            cluster, states=states, older_than_ms=older_than, pattern=pattern
        )
        described = await transactions.describe_transactions(
            cluster, [entry.transactional_id for entry in found]
        )
        told = [(entry, described[entry.transactional_id]) for entry in found]
        listed = [(entry, None if isinstance(known, Refused) else known) for entry, known in told]
        # A broker goes by when the last transaction began, also where it is over.
        return [
            (entry, known)
            for entry, known in listed
            if older_than is None or (known is not None and known.start_ms is not None)
        ]

    listed = with_cluster(bootstrap, operation)
    now_ms = time.time_ns() // 1_000_000
    ages = [None if known is None else known.age_ms(now_ms) for _, known in listed]
    rows = [
        (
            entry.transactional_id,
            entry.state,
            entry.producer_id,
            None if known is None else known.producer_epoch,
            None if known is None else len(known.partitions),
            entry.coordinator,
        )
        for entry, known in listed
    ]
    if as_json:
        names = ("id", "state", "producer_id", "producer_epoch", "partitions", "coordinator")
        print_json(
            [
                {**dict(zip(names, row, strict=True)), "age_ms": age}
                for row, age in zip(rows, ages, strict=True)
            ]
        )
        return
    print_table(
        ("ID", "STATE", "PRODUCER", "EPOCH", "PARTITIONS", "COORDINATOR", "AGE"),
        [(*row, None if age is None else duration_text(age)) for row, age in zip(rows, ages, strict=True)],
        empty="no transactions" + (" like that" if states or older_than or pattern else ""),
    )


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_transactions)
@bootstrap_option
@json_option
def describe(ids: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show partitions, start, timeout and coordinator of transactional ids."""

    async def operation(cluster: Cluster) -> list[Transaction]:
        found = (await transactions.describe_transactions(cluster, ids)).values()
        refused = [outcome for outcome in found if isinstance(outcome, Refused)]
        if refused:
            raise refused[0]
        return [outcome for outcome in found if isinstance(outcome, Transaction)]

    described = with_cluster(bootstrap, operation)
    now_ms = time.time_ns() // 1_000_000
    if as_json:
        print_json([_document(entry, now_ms) for entry in described])
        return
    for at, entry in enumerate(described):
        if at:
            click.echo()
        _print(entry, now_ms)


def _print(entry: Transaction, now_ms: int) -> None:
    click.echo(f"{entry.transactional_id}  state={entry.state}  coordinator={entry.coordinator}")
    click.echo(f"  producer={entry.producer_id}  epoch={entry.producer_epoch}")
    age = entry.age_ms(now_ms)
    started = "no transaction is open"
    if entry.start_ms is not None and age is not None:
        moment = datetime.fromtimestamp(entry.start_ms / 1000, UTC).isoformat(timespec="seconds")
        started = f"open since {moment}, {duration_text(age)} ago"
    click.echo(f"  {started}  timeout={duration_text(entry.timeout_ms)}")
    topics = by_topic(entry.partitions)
    print_table(
        ("TOPIC", "PARTITIONS"), [(name, ",".join(map(str, indexes))) for name, indexes in topics.items()]
    )


def _document(entry: Transaction, now_ms: int) -> dict[str, object]:
    return {
        "id": entry.transactional_id,
        "state": entry.state,
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "timeout_ms": entry.timeout_ms,
        "start_ms": entry.start_ms,
        "age_ms": entry.age_ms(now_ms),
        "coordinator": entry.coordinator,
        "partitions": by_topic(entry.partitions),
    }
