"""`headrace tier gc`: what is in the bucket and belongs to nobody any more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID, uuid4

import click

from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table
from headrace.cli.tier_bucket import Bucket, bucket_options, by_partition, known_topics, listed
from headrace.cli.values import counted, duration_ms, duration_text

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster
    from headrace.core.ports_objects import ObjectEntry, ObjectStore
    from headrace.tier.calls import Steps
    from headrace.tier.garbage import Remains
    from headrace.tier.jobs import Place
    from headrace.tier.names import TieredPartition

FAILED: Final = 1
UNNAMED: Final = "no manifest names it"
GONE: Final = "its topic was deleted"
MARKED: Final = "its topic was deleted, not long enough ago"
HELD: Final = "its topic was deleted, and a fork reads some of it"

_Result = TypeVar("_Result")


class _Known(NamedTuple):
    cluster_id: str
    names: dict[UUID, str]
    gone: set[UUID]


class Found(NamedTuple):
    """In one partition's folder."""

    topic: str
    partition: int
    why: str
    objects: int
    size: int
    is_due: bool
    """It is deleted with --delete; else it is only told."""
    failure: str = ""


@click.command()
@bucket_options
@click.option("--delete", "deletes", is_flag=True, help="Delete what may go. Without it, it is listed.")
@click.option(
    "--older-than",
    "age_ms",
    default="1d",
    show_default=True,
    callback=duration_ms,
    metavar="DURATION",
    help="So long nobody has written an object, or a topic was deleted.",
)
@bootstrap_option
@json_option
def gc(bucket: Bucket, deletes: bool, age_ms: int, bootstrap: str, as_json: bool) -> None:
    """List what belongs to nobody any more, and delete it with --delete.

    Of a topic that is there, these are objects that no manifest names, that are older than a day, and that
    a leader before the one of now has written: what leaders that died had begun. Of a topic that no broker
    knows, everything: but first its manifest says that it was deleted, for a day. What is not of the brokers'
    cluster is left alone. Every broker is asked; if one does not answer, nothing is judged.

    The exit code is 1 if something could not be judged or deleted.
    """
    now_ms = int(time.time() * 1000)
    with bucket.opened() as store, ProgressLine() as line:
        line.tell("listing the bucket")
        parts = by_partition(listed(store, "", bucket.deadline))
        unmade = _unmade_forks(store, bucket.deadline, parts)
        topic_ids = {partition.topic_id for _, partition in (*parts, *unmade)}
        parts |= {each: [] for each in unmade if each not in parts}

        async def ask(cluster: Cluster) -> _Known:
            from headrace.client.topic_ids import gone_topics

            known = await known_topics(cluster)
            missing = topic_ids - known.topics.keys()
            return _Known(known.cluster_id, known.topics, await gone_topics(cluster, missing))

        known = with_cluster(bootstrap, ask)
        found: list[Found] = []
        others = 0
        for (cluster_id, partition), objects in sorted(parts.items()):
            if cluster_id != known.cluster_id:
                others += len(objects)
                continue
            line.tell(f"looking at {len(found)} folders with garbage, of {len(parts)} in all")
            judge = _Judge(store, bucket.deadline, known, now_ms, now_ms - age_ms, deletes)
            place = unmade.get((cluster_id, partition)) or _place(cluster_id, partition)
            found += judge.judged(place, objects)
    if as_json:
        print_json(_document(bucket.url, found, others, deletes))
    else:
        _show(found, others, deletes, age_ms)
    if any(each.failure for each in found):
        raise click.exceptions.Exit(FAILED)


def _unmade_forks(
    store: ObjectStore, deadline: float, parts: Mapping[tuple[str, TieredPartition], Sequence[ObjectEntry]]
) -> dict[tuple[str, TieredPartition], Place]:
    """Those that keep what their origins gave up, and have no folder yet."""
    from headrace.tier.calls import carry_out
    from headrace.tier.garbage import find_unmade_forks

    found = {}
    for (cluster_id, partition), objects in parts.items():
        place = _place(cluster_id, partition)
        if any(each.key == place.folder.forks for each in objects):
            forks = carry_out(store, find_unmade_forks(place), deadline)
            if isinstance(forks, list):
                found.update({(cluster_id, each.partition): each for each in forks})
    return found


