"""One more record in a topic, and copies of records that are somewhere.

Neither the journal nor the log gets what is in a record: not everybody who may see a topic may read it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.partitioner import partition_for_key
from headrace.client.producer import Producer
from headrace.client.topics import TopicState, describe_topics
from headrace.console.changes.planned import Line, Planned, Subject, Tell
from headrace.console.records.chosen import Chosen, chosen_in
from headrace.console.records.copying import Copied, read_chosen
from headrace.console.words import counted, size
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Headers, NewRecord
from headrace.security.acl import ResourceType

KEY: Final = "key"
VALUE: Final = "value"
HEADERS: Final = "headers"
PARTITION: Final = "partition"
FORM: Final = "form"
NO_VALUE: Final = "no_value"
RECORDS: Final = "records"
TO: Final = "to"
WHERE: Final = "where"
FORMS: Final = {"text": "text", "base64": "base64"}
PLACES: Final = {"key": "by their keys", "same": "by their partitions"}
MOST_HEADERS: Final = 100
_SHOWN: Final = 4000


async def plan_record(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    (state,) = await describe_topics(cluster, [name])
    record = record_of(fields)
    place = _place(fields.get(PARTITION, ""), record.key, state)
    notes = (
        []
        if record.value is not None
        else ["Without a value it deletes what a compacted topic has by its key."]
    )
    where = name if place is None else f"{name}-{place}"
    chosen = random.randrange(len(state.partitions)) if place is None else place
    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Produce a record into {name}",
        (Line("+", f"record in {where}"),),
        (),
        partial(_send, name, [(chosen, record)]),
        notes=(*notes, *_refusals(state)),
        refused=_brokers_own(state),
        fields=tuple((each, fields[each]) for each in _OF_A_RECORD if each in fields),
        shown=_shown(record),
        identity=_identity(state, [record]),
        adds=True,
    )


_OF_A_RECORD: Final = (KEY, VALUE, HEADERS, PARTITION, FORM, NO_VALUE)


async def plan_copies(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    """With the keys, values and headers of now; the copies have the time at which they are written."""
    chosen = chosen_in(fields.get(RECORDS, ""))
    target = fields.get(TO, "").strip() or name
    by_number = fields.get(WHERE) == "same"
    states = {each.name: each for each in await describe_topics(cluster, sorted({name, target}))}
    source, into = states[name], states[target]
    found = await read_chosen(cluster, name, chosen)
    records = [(_copy_place(each, into, by_number=by_number), each.record) for each in found.records]
    return Planned(
        Subject(ResourceType.TOPIC, target),
        f"Copy {counted(len(records), 'record')} of {name} into {target}",
        tuple(_lines(target, records)),
        (),
        partial(_send, target, records),
        notes=tuple(_notes(name, target, chosen, found.missing)),
        refused=(*_brokers_own(into), *_too_few(source, into, records)),
        fields=((RECORDS, chosen.text), (TO, target), (WHERE, fields.get(WHERE, ""))),
        shown=(("Records", chosen.text), ("Keys and values", size(found.bytes))),
        identity=_identity(into, [record for _, record in records]) + str(source.topic_id),
        beside=(Subject(ResourceType.TOPIC, name),),
        adds=True,
    )


async def _send(name: str, records: Sequence[tuple[int, NewRecord]], cluster: Cluster, tell: Tell) -> None:
    """One partition after the other, so that whoever reads the steps knows what was written."""
    producer = Producer(cluster, delivery_timeout=cluster.request_timeout)
    of_place: dict[int, list[NewRecord]] = {}
    for place, record in records:
        of_place.setdefault(place, []).append(record)
    for number, (place, batch) in enumerate(sorted(of_place.items()), 1):
        target = TopicPartition(name, place)
        tell(f"{number} of {len(of_place)}: write {counted(len(batch), 'record')} to {target}")
        for part in batches_of(batch):
            now_ms = time.time_ns() // 1_000_000
            offset = await producer.send_batch(target, [each._replace(timestamp=now_ms) for each in part])
            last = offset + len(part) - 1
            tell(f"written: {target} {offset:,}" + (f" to {last:,}" if last > offset else ""))


def batches_of(records: Sequence[NewRecord]) -> list[list[NewRecord]]:
    """Batches that a topic with Kafka's own limit takes, as far as its records let them be small."""
    found: list[list[NewRecord]] = []
    room = 0
    for record in records:
        length = (
            len(record.key or b"")
            + len(record.value or b"")
            + sum(len(each or b"") for _, each in record.headers)
        )
        if not found or length > room:
            found.append([])
            room = 512 * 1024
        found[-1].append(record)
        room -= length
    return found


