"""A controller machine with a few brokers, for the tests of this package."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from headrace.controller.brokers import BrokerDescription
from headrace.controller.codec import decode_record, encode_record
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.features import SUPPORTED
from headrace.controller.image import Endpoint, MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import NewTopic, R, Result
from headrace.controller.safeguards import ALL_ON, ControllerSafeguards
from headrace.controller.snapshot import records_of
from headrace.controller.topics import TopicDefaults
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.message import Message


class FixedClock:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


class SeededRandom:
    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)

    def randrange(self, stop: int) -> int:
        return self._source.randrange(stop)

    def randbytes(self, length: int) -> bytes:
        return self._source.randbytes(length)


def description(
    broker_id: int, rack: str | None = None, directories: int = 1, **said: Any
) -> BrokerDescription:
    described = _description(broker_id, rack, directories)
    return described._replace(**said)


def _description(broker_id: int, rack: str | None, directories: int) -> BrokerDescription:
    return BrokerDescription(
        BrokerId(broker_id),
        UUID(int=1_000_000 + broker_id),
        (Endpoint("PLAINTEXT", f"host{broker_id}", 9092),),
        rack,
        tuple(UUID(int=(broker_id + 1) * 100 + n) for n in range(directories)),
        SUPPORTED,
    )


class Cluster:
    """Applies what the machine decides, as the shell would, through the bytes on disk."""

    def __init__(
        self,
        brokers: Iterable[int] = (0,),
        *,
        racks: Mapping[int, str] | None = None,
        defaults: TopicDefaults | None = None,
        seed: int = 0,
        safeguards: ControllerSafeguards = ALL_ON,
        schema: DeclaredSchema | None = None,
    ) -> None:
        self.machine = ControllerMachine(
            schema=DeclaredSchema() if schema is None else schema,
            random=SeededRandom(seed),
            defaults=defaults if defaults is not None else TopicDefaults(),
            safeguards=safeguards,
        )
        self.log: list[Message] = []
        self.do(self.machine.finalise_features())
        for broker_id in brokers:
            rack = (racks or {}).get(broker_id)
            self.do(
                self.machine.register_broker(
                    description(broker_id, rack), BrokerEpoch(10 + broker_id), fenced=False
                )
            )

    @property
    def image(self) -> MetadataImage:
        return self.machine.image

    def do(self, result: Result[R]) -> R:
        self.apply(result.records)
        return result.response

    def apply(self, records: Iterable[Message]) -> MetadataDelta:
        delta = MetadataDelta()
        committed = [decode_record(encode_record(record)) for record in records]
        self.log += committed
        self.machine.replay(committed, delta)
        return delta

    def create(
        self,
        name: str,
        partitions: int = -1,
        factor: int = -1,
        *,
        assignments: Sequence[tuple[int, Sequence[int]]] = (),
        configs: Sequence[tuple[str, str | None]] = (),
    ) -> UUID:
        new = NewTopic(name, partitions, factor, assignments, configs)
        (created,) = self.do(self.machine.create_topics([new]))
        assert created.error is None, created.error
        return created.topic_id

    def fence(self, broker_id: int, fenced: bool = True) -> None:
        if fenced:
            self.do(self.machine.fence_brokers([broker_id]))
        else:
            epoch = self.image.brokers[broker_id].epoch
            self.do(self.machine.unfence_broker(BrokerId(broker_id), epoch))


def said(image: MetadataImage) -> list[Message]:
    """The whole image as comparable values."""
    return list(records_of(image))


Row = tuple[int, tuple[int, ...], tuple[int, ...]]


def row(cluster: Cluster, partition: int = 0, topic: str = "t") -> Row:
    """Leader, ISR and eligible leaders: what most tests are about."""
    state = cluster.image.topics_by_name[topic].state(partition)
    return state.leader, state.isr, state.exceptional.elr
