"""One coordinator: all shards of one internal topic that this broker leads, and how they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.hosted_shard import HostedShard
from headrace.broker.coordinators.shard_host import ShardHost
from headrace.broker.coordinators.shard_terms import Terms
from headrace.broker.coordinators.writer import Producer
from headrace.coordinators.partitioning import partition_for
from headrace.coordinators.shard import Operation, Shard
from headrace.core.completion import Completion
from headrace.core.errors import CoordinatorNotAvailable, NotCoordinator
from headrace.replication.partition import Partition

S = TypeVar("S", bound=Shard)


class Coordinator(Generic[S]):
    def __init__(self, host: ShardHost, metadata: MetadataCache, topic: str, terms: Terms[S]) -> None:
        self._host = host
        self._metadata = metadata
        self.topic = topic
        self._terms = terms
        self._hosted: dict[int, HostedShard[S]] = {}
        self._stopped = False

    @property
    def exists(self) -> bool:
        return self._metadata.image.topic(self.topic) is not None

    # --- what handlers ask -------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """Raises CoordinatorNotAvailable while the internal topic does not exist."""
        topic = self._metadata.image.topic(self.topic)
        if topic is None:
            raise CoordinatorNotAvailable(f"{self.topic} does not exist yet")
        return partition_for(key, len(topic))

    def ask(
        self, key: str, operation: Operation[S], *, producer: Producer | None = None, writes: bool = True
    ) -> Completion[Any]:
        """Run `operation` now on the shard that decides about `key`, and complete with its response.

        With a producer's id and epoch the records become part of its transaction. What says that it does not
        write is served even while replicas are missing.
        Refused with NotCoordinator, CoordinatorLoading, CoordinatorNotAvailable, or what the operation says.
        """
        topic = self._metadata.image.topic(self.topic)
        if topic is None:
            return _refused(NotCoordinator(f"{self.topic} does not exist yet"))
        return self.ask_partition(partition_for(key, len(topic)), operation, producer=producer, writes=writes)

    def ask_partition(
        self, index: int, operation: Operation[S], *, producer: Producer | None = None, writes: bool = True
    ) -> Completion[Any]:
        hosted = self._hosted.get(index)
        if hosted is None:
            if self._stopped:
                return _refused(CoordinatorNotAvailable("the broker is stopping"))
            return _refused(NotCoordinator(f"{self.topic}-{index} is at other brokers"))
        return hosted.ask(operation, producer, writes)

    def count_parked(self) -> int:
        return sum(hosted.parked_count for hosted in self._hosted.values())

    def loaded(self) -> Iterator[tuple[int, S]]:
        """Every shard that decides here now, with its partition. Its state may not be committed yet: what is
        told of it goes through `ask_partition`."""
        for index, hosted in list(self._hosted.items()):
            if hosted.shard is not None:
                yield index, hosted.shard

    @property
    def is_loading(self) -> bool:
        """Whether some shard that belongs here cannot be asked yet."""
        return any(each.epoch >= 0 and each.shard is None for each in self._hosted.values())

    # --- the partitions ----------------------------------------------------------------------------------

    def adopt(self, partition: Partition) -> None:
        """The partition is hosted from now on. Whether it is led here it says itself."""
        if not self._stopped:
            self.release(partition)
            index = partition.topic_partition.partition
            self._hosted[index] = HostedShard(self._host, partition, self._terms)

    def release(self, partition: Partition) -> None:
        hosted = self._hosted.pop(partition.topic_partition.partition, None)
        if hosted is not None:
            hosted.stop()

    def hosted(self, partition: Partition) -> HostedShard[S] | None:
        found = self._hosted.get(partition.topic_partition.partition)
        return found if found is not None and found.partition is partition else None

    def stop(self) -> None:
        """Write what is decided, refuse what is held, and take nothing more."""
        self._stopped = True
        while self._hosted:
            self._hosted.popitem()[1].stop()


def _refused(error: Exception) -> Completion[Any]:
    completion: Completion[Any] = Completion()
    completion.fail(error)
    return completion
