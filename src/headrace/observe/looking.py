"""Asks a cluster what a look needs, everything once, by as few requests as there are brokers.

What cannot be had becomes an Unknown, or is left out with the reason. Only a cluster in which nobody answers
is an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from headrace.client import health, log_dirs, reassignments
from headrace.client.broker_health import BrokerHealth, ask_brokers
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.group_offsets import Committed, committed_offsets
from headrace.client.groups import CLASSIC, CONSUMER, Group, describe_groups, list_groups
from headrace.client.health import ClusterView, Health, Observation
from headrace.client.internal_factors import ask_factors
from headrace.client.log_dirs import LogDirectory, ReplicaFiles
from headrace.client.topics import TopicState, list_topics
from headrace.core.ids import TopicPartition
from headrace.doctor.gathering import attempt
from headrace.doctor.model import Unknown
from headrace.observe.ends import AllEnds, ask_ends, by_leader
from headrace.observe.group_building import place_of
from headrace.observe.look import Files, Look
from headrace.observe.record_times import Place, RecordTimes
from headrace.observe.tiers import Tiers, TopicSettings, ask_settings, ask_tiers
from headrace.protocol.api_keys import ApiKey

SELDOM_SECONDS: Final = 60.0
"""Sizes of files and settings of topics: their answers are the longest, and they change slowly."""
_GroupsAndCommits = tuple[
    Mapping[str, Group | Refused] | Unknown,
    Mapping[str, Mapping[TopicPartition, Committed]] | Unknown,
]


class Looker:
    """Remembers what need not be asked again."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._times = RecordTimes()
        self._seldom_at = float("-inf")
        self._asked_for: frozenset[str] = frozenset()
        self._settings: TopicSettings | Unknown = TopicSettings({}, {})
        self._files: Files | Unknown = Unknown("not asked yet")

    async def look(self) -> Look:
        """Raises ClientFailure where no broker answers."""
        began = self._monotonic()
        cluster = self._cluster
        view, topics = await asyncio.gather(
            health.describe_cluster(cluster), list_topics(cluster, internal=True)
        )
        alive = [broker.broker_id for broker in view.brokers if broker.alive]
        brokers, (groups, committed) = await asyncio.gather(
            ask_brokers(cluster, alive), self._groups_and_commits()
        )
        answering = [number for number, told in brokers.items() if told.answers]
        # After the commits: a lag is never below zero.
        all_ends, _ = await asyncio.gather(
            self._ends(topics, brokers), self._seldom(began, view, topics, answering)
        )
        seconds, at_ms = self._monotonic(), self._now_ms()
        tiers, times = await asyncio.gather(
            self._tiers(topics, all_ends), self._record_times(topics, committed, all_ends)
        )
        judged = await attempt("cluster status", self._judged(view, topics, brokers, answering))
        return Look(
            at_ms,
            seconds,
            self._monotonic() - began,
            view,
            topics,
            judged,
            all_ends,
            self._files,
            groups,
            committed,
            times,
            None,
            tiers,
        )

    async def _groups_and_commits(self) -> _GroupsAndCommits:
        cluster = self._cluster

        async def described() -> Mapping[str, Group | Refused]:
            listed = await list_groups(cluster)
            # Brokers that are too old to name the kind have classic groups alone.
            names = [group.group_id for group in listed if group.kind in ("", CLASSIC, CONSUMER)]
            return await describe_groups(cluster, names)

        groups = await attempt("groups", described())
        if isinstance(groups, Unknown):
            return groups, groups
        return groups, await attempt("committed offsets", committed_offsets(cluster, groups))

    async def _ends(self, topics: Sequence[TopicState], brokers: Mapping[int, BrokerHealth]) -> AllEnds:
        led = by_leader(topics)
        silent = {
            number: "it does not answer"
            for number in led
            if not brokers.get(number, BrokerHealth(False)).answers
        }
        asked = await ask_ends(
            self._cluster, {number: theirs for number, theirs in led.items() if number not in silent}
        )
        return AllEnds(asked.ends, {**silent, **asked.silent})

    async def _tiers(self, topics: Sequence[TopicState], all_ends: AllEnds) -> Tiers | Unknown:
        if isinstance(self._settings, Unknown):
            return self._settings
        led = by_leader(topics)
        answering = {number: led[number] for number in led if number not in all_ends.silent}
        return await ask_tiers(self._cluster, self._settings.tiered, answering)

    async def _seldom(
        self, now: float, view: ClusterView, topics: Sequence[TopicState], answering: Sequence[int]
    ) -> None:
        names = frozenset(topic.name for topic in topics)
        is_stale = isinstance(self._files, Unknown) or isinstance(self._settings, Unknown)
        if now < self._seldom_at + SELDOM_SECONDS and names <= self._asked_for and not is_stale:
            return
        self._seldom_at, self._asked_for = now, names
        self._settings, self._files = await asyncio.gather(
            attempt("settings of topics", ask_settings(self._cluster, sorted(names))),
            attempt("DescribeLogDirs", self._ask_files(view, answering)),
        )

    async def _ask_files(self, view: ClusterView, answering: Sequence[int]) -> Files:
        refused: list[Refused] = []

        async def ask(broker_id: int) -> list[LogDirectory] | None:
            try:
                return await log_dirs.describe_log_dirs(self._cluster, broker_id)
            except Refused as error:
                refused.append(error)
            except ClientFailure:
                pass
            return None

        answers = await asyncio.gather(*(ask(number) for number in answering))
        told = {number: each for number, each in zip(answering, answers, strict=True) if each is not None}
        if refused and not told:
            raise refused[0]
        silent = [broker.broker_id for broker in view.brokers if broker.broker_id not in told]
        return Files(self._now_ms(), told, silent)

    async def _judged(
        self,
        view: ClusterView,
        topics: Sequence[TopicState],
        brokers: Mapping[int, BrokerHealth],
        answering: Sequence[int],
    ) -> Health:
        """As `headrace cluster status` does; what it asks seldom is here already."""
        cluster, settings = self._cluster, self._settings
        moving = {}
        controller = brokers.get(view.controller)
        if (controller is None or controller.answers) and (await cluster.any_broker()).supports(
            ApiKey.LIST_PARTITION_REASSIGNMENTS
        ):
            moving = await reassignments.list_reassignments(cluster)
        files, factors = await asyncio.gather(
            self._files_behind(topics, answering), ask_factors(cluster, topics, sorted(answering))
        )
        directories = {} if isinstance(self._files, Unknown) else self._files.directories
        return health.judge(
            Observation(
                view,
                list(topics),
                {} if isinstance(settings, Unknown) else settings.min_isr,
                moving,
                files,
                brokers,
                {number: each for number, each in directories.items() if number in answering},
                factors,
            )
        )

    async def _files_behind(
        self, topics: Sequence[TopicState], answering: Sequence[int]
    ) -> Mapping[tuple[TopicPartition, int], ReplicaFiles]:
        """Of replicas that are out of sync: how far each is behind."""
        holders: dict[int, list[TopicPartition]] = {}
        for topic in topics:
            for state in topic.partitions:
                for holder in state.replicas:
                    if holder not in state.isr and holder in answering:
                        holders.setdefault(holder, []).append(TopicPartition(topic.name, state.partition))
        return await log_dirs.replica_files(self._cluster, holders)

    async def _record_times(
        self,
        topics: Sequence[TopicState],
        committed: Mapping[str, Mapping[TopicPartition, Committed]] | Unknown,
        all_ends: AllEnds,
    ) -> Mapping[Place, int]:
        if isinstance(committed, Unknown):
            return {}
        places: dict[Place, None] = {}
        for offsets in committed.values():
            for partition, each in offsets.items():
                place = place_of(partition, each.offset, all_ends.ends.get(partition))
                if place is not None:
                    places[place] = None
        self._times.keep(places)
        leaders = {
            TopicPartition(topic.name, state.partition): state.leader
            for topic in topics
            for state in topic.partitions
        }
        wanted: dict[int, list[Place]] = {}
        for place in places:
            wanted.setdefault(leaders[place[0]], []).append(place)
        await self._times.learn(self._cluster, wanted)
        return dict(self._times.known)
