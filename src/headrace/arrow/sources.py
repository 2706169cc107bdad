"""Where a topic is read: its brokers, their files, or a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from headrace.arrow.history import History
from headrace.arrow.options import Wish
from headrace.arrow.partition_reader import Block, PartitionReader, Reading
from headrace.client.errors import ClientFailure
from headrace.client.security import ClientSecurity

Blocks = Callable[[Wish, Reading], Iterator[Block]]
_DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
_DEADLINE_SECONDS: Final = 60.0


def of_files(paths: Sequence[str | Path], asked: Wish, reading: Reading) -> Iterator[Block]:
    from headrace.arrow.files import find_histories

    try:
        histories = find_histories(paths, asked.topic, asked.partitions)
        yield from _in_order(histories, asked, reading)
    except OSError as error:
        reason = f"{error.filename} cannot be read: {error.strerror}"
        raise ClientFailure(reason, "read as the user of the broker, or read from the brokers") from None
    if not histories:
        raise ClientFailure(
            f"there is no partition of topic {asked.topic} in {', '.join(map(str, paths))}",
            "name the broker's log directory, or a partition's folder as DIR/orders-0",
        )


def _in_order(histories: Iterable[History], asked: Wish, reading: Reading) -> Iterator[Block]:
    for history in histories:
        bounds = asked.bounds(history.partition.partition)
        yield from PartitionReader(history, reading._replace(bounds=bounds)).blocks()


class Brokers:
    def __init__(self, bootstrap: str | None, properties: Mapping[str, str] | None) -> None:
        given = dict(properties or {})
        self.bootstrap = bootstrap or given.get("bootstrap.servers") or _DEFAULT_BOOTSTRAP
        self.security = ClientSecurity.parse(given)

    def blocks(self, asked: Wish, reading: Reading) -> Iterator[Block]:
        from headrace.arrow.brokers import BrokerReader

        return BrokerReader(self.bootstrap, self.security, asked, reading).blocks()


class Tier:
    def __init__(
        self,
        url: str,
        brokers: Brokers,
        cluster_id: str | None,
        topic_id: str | UUID | None,
        endpoint: str | None,
        region: str | None,
    ) -> None:
        self._url = url
        self._brokers = brokers
        self._cluster_id = cluster_id
        self._topic_id = topic_id
        self._store = {"endpoint": endpoint, "region": region}

    def blocks(self, asked: Wish, reading: Reading) -> Iterator[Block]:
        from headrace.arrow.tiered import Blocks as Ranges
        from headrace.arrow.tiered import find_tiered
        from headrace.objects.opening import open_bucket

        cluster_id, topic_id = self._ids(asked.topic)
        bucket = open_bucket(self._url, **self._store)
        try:
            ranges = Ranges(bucket, _DEADLINE_SECONDS)
            histories = find_tiered(ranges, cluster_id, asked.topic, topic_id, asked.partitions)
            yield from _in_order(histories, asked, reading)
        finally:
            bucket.close()

    def _ids(self, topic: str) -> tuple[str, UUID]:
        if self._cluster_id is not None and self._topic_id is not None:
            return self._cluster_id, _parse_id(self._topic_id)
        from headrace.arrow.identity import ask_ids

        cluster_id, topic_id = ask_ids(self._brokers.bootstrap, self._brokers.security, topic)
        return self._cluster_id or cluster_id, topic_id if self._topic_id is None else _parse_id(
            self._topic_id
        )


def _parse_id(given: str | UUID) -> UUID:
    from headrace.tier.names import decode_id

    try:
        return given if isinstance(given, UUID) else decode_id(given)
    except ValueError:
        raise ClientFailure(
            f"{given!r} is not the id of a topic", "`headrace topic describe` shows it: 22 characters"
        ) from None
