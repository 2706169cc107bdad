"""What a cutover has done, as one document and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.client.links import LinkView
from headrace.core.ids import TopicPartition
from headrace.migration.carrying import Carried
from headrace.migration.order import BACK
from headrace.migration.state import Migration


def document(
    migration: Migration,
    promoted: Sequence[LinkView],
    groups: Sequence[Carried],
    late: Mapping[TopicPartition, int],
    bootstrap: str,
    now_ms: int,
) -> dict[str, Any]:
    """`late`: records that the source took after its ends were read for the promotion."""
    cutover = migration.cutover
    silent = None if cutover.silent_from_ms is None else (now_ms - cutover.silent_from_ms) / 1000
    topics = [_topic(view, cutover.ends.get(view.topic, [])) for view in promoted]
    return {
        "source": {"bootstrap": migration.source.bootstrap, "cluster_id": migration.source.cluster_id},
        "target": {"bootstrap": bootstrap, "cluster_id": migration.target.cluster_id},
        "topics": topics,
        "groups": [{**each._asdict(), "outcome": each.words} for each in groups],
        "seconds_without_acknowledgements": None if silent is None else round(silent, 3),
        "transactions_aborted_at_source": cutover.aborted,
        "transactions_aborted_by_promotion": sum(topic["aborted"] for topic in topics),
        "is_fenced": bool(cutover.fence),
        "late": {str(partition): count for partition, count in sorted(late.items())},
    }


def _topic(view: LinkView, ends: Sequence[int]) -> dict[str, Any]:
    rows = []
    for row in view.partitions:
        end = ends[row.partition] if row.partition < len(ends) else -1
        opened = -1 if row.opened is None else row.opened
        rows.append({"partition": row.partition, "source_end": end, "opened": opened, "lost": row.lost})
    # Each transaction that was open in a partition has left one marker there, and nothing else was written.
    aborted = sum(max(0, each["opened"] - each["source_end"]) for each in rows if each["source_end"] >= 0)
    return {"topic": view.topic, "state": view.state, "aborted": aborted, "partitions": rows}


def is_clean(report: Mapping[str, Any]) -> bool:
    return not report["late"] and all(
        row["opened"] >= row["source_end"] for topic in report["topics"] for row in topic["partitions"]
    )


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"migrated from {report['source']['bootstrap']} (cluster {report['source']['cluster_id']})"
    yield f"           to {report['target']['bootstrap']} (cluster {report['target']['cluster_id']})"
    for topic in report["topics"]:
        offsets = ", ".join(f"{row['partition']}: {row['opened']}" for row in topic["partitions"])
        yield f"topic {topic['topic']}: {topic['state']}, open for producers from {offsets}"
        lost = sum(row["lost"] for row in topic["partitions"])
        if lost:
            yield f"  {lost:,} records were deleted at the source before they were copied"
    for group in report["groups"]:
        yield (
            f"group {group['group_id']}: {group['partitions']} partitions, {group['behind']:,} records"
            f" behind; {group['outcome']}"
        )
    yield from _transactions(report)
    seconds = report["seconds_without_acknowledgements"]
    if seconds is not None:
        yield f"{seconds:.1f} s between the source's last acknowledgement and the first possible one here"
    yield from _late(report)
    if any("members at the source go on" in group["outcome"] for group in report["groups"]):
        yield (
            "groups still had members at the source: stop them there, run `headrace migrate groups` once"
            " more, then start them here"
        )
    if report["is_fenced"]:
        yield "the rules that deny writing at the source stay: what it took now would not come here"
    yield f"tell clients: bootstrap.servers={report['target']['bootstrap']}"
    yield BACK


def _transactions(report: Mapping[str, Any]) -> Iterator[str]:
    there = report["transactions_aborted_at_source"]
    if there:
        yield f"transactions aborted at the source, so that both ends agree: {', '.join(there)}"
    here = report["transactions_aborted_by_promotion"]
    if here:
        yield f"transactions aborted by the promotion: {here} markers"


def _late(report: Mapping[str, Any]) -> Iterator[str]:
    if report["late"]:
        what = ", ".join(f"{partition}: {count}" for partition, count in report["late"].items())
        yield f"NOT HERE: records that came to the source after its ends were read: {what}"
        yield "somebody still writes there: read them with `headrace consume`, and send them here"
