"""A replica with an empty directory joins a topic whose history is mostly in the store, and leads it alone.

What it answers then it knows from the store, but for the few records that it copied from the leader
before it.
"""

from __future__ import annotations

import re
from typing import Final

from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.cluster_process import ClusterProcess, eventually
from tests.oracle.conversation import Conversation, versions
from tests.oracle.plain import Flat, Value
from tests.oracle.produce_script import BASE_MS, batch, produce_request
from tests.oracle.tier.history_script import (
    BY_NAME,
    LOCAL,
    TIERED,
    TIERED_TOPIC,
    ask_ends,
    fetch,
    listing,
    offset_of,
)
from tests.oracle.transactional_records_script import Producer

TOPIC: Final = "moved"
SETTINGS: Final = {
    name.replace("_", "."): value for name, value in {**TIERED_TOPIC, "internal_segment_bytes": "320"}.items()
}
SEQUENCES: Final = 6
"""Of the idempotent producer, in each leadership."""
TRANSACTIONS: Final = 4
"""In each leadership: committed and aborted in turn, of three records and a marker each."""
IN_EACH: Final = SEQUENCES + 4 * TRANSACTIONS

_CLOCK_MS: Final = BASE_MS + 3600 * 1000
"""No record is so young, but for markers."""
_TIME: Final = re.compile(r"timestamp=(\d+)")


class Leadership:
    """One broker leads, alone. Two systems give out other epochs, but in the same order."""

    def __init__(self, cluster: ClusterProcess, number: int, epochs: list[int]) -> None:
        self.cluster = cluster
        self.number = number
        self.talk = Conversation(cluster.brokers[number])
        self.epochs = [*epochs, cluster.partition(TOPIC).leader_epoch]

    def flat(self) -> dict[str, Flat]:
        """Epochs by their place in the order; the times of all markers as one: brokers have clocks."""
        return {
            step: {path: self._comparable(path, value) for path, value in answer.items()}
            for step, answer in self.talk.answers.items()
        }

    def _comparable(self, path: str, value: Value) -> Value:
        if path.endswith("leader_epoch") and value in self.epochs:
            return f"<leadership {self.epochs.index(int(value))}>"
        if isinstance(value, int) and value > _CLOCK_MS:
            return "<a marker's time>"
        if isinstance(value, str):
            return _TIME.sub(
                lambda found: found[0] if int(found[1]) < _CLOCK_MS else "<a marker's time>", value
            )
        return value


def run(cluster: ClusterProcess) -> dict[str, Flat]:
    """Broker 2 joins what broker 1 has written, and then the other way round: 1 has forgotten everything."""
    cluster.create_topic(TOPIC, [[1]], SETTINGS)
    answers: dict[str, Flat] = {}
    epochs: list[int] = []
    producer, quiet = Idempotent(cluster), Idempotent(cluster)
    producers = {"writer": producer.id, "quiet": quiet.id}
    for leaderships, number in enumerate((1, 2, 1)):
        if leaderships:
            _move(cluster, number)
        leading = Leadership(cluster, number, epochs)
        epochs = leading.epochs
        with leading.talk as talk:
            for name, identity in producers.items():
                talk.symbols.define_producer(identity, name)
            if leaderships:
                _settled(talk, leaderships)
                _ask(leading, f"after move {leaderships}")
                producer.ask(talk, f"after move {leaderships}")
                answers |= leading.flat()
            else:
                quiet.write(talk)
            if leaderships < 2:
                producers["trader"] = _write(cluster, talk, producer, leaderships)
            else:
                # One that has written nothing since the first leadership. Last, because Kafka appends it.
                again = produce_request(TOPIC, quiet.batch(quiet.sequence - 1))
                talk.ask("a producer that was quiet: its last one again", again, 11)
                answers |= leading.flat()
    return answers


# --- what is there ---------------------------------------------------------------------------------------


