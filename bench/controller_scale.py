"""`python -m bench.controller_scale`: the controller's machine alone, with a million partitions.

A thousand brokers on 62 hosts hold them, three copies each, never two on one host. A host is lost: its
sixteen brokers are fenced in one decision, which is encoded into batches ready to be committed. Then
everything is replayed, as every broker of the cluster has to.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple, TypeVar
from uuid import UUID

from headrace.controller.brokers import BrokerDescription
from headrace.controller.codec import Payload, encode_metadata_batch, pack
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.features import SUPPORTED
from headrace.controller.image import Endpoint
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import NewTopic, Result
from headrace.controller.topics import TopicDefaults
from headrace.core.ids import BrokerEpoch, BrokerId

T = TypeVar("T")


class Shape(NamedTuple):
    topics: int = 2000
    partitions: int = 500
    brokers: int = 1000
    hosts: int = 62
    replicas: int = 3
    min_insync_replicas: int = 2


class Figures(NamedTuple):
    partitions: int
    image_bytes_per_partition: float
    changes: int
    batches: int
    batch_bytes: int
    decide_s: float
    encode_s: float
    replay_s: float
    unfence_s: float

    @property
    def decided_and_encoded_s(self) -> float:
        return self.decide_s + self.encode_s


class Seeded:
    def __init__(self) -> None:
        self._source = random.Random(7)

    def randrange(self, stop: int) -> int:
        return self._source.randrange(stop)

    def randbytes(self, length: int) -> bytes:
        return self._source.randbytes(length)


def host_of(shape: Shape, broker_id: int) -> str:
    return f"host{broker_id % shape.hosts}"


def build(shape: Shape) -> ControllerMachine:
    machine = ControllerMachine(
        schema=DeclaredSchema(),
        random=Seeded(),
        defaults=TopicDefaults(min_insync_replicas=shape.min_insync_replicas),
    )
    apply(machine, machine.finalise_features())
    for broker_id in range(shape.brokers):
        described = BrokerDescription(
            BrokerId(broker_id),
            UUID(int=1 + broker_id),
            (Endpoint("PLAINTEXT", host_of(shape, broker_id), 9092 + broker_id),),
            host_of(shape, broker_id),
            (UUID(int=1_000_000 + broker_id),),
            SUPPORTED,
        )
        apply(machine, machine.register_broker(described, BrokerEpoch(broker_id + 1), fenced=False))
    for number in range(shape.topics):
        new = NewTopic(f"topic-{number:06d}", shape.partitions, shape.replicas)
        apply(machine, machine.create_topics([new]))
    return machine


def apply(machine: ControllerMachine, result: Result[T]) -> T:
    machine.replay(result.records, MetadataDelta())
    return result.response


def image_bytes(shape: Shape) -> float:
    """Per partition, on a twentieth of the topics: counting every allocation of the whole takes minutes."""
    sample = shape._replace(topics=max(1, shape.topics // 20))
    none = build(shape._replace(topics=0))
    gc.collect()
    del none
    tracemalloc.start()
    try:
        empty = build(shape._replace(topics=0))
        before = tracemalloc.get_traced_memory()[0]
        del empty
        machine = build(sample)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return used / machine.image.partition_count


def timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    answer = work()
    return answer, time.process_time() - began


def measure(shape: Shape) -> Figures:
    per_partition = image_bytes(shape)
    machine = build(shape)
    gc.collect()
    lost = [each for each in range(shape.brokers) if each % shape.hosts == shape.hosts - 1]
    result, decide_s = timed(lambda: machine.fence_brokers(lost))

    def encode() -> tuple[list[Payload], int]:
        payloads = list(pack(result.groups))
        batches = [
            encode_metadata_batch(each.values, base_offset=0, controller_epoch=1, timestamp_ms=0)
            for each in payloads
        ]
        return payloads, sum(map(len, batches))

    (payloads, batch_bytes), encode_s = timed(encode)

    def replay() -> None:
        delta = MetadataDelta()
        for each in payloads:
            machine.replay(each.records, delta)

    _, replay_s = timed(replay)
    back = BrokerId(lost[0])
    _, unfence_s = timed(lambda: machine.unfence_broker(back, machine.image.brokers[back].epoch))
    return Figures(
        machine.image.partition_count,
        per_partition,
        result.response,
        len(payloads),
        batch_bytes,
        decide_s,
        encode_s,
        replay_s,
        unfence_s,
    )


def table(shape: Shape, found: Figures) -> str:
    rows = [
        ("partitions", f"{found.partitions:,} with {shape.replicas} replicas in {shape.topics:,} topics"),
        ("brokers", f"{shape.brokers:,} on {shape.hosts} hosts"),
        ("image, bytes per partition", f"{found.image_bytes_per_partition:.0f}"),
        ("partitions changed by the loss of a host", f"{found.changes:,}"),
        ("batches, bytes in all", f"{found.batches} of {found.batch_bytes:,}"),
        ("decide, CPU seconds", f"{found.decide_s:.2f}"),
        ("encode, CPU seconds", f"{found.encode_s:.2f}"),
        ("decide and encode, CPU seconds", f"{found.decided_and_encoded_s:.2f}"),
        ("replay at each broker, CPU seconds", f"{found.replay_s:.2f}"),
        ("one broker back: decide, CPU seconds", f"{found.unfence_s:.3f}"),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=Shape().topics)
    parser.add_argument("--partitions", type=int, default=Shape().partitions, help="of each topic")
    parser.add_argument("--brokers", type=int, default=Shape().brokers)
    given = parser.parse_args()
    shape = Shape(given.topics, given.partitions, given.brokers)
    print(table(shape, measure(shape)))


if __name__ == "__main__":
    main()
