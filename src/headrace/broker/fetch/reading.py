"""Reading what a fetch asks for, within its byte limits. Bytes stay in their files: only ranges are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_partition import METADATA_PARTITION, METADATA_TOPIC_ID
from headrace.broker.fetch.history_reading import is_in_history, log_start_of, read_history
from headrace.broker.fetch.preferred_read_replica import preferred_read_replica
from headrace.broker.fetch.read_result import (
    NO_REPLICA,
    ColdPart,
    PartitionAnswer,
    ReadResult,
)
from headrace.broker.fetch.remote_read import RemoteRead
from headrace.broker.fetch.watched_partition import WatchedPartition
from headrace.broker.requests.errors import code_of
from headrace.core.errors import (
    FencedLeaderEpoch,
    HeadraceError,
    NotLeader,
    OffsetMovedToTieredStorage,
    OffsetOutOfRange,
    TopicNotAuthorized,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.log.read_state import ColdRead
from headrace.protocol.offset_timestamps import DEBUGGING_CONSUMER
from headrace.replication.following import IN_DOUBT
from headrace.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from headrace.broker.replicas.throttle import DirectionThrottles, Throttle
    from headrace.broker.requests.context import RequestContext
    from headrace.replication.partition import Partition
    from headrace.security.rights import Rights

MOST_GIVING: Final = 200
"""Partitions of one answer that give records. Each may hold a file open until it is sent: a fetch of
thousands would take all descriptors of the process. The others have their turn
next, as if the bytes were used up."""


class Reader:
    """Who reads, and how much: the same for all partitions of a request."""

    __slots__ = (
        "any_replica",
        "broker_epoch",
        "incremental",
        "is_denied",
        "max_bytes",
        "now",
        "probes",
        "rack",
        "read_committed",
        "replica_id",
        "rights",
        "throttles",
        "waits_for_store",
    )

    def __init__(
        self,
        replica_id: int,
        broker_epoch: int,
        max_bytes: int,
        read_committed: bool,
        any_replica: bool,
        incremental: bool,
        rack: str,
        now: float,
        throttles: DirectionThrottles | None,
        rights: Rights | None = None,
    ) -> None:
        self.rights = rights
        """Of a consumer; None where everybody may read everything."""
        self.is_denied = False
        """It says that it is a replica, and may not be one."""
        self.replica_id = replica_id
        """-1 for consumers, which read up to the high watermark; -2 for those who compare replicas: they read
        up to the end of each."""
        self.broker_epoch = broker_epoch
        self.max_bytes = max_bytes
        self.read_committed = read_committed
        self.any_replica = any_replica
        """A follower may serve it as well (KIP-392)."""
        self.incremental = incremental
        self.rack = rack
        """Of the consumer, if it is to be sent to a nearer replica; else empty."""
        self.now = now
        self.throttles = throttles if throttles is not None and throttles.is_limited else None
        """While a reassignment is throttled: holds back replicas that are not in sync."""
        self.probes = True
        """Looks whether ranges are in memory. Not for ever: they may go again before they are sent."""
        self.waits_for_store = True
        """False once remote.fetch.max.wait.ms is over: what is not fetched by then is left out."""

    @property
    def is_checked(self) -> bool:
        """Whether each partition is asked for rights."""
        return self.rights is not None or self.is_denied

    def throttle_of(self, partition: Partition) -> Throttle | None:
        """What this replica's records of this partition count against; None if nothing limits them."""
        throttles = self.throttles
        if throttles is None or self.replica_id in partition.isr:
            return None
        return throttles.throttle_of(partition.log.config, partition.topic_partition.partition)

    def must_hear(self, want: WatchedPartition) -> bool:
        """A replica that says how far it is, which counts whether it is given records or not."""
        return want.is_fresh and self.replica_id >= 0