class Idempotent:
    """A producer without transactions, whose sequence numbers a new leader has to know."""

    def __init__(self, cluster: ClusterProcess) -> None:
        self.sequence = 0
        with Conversation(cluster.brokers[1]) as talk:

            def initialised() -> bool:
                answer = talk.quietly(InitProducerIdRequest(transactional_id=None), 4)
                self.id, self.epoch = answer.producer_id, answer.producer_epoch
                return not answer.error_code

            talk.wait_until(initialised)

    def batch(self, sequence: int) -> bytearray:
        return batch(b"value", producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence)

    def write(self, talk: Conversation) -> None:
        for _ in range(SEQUENCES):
            answer = talk.quietly(produce_request(TOPIC, self.batch(self.sequence)), 11)
            assert not answer.responses[0].partition_responses[0].error_code, answer
            self.sequence += 1

    def ask(self, talk: Conversation, step: str) -> None:
        for name, sequence in (
            ("the last one again", self.sequence - 1),
            ("one too many left out", self.sequence + 1),
            ("the next one", self.sequence),
        ):
            talk.ask(f"{step}: {name}", produce_request(TOPIC, self.batch(sequence)), 11)
        self.sequence += 1


def _write(cluster: ClusterProcess, talk: Conversation, producer: Idempotent, leaderships: int) -> int:
    """The id of the producer with transactions."""
    with _coordinator(cluster, talk) as coordinator:
        trader = Producer(coordinator, "trader")
        sequence = 0
        for number in range(TRANSACTIONS):
            for _ in range(3):
                answer = talk.quietly(trader.request(sequence, topic=TOPIC), 12)
                assert not answer.responses[0].partition_responses[0].error_code, answer
                sequence += 1
            before = trader.epoch
            trader.end(5, commit=number % 2 == 0)
            sequence = sequence if trader.epoch == before else 0
            coordinator.wait_completed("trader")
    producer.write(talk)
    _settled(talk, leaderships + 1)
    return int(trader.id)


def _active(leaderships: int) -> int:
    """Where the active segment begins."""
    return {1: 24, 2: 48}[leaderships]


def _coordinator(cluster: ClusterProcess, talk: Conversation) -> Conversation:
    found = FindCoordinatorRequest(key_type=1, coordinator_keys=["trader"])
    talk.wait_until(lambda: not talk.quietly(found, 4).coordinators[0].error_code)
    number = talk.quietly(found, 4).coordinators[0].node_id
    return Conversation(cluster.brokers[number])


def _move(cluster: ClusterProcess, number: int) -> None:
    row = ReassignablePartition(partition_index=0, replicas=[number])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=TOPIC, partitions=[row])], timeout_ms=20_000
    )
    with Conversation(cluster.brokers[cluster.view().controller]) as talk:
        answer = talk.quietly(request, 0)
    assert not answer.error_code, answer
    assert not answer.responses[0].partitions[0].error_code, answer
    eventually(
        lambda: (
            cluster.partition(TOPIC).replicas == cluster.partition(TOPIC).isr == (number,)
            and cluster.partition(TOPIC).leader == number
            and cluster.ask(number, TOPIC).partitions[TOPIC, 0] == cluster.partition(TOPIC)
        ),
        120,
        f"broker {number} alone has {TOPIC}",
    )


def _settled(talk: Conversation, leaderships: int) -> None:
    """What can be in the store is there, and this leader knows it."""
    talk.wait_until(lambda: offset_of(talk, TOPIC, TIERED) == _active(leaderships) - 1, 120)
    talk.wait_until(lambda: offset_of(talk, TOPIC, LOCAL) == _active(leaderships), 120)


# --- what is asked ---------------------------------------------------------------------------------------


def _ask(leading: Leadership, step: str) -> None:
    talk = leading.talk
    ask_ends(talk, TOPIC, step=step)
    end = offset_of(talk, TOPIC, -1)
    for shift in (-1, 0, 1):
        for version in versions(ListOffsetsRequest):
            talk.ask(f"{step}: the time of all and {shift} ms", listing(TOPIC, BASE_MS + shift), version)
    for rank, epoch in enumerate([*leading.epochs, leading.epochs[-1] + 10]):
        row = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=-1)
        asked = OffsetForLeaderEpochRequest(
            replica_id=-2, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[row])]
        )
        talk.ask(f"{step}: end of leadership {rank}", asked, 4)
        offset = 0 if rank == 0 else end - 1
        talk.ask(
            f"{step}: read after leadership {rank}", fetch(TOPIC, offset, last_fetched_epoch=epoch), BY_NAME
        )
    for offset in range(end + 1):
        for level in (0, 1):
            asked_for = fetch(
                TOPIC, offset, isolation_level=level, max_wait_ms=10_000 if offset < end else 10
            )
            talk.ask(f"{step}: from {offset} at level {level}", asked_for, BY_NAME)
    described = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    talk.ask(f"{step}: producers", described, 0)
