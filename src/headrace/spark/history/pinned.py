"""What a streaming query reads before it goes on with the brokers, settled once. Pure.

It is written beside the query's checkpoint and never changed. So a query that is started again plans the same
batches from the same files, however the table and the bucket have changed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.spark.history.plan import LOG, TABLE, TIER, HistoryRefused, Range, Whole
from headrace.spark.segments.plan import Task, tasks_json, tasks_of

_VERSION: Final = 1


class Pinned(NamedTuple):
    topic: str
    starts: Mapping[int, int]
    """Where the brokers' part begins, by partition."""
    loaded: Mapping[int, Sequence[Range]]
    """Offsets that count of what is in the table's files."""
    files: tuple[str, ...] = ()
    """Of the table."""
    letters: tuple[str, ...] = ()
    """Of its dead letters."""
    schema: str | None = None
    """Of the table, as JSON."""
    tasks: tuple[Task, ...] = ()
    """Of the bucket."""

    def text(self) -> str:
        document = {
            **self._asdict(),
            "version": _VERSION,
            "tasks": json.loads(tasks_json(self.tasks)),
        }
        return json.dumps(document)


def pinned_of(text: str) -> Pinned:
    document = json.loads(text)
    if document["version"] != _VERSION:
        raise HistoryRefused(
            f"the checkpoint's history.json has version {document['version']}, and {_VERSION} is known here: "
            "use the Headrace that wrote it, or a newer one"
        )
    return Pinned(
        document["topic"],
        {int(partition): offset for partition, offset in document["starts"].items()},
        {int(partition): [Range(*each) for each in found] for partition, found in document["loaded"].items()},
        tuple(document["files"]),
        tuple(document["letters"]),
        document["schema"],
        tuple(tasks_of(json.dumps(document["tasks"]))),
    )


class Ahead(NamedTuple):
    """What of a topic comes before the brokers' part."""

    table: Mapping[int, Sequence[Range]]
    tier: Mapping[int, Sequence[Range]]
    starts: Mapping[int, int]


def ahead(whole: Whole) -> Ahead:
    """Brokers have what follows the first of their shares as well: a stream leaves them for nobody again."""
    table: dict[int, list[Range]] = {}
    tier: dict[int, list[Range]] = {}
    starts: dict[int, int] = {}
    for partition, shares in whole.shares.items():
        starts[partition] = whole.ends[partition]
        for each in shares:
            if each.place == LOG:
                starts[partition] = each.first
                break
            found = {TABLE: table, TIER: tier}[each.place]
            found.setdefault(partition, []).append(Range(each.first, each.end))
    return Ahead(table, tier, starts)