def read_some(
    context: RequestContext, wanted: Iterable[WatchedPartition], reader: Reader, result: ReadResult
) -> None:
    """Partitions in order, until the bytes are used up, or enough of them give some. The first batch is
    returned whatever its size.

    `result` is what was read before, and grows.

    In an incremental answer a partition that has nothing to say loses its place among those with news, and
    one that the bytes do not reach keeps it.
    """
    remaining = max(0, reader.max_bytes - result.total_bytes) if result.total_bytes else reader.max_bytes
    for want in wanted:
        min_one = result.total_bytes == 0
        if result.giving >= MOST_GIVING:
            remaining, min_one = 0, False
            result.must_answer = True  # waiting would only keep the others from the peer
        if remaining <= 0 and not min_one and reader.incremental and not reader.must_hear(want):
            continue
        answer = PartitionAnswer(want)
        partition = want.partition
        try:
            if partition is None or reader.is_checked:
                partition = _find_allowed(context, want, reader)
            _read_one(context, partition, want, answer, reader, remaining, min_one)
        except (ColdRead, RemoteRead) as cold:
            if partition is not None:
                if result.cold is None:
                    result.cold = []
                result.giving += 1
                result.cold.append(ColdPart(partition, cold, _limit(want, remaining)))
                _describe(partition, answer)
            result.answers.append(answer)
            continue
        except HeadraceError as error:
            _refuse(context, partition, answer, reader, error)
            result.answers.append(answer)
            result.must_answer = True
            continue
        partition.metrics.fetch_requests += 1
        if answer.records is not None:
            length = answer.records.length
            result.total_bytes += length
            result.giving += 1
            if want.fetch_offset < partition.log.active_segment.base_offset:
                # A read ends with its segment, and more follows: waiting would only keep it from the peer.
                result.must_answer = True
            remaining = max(0, remaining - length)
        elif answer.demands_attention:
            result.must_answer = True
        elif reader.incremental and answer.is_exhausted and answer.is_known:
            if want.watcher is not None:
                want.watcher.dirty.pop(want, None)
            continue
        result.answers.append(answer)


def _find_allowed(context: RequestContext, want: WatchedPartition, reader: Reader) -> Partition:
    if reader.is_checked:
        _check_rights(context, want, reader)
    partition = want.partition
    if partition is None:
        partition = find(context, want)
        want.bind(partition)
    return partition


def _check_rights(context: RequestContext, want: WatchedPartition, reader: Reader) -> None:
    """Before the partition is looked for: who may not read a topic does not hear whether it exists."""
    topic, topic_id, _ = want.key
    if not topic and topic_id is not None:
        image = context.metadata.image.topic_by_id(topic_id)
        if image is None:
            if topic_id == METADATA_TOPIC_ID and reader.is_denied:
                raise TopicNotAuthorized("the metadata log is for brokers")
            return  # the id is unknown, whoever asks
        topic = image.name
    if reader.is_denied:
        raise TopicNotAuthorized("only brokers fetch as replicas: CLUSTER_ACTION on the cluster is missing")
    rights = reader.rights
    if rights is not None and not rights.allows(Operation.READ, ResourceType.TOPIC, topic):
        raise TopicNotAuthorized(f"READ is not allowed on the topic {topic}")


def _limit(want: WatchedPartition, remaining: int) -> int:
    return min(remaining, want.max_bytes)


def find(context: RequestContext, want: WatchedPartition) -> Partition:
    topic, topic_id, index = want.key
    if not topic and topic_id is not None:
        image = context.metadata.image.topic_by_id(topic_id)
        if image is None:
            if topic_id == METADATA_TOPIC_ID and index == METADATA_PARTITION.partition:
                return context.metadata.partition
            raise UnknownTopicId(f"no topic has the id {topic_id}")
        topic = image.name
    return context.partitions.get(topic, index)


def _refuse(
    context: RequestContext,
    partition: Partition | None,
    answer: PartitionAnswer,
    reader: Reader,
    error: HeadraceError,
) -> None:
    key = answer.want.key
    answer.error_code = code_of(error)
    metrics = context.runtime.metrics.known_topic(key.topic)
    metrics.fetch_requests += 1
    metrics.failed_fetch_requests += 1
    image = context.metadata.image
    if isinstance(error, NotLeader | FencedLeaderEpoch):
        topic = image.topic(key.topic) if key.topic_id is None else image.topic_by_id(key.topic_id)
        if topic is not None and key.partition in topic:
            answer.current_leader = (topic.leader(key.partition), topic.leader_epoch(key.partition))
    elif (
        isinstance(error, OffsetOutOfRange | OffsetMovedToTieredStorage)
        and partition is not None
        and reader.replica_id >= 0
    ):
        # A follower whose log ends before this one begins goes on from here. Consumers are told -1.
        answer.log_start_offset = log_start_of(partition)


def _read_one(
    context: RequestContext,
    partition: Partition,
    want: WatchedPartition,
    answer: PartitionAnswer,
    reader: Reader,
    remaining: int,
    min_one: bool,
) -> None:
    answer.metrics = partition.metrics
    if partition is context.metadata.partition:
        _read_metadata(partition, want, answer, reader, remaining, min_one)
    elif reader.replica_id >= 0:
        serve_replica(partition, want, answer, reader, remaining, min_one=min_one)
    else:
        _read_as_consumer(context, partition, want, answer, reader, remaining, min_one)
    _describe(partition, answer)


