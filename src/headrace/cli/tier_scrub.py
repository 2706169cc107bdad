"""`headrace tier scrub`: whether what manifests name is in the bucket, as it was written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.cli.tier_bucket import Bucket, Known, bucket_options, by_partition, known_topics, listed
from headrace.cli.values import byte_rate, counted
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from headrace.cli.tier_scrub_progress import PartitionProgress, ScrubProgress
    from headrace.core.ports_objects import ObjectEntry, ObjectStore
    from headrace.tier.names import TieredPartition
    from headrace.tier.scrubbing import Scrubbed

DAMAGED: Final = 1
_BURST_SECONDS: Final = 1.0
_SAVED_EVERY_SECONDS: Final = 2.0


class _Part(NamedTuple):
    """One partition to be scrubbed."""

    name: str
    prefix: str
    partition: TieredPartition
    objects: Sequence[ObjectEntry]


@click.command()
@bucket_options
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topics)
@click.option(
    "--progress",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep there how far it is. A scrub that was cut off goes on from it; one that ends removes it.",
)
@click.option("--rate", callback=byte_rate, metavar="RATE", help="Read no faster, as 50MB/s.")
@bootstrap_option
@json_option
def scrub(
    bucket: Bucket,
    topics: tuple[str, ...],
    path: Path | None,
    rate: int | None,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Read every object that a manifest names, and prove that it is what was written.

    Size and crc32c are compared with the manifest's, indexes are decoded, and segments must follow each
    other without a gap. It changes nothing, and may run beside brokers. With names of topics it asks the
    brokers for their ids; without, it reads everything below BUCKET_URL and needs no broker. Objects that
    no manifest names are counted: `headrace tier gc` says which of them may go.

    The exit code is 0 if everything is whole, and 1 if an object is damaged, missing, or could not be read.
    """
    from headrace.cli.tier_scrub_progress import ScrubProgress, read_progress

    wanted = _ask(bootstrap, topics) if topics else None
    progress = ScrubProgress(bucket.url) if path is None else read_progress(path, bucket.url)
    found: list[tuple[str, Scrubbed]] = []
    with bucket.opened() as store, ProgressLine() as line:
        for each in _parts(store, bucket, wanted):
            state = progress.of(each.prefix)
            if not state.is_done:
                keeper = _Keeper(state, progress, path, rate, line, each.name)
                _scrub_one(store, bucket, each, keeper)
            found.append((each.name, state.scrubbed))
    if as_json:
        print_json(_document(bucket.url, found))
    else:
        _show(bucket.url, found)
    if path is not None:
        path.unlink(missing_ok=True)
    if not all(scrubbed.is_whole for _, scrubbed in found):
        raise click.exceptions.Exit(DAMAGED)


def _ask(bootstrap: str, topics: Sequence[str]) -> Known:
    known = with_cluster(bootstrap, known_topics)
    missing = sorted({*topics} - {*known.topics.values()})
    if missing:
        raise ClientFailure(f"there is no topic {missing[0]}", "`headrace topic list` has their names")
    return Known(known.cluster_id, {key: name for key, name in known.topics.items() if name in topics})


def _parts(store: ObjectStore, bucket: Bucket, wanted: Known | None) -> list[_Part]:
    from headrace.tier.names import Folder, encode_id

    def prefix_of(topic_id: UUID) -> str:
        return "" if wanted is None else f"{wanted.cluster_id}/{encode_id(topic_id)}/"

    prefixes = [""] if wanted is None else [prefix_of(topic_id) for topic_id in wanted.topics]
    objects = [each for prefix in prefixes for each in listed(store, prefix, bucket.deadline)]
    parts = []
    for (cluster_id, partition), of_it in by_partition(objects).items():
        topic = encode_id(partition.topic_id) if wanted is None else wanted.topics[partition.topic_id]
        prefix = Folder.of(cluster_id, partition).prefix
        parts.append(_Part(f"{topic}-{partition.partition}", prefix, partition, of_it))
    return sorted(parts, key=lambda each: (each.name.rpartition("-")[0], each.partition.partition))


