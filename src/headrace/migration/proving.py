"""The two ends compared by somebody who took no part in the copying: a reader of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from headrace.client.configs import Resource, ResourceType, describe_configs
from headrace.client.errors import Refused
from headrace.client.offsets import ends_of
from headrace.core.ids import TopicPartition
from headrace.migration import ends, places
from headrace.migration.batches import read_batches
from headrace.migration.comparison import Tally, compare
from headrace.migration.ends import Both
from headrace.migration.places import Place
from headrace.protocol.error_codes import ErrorCode

SAMPLE_BYTES: Final = 1024 * 1024
AT_ONCE: Final = 4
_AGAIN: Final = 5
"""Times that a partition is begun anew because the source deleted records while it was read."""


class Compared(NamedTuple):
    partition: TopicPartition
    source: tuple[int, int]
    """First offset and next offset."""
    here: tuple[int, int]
    start: int
    end: int
    """What both had, when it was begun."""
    places: int
    records: int
    batches: int
    bytes: int
    only_at_source: int
    only_here: int
    digest: str
    """Of the whole range; empty for samples."""
    difference: str | None

    @property
    def document(self) -> dict[str, Any]:
        return {**self._asdict(), "partition": self.partition.partition, "topic": self.partition.topic}


class How(NamedTuple):
    samples: int | None
    """None: everything."""
    seed: int = 0


async def prove(
    both: Both, topics: list[str], how: How, tell: Callable[[str], None] = lambda _: None
) -> list[Compared]:
    """Every partition that either end has."""
    wanted = sorted(
        {*await ends.partitions(both.source, topics), *await ends.partitions(both.target, topics)}
    )
    compacted = {name: await _is_compacted(both, name) for name in topics}
    gate = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(partition: TopicPartition) -> Compared:
        nonlocal done
        async with gate:
            found = await _patiently(both, partition, how, compacted[partition.topic])
        done += 1
        tell(f"{done} of {len(wanted)} partitions compared")
        return found

    return list(await asyncio.gather(*(one(each) for each in wanted)))


async def _is_compacted(both: Both, topic: str) -> bool:
    for cluster in both:
        entries = await describe_configs(cluster, Resource(ResourceType.TOPIC, topic), ["cleanup.policy"])
        if any("compact" in (entry.value or "") for entry in entries):
            return True
    return False


async def _patiently(both: Both, partition: TopicPartition, how: How, is_compacted: bool) -> Compared:
    for again in range(_AGAIN):
        try:
            return await _one(both, partition, how, is_compacted)
        except Refused as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return _lacking(partition)
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or again == _AGAIN - 1:
                raise
    raise AssertionError("the last round returns or raises")


def _lacking(partition: TopicPartition) -> Compared:
    text = "only one end has this partition: partitions that are added come within seconds, compare again"
    return Compared(partition, (-1, -1), (-1, -1), 0, 0, 0, 0, 0, 0, 0, 0, "", text)


async def _one(both: Both, partition: TopicPartition, how: How, is_compacted: bool) -> Compared:
    # The copy is asked first: what it has by then, the source has.
    here = (await ends_of(both.target, [partition]))[partition]
    source = (await ends_of(both.source, [partition]))[partition]
    start, end = places.common_range(source, here)
    if how.samples is None:
        chosen = places.whole(start, end)
    else:
        chosen = places.samples(start, end, how.samples, f"{how.seed} {partition}", SAMPLE_BYTES)
    tallies: list[Tally] = []
    for place in chosen:
        # Nothing is compared, or counted, twice: places of a small partition lie in the same batches.
        rest = place.behind(tallies[-1].reached) if tallies else place
        if rest is None:
            continue
        tallies.append(await compare_place(both, partition, rest, is_compacted=is_compacted))
        if tallies[-1].difference is not None:
            break
    difference = next((each.difference for each in tallies if each.difference is not None), None)
    if difference is None and here[1] > source[1]:
        difference = f"the copy ends at {here[1]}, behind the source's end {source[1]}"
    return Compared(
        partition,
        source,
        here,
        start,
        end,
        len(tallies),
        sum(each.records for each in tallies),
        sum(each.batches for each in tallies),
        sum(each.bytes for each in tallies),
        sum(each.only_at_source for each in tallies),
        sum(each.only_here for each in tallies),
        tallies[0].digest if how.samples is None and tallies else "",
        difference,
    )


async def compare_place(both: Both, partition: TopicPartition, place: Place, *, is_compacted: bool) -> Tally:
    async with (
        aclosing(
            read_batches(both.source, partition, place.start, place.end, is_compacted=is_compacted)
        ) as there,
        aclosing(
            read_batches(both.target, partition, place.start, place.end, is_compacted=is_compacted)
        ) as here,
    ):
        return await compare(there, here, is_compacted=is_compacted, at_most=place.at_most)


async def compare_tails(both: Both, wanted: Mapping[TopicPartition, int], topics: list[str]) -> list[str]:
    """The last batch of each partition; the differences. Quick, for the moment before the promotion."""
    compacted = {name: await _is_compacted(both, name) for name in topics}
    gate = asyncio.Semaphore(4 * AT_ONCE)

    async def one(partition: TopicPartition, end: int) -> str | None:
        async with gate:
            place = Place(end - 1, end, None)
            tally = await compare_place(both, partition, place, is_compacted=compacted[partition.topic])
        return None if tally.difference is None else f"{partition}: {tally.difference}"

    starts = await ends_of(both.target, wanted)
    found = await asyncio.gather(
        *(one(partition, end) for partition, end in wanted.items() if starts[partition][0] < end)
    )
    return [each for each in found if each is not None]