def _describe(partition: Partition, answer: PartitionAnswer) -> None:
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_offset
    answer.log_start_offset = log_start_of(partition)


def _read_as_consumer(
    context: RequestContext,
    partition: Partition,
    want: WatchedPartition,
    answer: PartitionAnswer,
    reader: Reader,
    remaining: int,
    min_one: bool,
) -> None:
    if reader.any_replica:
        partition.check_read(want.current_leader_epoch)
        if reader.rack and partition.is_leader:
            answer.preferred_replica = preferred_read_replica(
                context.metadata, partition, reader.rack, want.fetch_offset
            )
            if answer.preferred_replica != NO_REPLICA:
                return
    else:
        partition.check_epoch(want.current_leader_epoch)
    want.is_fresh = False
    if want.last_fetched_epoch >= 0:
        answer.diverging = partition.diverging(want.last_fetched_epoch, want.fetch_offset)
        if answer.diverging is not None:
            return
    if is_in_history(partition, want.fetch_offset):
        read_history(context, partition, want, answer, reader, remaining, min_one)
        return
    compares = reader.replica_id == DEBUGGING_CONSUMER
    limit = partition.log.end_offset if compares else partition.readable_limit(reader.read_committed)
    if remaining <= 0 and not min_one:
        _check_offset(partition, want)
        answer.is_exhausted = want.fetch_offset >= limit
        return
    records = partition.log.read_resident(
        want.fetch_offset, _limit(want, remaining), limit=limit, min_one=min_one, probe=reader.probes
    )
    if records.length:
        if reader.read_committed:
            answer.aborted = partition.aborted_in(want.fetch_offset, records, wait=False)
        answer.records = records
    else:
        answer.is_exhausted = min_one or want.fetch_offset >= limit


def _check_offset(partition: Partition, want: WatchedPartition) -> None:
    """OffsetOutOfRange, as if it were read from there. Nothing is: not even what is cold."""
    partition.log.read_resident(want.fetch_offset, 0, limit=want.fetch_offset, min_one=False)


def serve_replica(
    partition: Partition,
    want: WatchedPartition,
    answer: PartitionAnswer,
    reader: Reader,
    remaining: int,
    min_one: bool,
) -> None:
    partition.check_replica(want.current_leader_epoch)
    if is_in_history(partition, want.fetch_offset):
        raise OffsetMovedToTieredStorage(f"{partition.topic_partition} is on the disk from a later offset on")
    if want.last_fetched_epoch >= 0:
        answer.diverging = partition.diverging(want.last_fetched_epoch, want.fetch_offset)
        if answer.diverging is not None:
            return
    if want.is_fresh:
        want.is_fresh = False
        partition.on_replica_fetch(
            reader.replica_id, reader.broker_epoch, want.fetch_offset, reader.now, want.log_start_offset
        )
    if want.fetch_offset == partition.log.end_offset:
        answer.is_exhausted = True
        return
    if remaining <= 0 and not min_one:
        return
    throttle = reader.throttle_of(partition)
    if throttle is not None and throttle.seconds_over(reader.now) > 0:
        return  # it keeps its turn, and asks again
    log = partition.log
    # To compare, a follower needs one batch (rule 13).
    in_doubt = want.log_start_offset == IN_DOUBT
    most = 1 if in_doubt else _limit(want, remaining)
    records = log.read_resident(
        want.fetch_offset, most, limit=log.end_offset, min_one=min_one or in_doubt, probe=reader.probes
    )
    if records.length:
        answer.records = records
        partition.metrics.replication_bytes_out += records.length
        if throttle is not None:
            throttle.record(records.length, reader.now)


def _read_metadata(
    partition: Partition,
    want: WatchedPartition,
    answer: PartitionAnswer,
    reader: Reader,
    remaining: int,
    min_one: bool,
) -> None:
    """Any broker serves the metadata to any other: all of it is committed, and nothing of it is ever cut.

    A copy that is behind says nothing to one that is ahead. Only an epoch that has ended here can part ways.
    """
    if reader.replica_id < 0:
        raise UnknownTopicOrPartition("the metadata log is for brokers")
    log = partition.log
    if 0 <= want.last_fetched_epoch < log.latest_epoch:
        answer.diverging = partition.diverging(want.last_fetched_epoch, want.fetch_offset)
    if want.fetch_offset >= log.end_offset:
        answer.is_exhausted = True
    elif answer.diverging is None and (remaining > 0 or min_one):
        records = log.read_resident(
            want.fetch_offset,
            _limit(want, remaining),
            limit=log.end_offset,
            min_one=min_one,
            probe=reader.probes,
        )
        if records.length:
            answer.records = records
