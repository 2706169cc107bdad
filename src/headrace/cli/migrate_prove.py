"""`headrace migrate prove`: both ends compared."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from headrace.cli.migrate_options import held, say_next, state_option, with_both
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table
from headrace.client.errors import ClientFailure
from headrace.migration import ends, order
from headrace.migration.ends import Both
from headrace.migration.proving import Compared, How
from headrace.migration.proving import prove as compare_both
from headrace.migration.state import Migration, Proof


@click.command()
@click.option("--whole", is_flag=True, help="Compare every batch, not samples.")
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    metavar="N",
    help="Places in each partition, of up to 1 MB, beside its beginning and its end.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another one draws other places.")
@state_option
@bootstrap_option
@json_option
def prove(whole: bool, samples: int, seed: int, path: Path, bootstrap: str, as_json: bool) -> None:
    """Read both ends as a consumer does, and compare offsets, counts and bytes of what both have.

    Batches are the same byte for byte but for the leader epoch. In compacted topics the records that both
    have are compared. Exit code 1 if anything differs. It changes nothing, and may run while producers write.
    """
    how = How(None if whole else samples, seed)
    with held(path) as (migration, save), ProgressLine() as line:
        order.check_prove(migration)

        async def work(both: Both) -> list[Compared]:
            await ends.check_topics(both.source, migration)
            return await compare_both(both, list(migration.topics), how, line.tell)

        found = with_both(bootstrap, migration, work)
        migration.proof = _proof(found, whole)
        save()
    differences = [each for each in found if each.difference is not None]
    if as_json:
        print_json({"whole": whole, "seed": seed, "partitions": [each.document for each in found]})
    else:
        _show(migration, found, whole, seed)
    if differences:
        first = differences[0]
        raise ClientFailure(
            f"{len(differences)} partitions differ; {first.partition}: {first.difference}",
            "nothing was changed; `headrace migrate prove --whole` says all",
        )
    if not as_json:
        say_next(migration)


def _proof(found: list[Compared], whole: bool) -> Proof:
    return Proof(
        whole,
        len(found),
        sum(each.records for each in found),
        sum(each.bytes for each in found),
        sum(each.difference is not None for each in found),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _show(migration: Migration, found: list[Compared], whole: bool, seed: int) -> None:
    print_table(
        ("PARTITION", "SOURCE", "HERE", "RECORDS", "BATCHES", "BYTES", "RESULT"),
        [
            (
                str(each.partition),
                f"{each.source[0]}..{each.source[1]}",
                f"{each.here[0]}..{each.here[1]}",
                each.records,
                each.batches,
                each.bytes,
                each.difference or _compacted(each) or "the same",
            )
            for each in found
        ],
    )
    proof = migration.proof
    assert proof is not None
    how = "all that both have" if whole else f"samples of what both have (--seed {seed})"
    click.echo(
        f"compared {how}: {proof.records:,} records, {proof.bytes:,} bytes, leader epochs aside;"
        f" {proof.differences or 'no'} partitions differ"
    )


def _compacted(each: Compared) -> str:
    if not each.only_at_source and not each.only_here:
        return ""
    return f"the same, {each.only_at_source} compacted here, {each.only_here} at the source"
