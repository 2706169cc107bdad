"""`headrace tier`: history in an object store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table
from headrace.cli.tier_status import status
from headrace.cli.values import counted

if TYPE_CHECKING:
    from headrace.objects.suitability import Suitability

UNFIT = 1
WRITERS = 32
ROUNDS = 5
_SCHEMES = ("s3://", "gs://", "az://")


def _complete_url(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [scheme for scheme in _SCHEMES if scheme.startswith(incomplete)]


@click.group()
def tier() -> None:
    """Keep the history of topics in an object store.

    `check` says whether a bucket can hold it, `status` how far it is there.
    """


tier.add_command(status)


@tier.command()
@click.argument("bucket_url", metavar="BUCKET_URL", shell_complete=_complete_url)
@click.option("--endpoint", metavar="URL", help="Of a store that speaks S3 and is not Amazon's.")
@click.option("--region", metavar="NAME", help="Of an S3 bucket; by default AWS_REGION.")
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the store may take to answer one call.",
)
@click.option(
    "--writers", type=click.IntRange(2, 256), default=WRITERS, show_default=True, help="That write at once."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Of each kind of condition."
)
@json_option
def check(
    bucket_url: str,
    endpoint: str | None,
    region: str | None,
    deadline: float,
    writers: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Say whether a bucket can hold history: s3://BUCKET/PREFIX, gs:// or az://.

    Many writers write one object at once, some rounds with If-None-Match and some with If-Match. One of them
    must win each time. Reading, ranges, listing and deleting are tried as well. It writes a few
    small objects below headrace-tier-check/ and deletes them. Who you are, the environment says
    (AWS_ACCESS_KEY_ID and the like), never the command line.

    It ends with 0 if the bucket is fit, and with 1 if it is not or could not be asked.
    """
    from headrace.objects.opening import open_bucket
    from headrace.objects.suitability import examine

    bucket = open_bucket(bucket_url, endpoint=endpoint, region=region)
    try:
        found = examine(
            bucket, os.urandom(8).hex(), deadline_seconds=deadline, writers=writers, rounds=rounds
        )
    finally:
        bucket.close()
    if as_json:
        print_json(_document(bucket_url, found))
    else:
        _show(bucket_url, found)
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