def _place(cluster_id: str, partition: TieredPartition) -> Place:
    from headrace.tier.jobs import Place
    from headrace.tier.names import Folder

    return Place(Folder.of(cluster_id, partition), partition)


class _Judge:
    def __init__(
        self,
        store: ObjectStore,
        deadline: float,
        known: _Known,
        now_ms: int,
        newest_ms: int,
        deletes: bool,
    ) -> None:
        self._store = store
        self._deadline = deadline
        self._known = known
        self._now_ms = now_ms
        self._newest_ms = newest_ms
        self._deletes = deletes

    def judged(self, place: Place, objects: Sequence[ObjectEntry]) -> list[Found]:
        if place.partition.topic_id in self._known.gone:
            return [self._gone(place, objects)]
        return self._there(place, objects)

    def _carry_out(self, steps: Steps[_Result]) -> _Result:
        from headrace.tier.calls import carry_out

        return carry_out(self._store, steps, self._deadline)

    def _found(
        self, place: Place, why: str, objects: Sequence[ObjectEntry], is_due: bool, failure: str = ""
    ) -> Found:
        from headrace.tier.names import encode_id

        topic_id, partition = place.partition
        name = self._known.names.get(topic_id) or encode_id(topic_id)
        return Found(name, partition, why, len(objects), sum(each.size for each in objects), is_due, failure)

    def _there(self, place: Place, objects: Sequence[ObjectEntry]) -> list[Found]:
        from headrace.tier.garbage import delete, find_unnamed

        garbage = self._carry_out(find_unnamed(place, objects, self._newest_ms))
        if not isinstance(garbage, list):
            return [self._found(place, UNNAMED, (), is_due=False, failure=garbage.reason)]
        if not garbage:
            return []
        failed = self._carry_out(delete(garbage)) if self._deletes else None
        return [
            self._found(place, UNNAMED, garbage, is_due=True, failure="" if failed is None else failed.reason)
        ]

    def _gone(self, place: Place, objects: Sequence[ObjectEntry]) -> Found:
        from headrace.tier.garbage import Remains, find_remains

        remains = self._carry_out(find_remains(place, objects, self._newest_ms))
        if not isinstance(remains, Remains):
            return self._found(place, GONE, objects, is_due=False, failure=remains.reason)
        failure = self._act(place, remains) if self._deletes else ""
        why = MARKED if not remains.is_due else HELD if remains.is_held else GONE
        return self._found(place, why, objects, why == GONE, failure)

    def _act(self, place: Place, remains: Remains) -> str:
        from headrace.tier.garbage import mark_deleted, purge

        failed = None
        if remains.is_due:
            failed = self._carry_out(purge(place, remains))
        elif not remains.is_marked:
            failed = self._carry_out(mark_deleted(place, remains, uuid4(), self._now_ms))
        return "" if failed is None else failed.reason


def _show(found: Sequence[Found], others: int, deletes: bool, age_ms: int) -> None:
    print_table(
        ("TOPIC", "PARTITION", "OBJECTS", "BYTES", "WHY"),
        [(each.topic, each.partition, each.objects, each.size, each.why) for each in found],
        empty="nothing in the bucket belongs to nobody",
    )
    for each in found:
        if each.failure:
            click.echo(f"error: {each.topic}-{each.partition}: {each.failure}", err=True)
            click.echo("hint: it is tried again by the next `headrace tier gc`", err=True)
    if others:
        click.echo(f"note: {counted(others, 'object')} of other clusters, which are not judged", err=True)
    due = [each for each in found if each.is_due and not each.failure]
    objects, size = sum(each.objects for each in due), sum(each.size for each in due)
    if deletes:
        click.echo(f"deleted {counted(objects, 'object')} with {size:,} bytes")
        if any(each.why == MARKED for each in found):
            click.echo(
                "topics that are gone are marked as deleted: what is left of them goes when this runs again"
                f" in {duration_text(age_ms)}"
            )
    elif found:
        click.echo(f"{counted(objects, 'object')} with {size:,} bytes may go: --delete deletes them")


def _document(url: str, found: Sequence[Found], others: int, deletes: bool) -> dict[str, Any]:
    return {
        "bucket": url,
        "deleted": deletes,
        "objects_of_other_clusters": others,
        "garbage": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "why": each.why,
                "objects": each.objects,
                "bytes": each.size,
                "due": each.is_due,
                "failure": each.failure,
            }
            for each in found
        ],
    }