class _Keeper:
    """Told of each segment: it keeps how far the scrub is, waits for its turn, and says where it is."""

    def __init__(
        self,
        state: PartitionProgress,
        progress: ScrubProgress,
        path: Path | None,
        rate: int | None,
        line: ProgressLine,
        name: str,
    ) -> None:
        from headrace.security.token_bucket import TokenBucket

        self.state = state
        self._progress = progress
        self._path = path
        self._line = line
        self._name = name
        self._saved = time.monotonic()
        self._bucket = None if rate is None else TokenBucket(rate, _BURST_SECONDS, _now_ms())

    def on_read(self, size: int) -> None:
        if self._bucket is not None:
            time.sleep(self._bucket.charge(size, _now_ms()) / 1000)

    def on_verified(self, so_far: Scrubbed, verified_to: int) -> None:
        self.state.verified_to = verified_to
        self.state.scrubbed = replace(so_far, findings=list(so_far.findings))
        self._line.tell(f"{self._name}: {so_far.size:,} bytes, to offset {verified_to}")
        if time.monotonic() - self._saved >= _SAVED_EVERY_SECONDS:
            self.save()

    def save(self) -> None:
        self._saved = time.monotonic()
        if self._path is not None:
            self._progress.write(self._path)


def _scrub_one(store: ObjectStore, bucket: Bucket, part: _Part, keeper: _Keeper) -> None:
    from headrace.tier.calls import carry_out
    from headrace.tier.names import Folder
    from headrace.tier.scrubbing import Scrub

    state = keeper.state
    job = Scrub(
        Folder(part.prefix),
        part.partition,
        part.objects,
        state.verified_to,
        state.scrubbed,
        keeper.on_read,
        keeper.on_verified,
    )
    try:
        state.scrubbed = carry_out(store, job.run(), bucket.deadline)
        state.is_done = True
    finally:
        keeper.save()  # also after Ctrl-C


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


def _show(url: str, found: Sequence[tuple[str, Scrubbed]]) -> None:
    for name, scrubbed in found:
        if scrubbed.is_deleted:
            click.echo(f"{name}: its topic was deleted")
        elif not scrubbed.end and not scrubbed.findings:
            click.echo(f"{name}: nothing is named")
        else:
            state = "whole" if scrubbed.is_whole else "DAMAGED"
            click.echo(
                f"{name}: {state}, offsets {scrubbed.start} to {scrubbed.end},"
                f" {counted(scrubbed.segments, 'segment')}, {scrubbed.size:,} bytes"
            )
        for each in scrubbed.findings:
            click.echo(f"  {each.kind}: {each.key}: {each.problem}")
            click.echo(f"  next: {each.next_step}")
        if scrubbed.orphans:
            click.echo(
                f"  note: {counted(scrubbed.orphans, 'object')} with {scrubbed.orphan_bytes:,} bytes that the"
                " manifest does not name: on their way, or garbage (`headrace tier gc`)"
            )
    wrong = sum(not scrubbed.is_whole for _, scrubbed in found)
    if wrong:
        click.echo(f"{url}: {wrong} of {counted(len(found), 'partition')} are not whole", err=True)
    else:
        click.echo(f"{url} is whole: {counted(len(found), 'partition')}")


def _document(url: str, found: Sequence[tuple[str, Scrubbed]]) -> dict[str, Any]:
    return {
        "bucket": url,
        "whole": all(scrubbed.is_whole for _, scrubbed in found),
        "partitions": [
            {
                "partition": name,
                "whole": scrubbed.is_whole,
                "deleted": scrubbed.is_deleted,
                "start": scrubbed.start,
                "end": scrubbed.end,
                "segments": scrubbed.segments,
                "bytes": scrubbed.size,
                "orphans": scrubbed.orphans,
                "orphan_bytes": scrubbed.orphan_bytes,
                "findings": [each._asdict() for each in scrubbed.findings],
            }
            for name, scrubbed in found
        ],
    }
