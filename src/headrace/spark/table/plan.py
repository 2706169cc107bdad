"""Where a table stands, and what has to be done before its next batch. Pure.

A *lineage* is a run of batches from one checkpoint. Batch n of a lineage is step `first_step + n`, whoever
repeats it. A rebuild is one step by itself, and begins a new lineage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from headrace.core.errors import HeadraceError
from headrace.spark.decoding.formats import Decoding
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import Following
from headrace.spark.table.config import TableSpec


class NeedsRebuild(HeadraceError):
    """The table was made by other rules; says what to do."""


class Standing(NamedTuple):
    """What is known before a start. Steps are -1 where there is no table."""

    step: int
    """The last one in the table."""
    derived: Mapping[str, int]
    """The last one in each index and view."""
    definitions: Mapping[str, str]
    """By which each index and view was made, as the state remembers."""
    rebuilt: int
    """The last step that was a rebuild."""


def route_of(store: LakeConfig, spec: TableSpec, rebuilt: int) -> Route:
    """Each rebuild has a directory of its own, so that its offsets and the old checkpoint never mix."""
    state = f"{table_state(store, spec)}/from-{rebuilt}"
    return Route(spec.topic, spec.name, spec.dead_letters, spec.decoding, spec.keep_value, state)


def table_state(store: LakeConfig, spec: TableSpec) -> str:
    return f"{store.state}/{spec.name}"


def definition(spec: TableSpec) -> str:
    """What cannot change without a rebuild."""
    found: dict[str, object] = {
        "topic": spec.topic,
        "key": spec.key.value,
        "key_fields": list(spec.key_fields),
        "order": spec.order.value,
        "deleted": spec.deleted,
    }
    if spec.key_decoding is not None:
        found["key_decoding"] = _key_decoding(spec.key_decoding)
    return json.dumps(found)


def _key_decoding(decoding: Decoding) -> dict[str, object]:
    """The schema as a digest. Not where the registry is: that may move, and may have a password in it."""
    given = decoding.schema
    schema = given if isinstance(given, bytes) else str(given).encode()
    return {
        "schema": None if given is None else hashlib.sha256(schema).hexdigest()[:16],
        "subject": decoding.subject,
        "version": decoding.version,
        "message": decoding.message,
    }


def check_key(spec: TableSpec, following: Following) -> None:
    """Old rows would keep keys of another kind, which no record finds any more."""
    reasons = [str(change) for change in following.changes if change.path[0] in spec.key_columns]
    reasons += [each.reason for each in following.conflicts if each.column in spec.key_columns]
    if reasons:
        raise NeedsRebuild(
            f"{spec.name}: the key of its records is not what it was ({'; '.join(reasons)}): change it back, "
            f"or run `headrace table rebuild {spec.name}`"
        )


def derived_definitions(spec: TableSpec) -> dict[str, str]:
    """A view is made anew where its index is: it is kept by what the index had before."""
    indexes = {
        index.name: _digest([index.columns, index.include, spec.key_columns]) for index in spec.indexes
    }
    views = {view.name: _digest([view.columns, indexes[view.index]]) for view in spec.views}
    return {**indexes, **views}


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def to_derive(spec: TableSpec, standing: Standing) -> list[str]:
    """Indexes and views that must be made from the whole table before the next batch.

    One that is behind was cut off. The batch that Spark repeats may be another by then: compaction took some
    of its records, or a schema was fixed. So it is made from what the table took, not from the batch.
    """
    if standing.step < 0:
        return []
    wanted = derived_definitions(spec)
    stale = set()
    for name, text in wanted.items():
        step = standing.derived.get(name, -1)
        behind = step < standing.step
        if behind or step < standing.rebuilt or standing.definitions.get(name) != text:
            stale.add(name)
    stale |= {view.name for view in spec.views if view.index in stale}
    return [name for name in wanted if name in stale]


def without(definitions: Mapping[str, str], behind: Collection[str]) -> dict[str, str]:
    """What the state is to remember: a view that could not be computed is made at the next start."""
    return {name: text for name, text in definitions.items() if name not in behind}


def starting(begins: Offsets, following: Offsets, partitions: Mapping[str, list[int]]) -> Offsets:
    """Behind what the last rebuild read and behind what the table has; else from a partition's beginning."""
    return {
        (topic, index): max(begins.get((topic, index), _EARLIEST), following.get((topic, index), _EARLIEST))
        for topic, indexes in partitions.items()
        for index in indexes
    }


def renumbered(first_step: int, planned: int, last: int) -> int:
    """The step of batch 0, so that no batch to come has a step that the tables had before it.

    `planned` is the last batch that the checkpoint knows, and `last` the last step of all tables. They are
    past the checkpoint if it came back from a copy, for example. Its records come once more then, under new
    numbers: under the old ones they would pass for repetitions, those that are new to the table too.
    """
    return first_step if last <= first_step + planned else last + 1 - planned


#: For the connector.
_EARLIEST = -2
