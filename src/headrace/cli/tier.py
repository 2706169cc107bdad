"""`headrace tier`: history in an object store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table
from headrace.cli.tier_bucket import Bucket, bucket_options
from headrace.cli.tier_gc import gc
from headrace.cli.tier_scrub import scrub
from headrace.cli.tier_status import status
from headrace.cli.values import counted

if TYPE_CHECKING:
    from headrace.objects.suitability import Suitability

UNFIT = 1
WRITERS = 32
ROUNDS = 5


@click.group()
def tier() -> None:
    """Keep the history of topics in an object store.

    `check` says whether a bucket can hold it, `status` how far it is there, `scrub` whether it is whole, and
    `gc` what may go from it.
    """


tier.add_command(status)
tier.add_command(scrub)
tier.add_command(gc)


@tier.command()
@bucket_options
@click.option(
    "--writers", type=click.IntRange(2, 256), default=WRITERS, show_default=True, help="That write at once."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Of each kind of condition."
)
@json_option
def check(bucket: Bucket, writers: int, rounds: int, as_json: bool) -> None:
    """Say whether a bucket can hold history: s3://BUCKET/PREFIX, gs:// or az://.

    Many writers write one object at once, some rounds with If-None-Match and some with If-Match. One of them
    must win each time. Reading, ranges, listing and deleting are tried as well. It writes a few
    small objects below headrace-tier-check/ and deletes them. Who you are, the environment says
    (AWS_ACCESS_KEY_ID and the like), never the command line.

    It ends with 0 if the bucket is fit, and with 1 if it is not or could not be asked.
    """
    from headrace.objects.suitability import examine

    with bucket.opened() as store:
        found = examine(
            store, os.urandom(8).hex(), deadline_seconds=bucket.deadline, writers=writers, rounds=rounds
        )
    if as_json:
        print_json(_document(bucket.url, found))
    else:
        _show(bucket.url, found)
    if not found.is_fit:
        raise click.exceptions.Exit(UNFIT)


def _show(url: str, found: Suitability) -> None:
    if found.races:
        rounds: dict[str, list[str]] = {}
        for race in found.races:
            rounds.setdefault(race.condition, []).append(str(race.winners))
        print_table(
            ("CONDITION", "ROUNDS", "WINNERS"),
            [(condition, len(winners), " ".join(winners)) for condition, winners in rounds.items()],
        )
    for finding in found.findings:
        click.echo(f"error: {finding.what}", err=True)
        click.echo(f"hint: {finding.cure}", err=True)
    if found.is_fit:
        click.echo(f"{url} can hold history: one winner in each of {counted(len(found.races), 'race')}")
    else:
        click.echo(f"{url} cannot hold history as it is", err=True)


def _document(url: str, found: Suitability) -> dict[str, Any]:
    return {
        "bucket": url,
        "fit": found.is_fit,
        "races": [
            {"condition": each.condition, "winners": each.winners, "unanswered": each.unknown}
            for each in found.races
        ],
        "findings": [{"what": each.what, "cure": each.cure} for each in found.findings],
    }