def record_of(fields: Mapping[str, str]) -> NewRecord:
    form = fields.get(FORM, "text")
    key = fields.get(KEY, "")
    value = None if fields.get(NO_VALUE) else _bytes(fields.get(VALUE, ""), form, "value")
    return NewRecord(value, _bytes(key, form, "key") if key else None, -1, _headers(fields.get(HEADERS, "")))


def _bytes(text: str, form: str, what: str) -> bytes:
    if form != "base64":
        # A form sends each end of a line as two characters, whatever the reader has typed.
        return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        raise ClientFailure(f"the {what} is not base64", "write it again, or send it as text") from None


def _headers(text: str) -> Headers:
    found = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise ClientFailure(
                f"{line[:80]!r} is no header", "write each on a line of its own, as NAME=VALUE"
            )
        found.append((name, value.encode()))
    if len(found) > MOST_HEADERS:
        raise ClientFailure(f"there are {len(found)} headers", f"{MOST_HEADERS} are the most")
    return tuple(found)


def _place(text: str, key: bytes | None, state: TopicState) -> int | None:
    """None where any partition will do."""
    count = len(state.partitions)
    text = text.strip()
    if not text:
        return None if key is None and count > 1 else partition_for_key(key or b"", count)
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) >= count:
        raise ClientFailure(f"{text} is no partition of {state.name}", f"it has {count}, and the first is 0")
    return int(text)


def _copy_place(copied: Copied, into: TopicState, *, by_number: bool) -> int:
    """Records without a key stay beside each other, so that their order stays too."""
    if by_number or copied.record.key is None:
        return copied.partition if by_number else copied.partition % len(into.partitions)
    return partition_for_key(copied.record.key, len(into.partitions))


def _lines(target: str, records: Sequence[tuple[int, NewRecord]]) -> list[Line]:
    counts: dict[int, int] = {}
    for place, _ in records:
        counts[place] = counts.get(place, 0) + 1
    return [
        Line("+", f"{counted(number, 'record')} in {target}-{place}")
        for place, number in sorted(counts.items())
    ]


def _notes(name: str, target: str, chosen: Chosen, missing: int) -> list[str]:
    notes = []
    if name == target:
        notes.append(
            "The copies go to the topic that they are from: whoever reads it gets these records twice."
        )
    if missing:
        notes.append(
            f"{missing:,} of the {chosen.whole:,} chosen offsets have no record that can be read: it was"
            " removed, or the offset belongs to a transaction."
        )
    return notes


def _brokers_own(state: TopicState) -> tuple[str, ...]:
    return (f"Topic {state.name} is the brokers' own.",) if state.internal else ()


def _refusals(state: TopicState) -> list[str]:
    away = [each.partition for each in state.partitions if each.leader < 0]
    return [f"Partition {away[0]} has no leader: what goes there is refused."] if away else []


def _too_few(
    source: TopicState, into: TopicState, records: Sequence[tuple[int, NewRecord]]
) -> tuple[str, ...]:
    outside = [place for place, _ in records if place >= len(into.partitions)]
    if not outside:
        return ()
    return (
        f"Topic {into.name} has {counted(len(into.partitions), 'partition')}, and {source.name} has records"
        f" in partition {min(outside)}.",
    )


def _shown(record: NewRecord) -> tuple[tuple[str, str], ...]:
    headers = [(f"Header {name}", _text(value)) for name, value in record.headers]
    return (("Key", _text(record.key)), ("Value", _text(record.value)), *headers)


def _text(data: bytes | None) -> str:
    if data is None:
        return "(null)"
    shown = data[:_SHOWN].decode("utf-8", "backslashreplace")
    return f"{shown}… ({size(len(data))})" if len(data) > _SHOWN else shown or "(empty)"


def _identity(state: TopicState, records: Sequence[NewRecord]) -> str:
    """A topic that is made anew is another one, and so is another record."""
    digest = hashlib.sha256(repr([tuple(each) for each in records]).encode("utf-8", "surrogatepass"))
    return f"{state.topic_id} {digest.hexdigest()}"
