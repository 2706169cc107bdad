"""Transactions at the partition that they write to: who may append, what readers of committed records see.

A producer that names its partitions first (Produce 11 and before), and one that does not (12 and later).
"""

from __future__ import annotations

from typing import Any

from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.oracle.conversation import Conversation
from tests.oracle.produce_script import batch
from tests.requests import fetch_request

TOPIC = "transactional"


class Producer:
    """One transactional id, as a client would use it."""

    def __init__(self, talk: Conversation, name: str) -> None:
        self._talk = talk
        self._name = name
        self.epoch = 0
        found = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        talk.wait_until(lambda: not talk.quietly(found, 4).coordinators[0].error_code, 60)
        asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answer: Any = None

        def initialised() -> bool:
            nonlocal answer
            answer = talk.quietly(asked, 4)
            return not answer.error_code

        talk.wait_until(initialised, 30)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        talk.symbols.define_producer(self.id, f"producer of {name}")

    def request(
        self,
        sequence: int,
        *,
        partition: int = 0,
        epoch: int | None = None,
        transactional: bool = True,
        topic: str = TOPIC,
    ) -> ProduceRequest:
        data = batch(
            b"value",
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        rows = [PartitionProduceData(index=partition, records=memoryview(data))]
        return ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            transactional_id=self._name,
            topic_data=[TopicProduceData(name=topic, partition_data=rows)],
        )

    def add(self, *partitions: int) -> None:
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))],
        )

        def added() -> bool:
            (topic,) = self._talk.quietly(asked, 3).results_by_topic_v3_and_below
            return all(not each.partition_error_code for each in topic.results_by_partition)

        self._talk.wait_until(added)

    def end(self, version: int, *, commit: bool) -> None:
        asked = EndTxnRequest(
            transactional_id=self._name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )
        answer = self._talk.quietly(asked, version)
        assert not answer.error_code, answer.error_code
        if version >= 5:
            self.epoch = answer.producer_epoch

    def settle(self, partition: int = 0) -> None:
        """Wait until the marker is in the partition, and the coordinator has heard that it is."""
        talk = self._talk
        talk.wait_until(lambda: _latest(talk, partition, True) == _latest(talk, partition, False))
        talk.wait_completed(self._name)


def run(talk: Conversation) -> None:
    talk.topic(TOPIC, 2)
    _named_first(talk)
    _added_by_produce(talk)
    _nobodys(talk)


def _latest(talk: Conversation, partition: int, committed: bool) -> int:
    rows = [ListOffsetsPartition(partition_index=partition, timestamp=-1)]
    asked = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(name=TOPIC, partitions=rows)]
    )
    offset: int = talk.quietly(asked, 9).topics[0].partitions[0].offset
    return offset


def _look(talk: Conversation, step: str, partition: int = 0, offset: int = 0) -> None:
    """What both kinds of readers are told. Records are not compared: markers hold the time of day."""
    for committed in (False, True):
        asked = fetch_request(TOPIC, partition, offset)
        asked.isolation_level = int(committed)
        found = talk.quietly(asked, 12).responses[0].partitions[0]
        aborted = found.aborted_transactions
        talk.note(
            f"{step}, committed only: {committed}",
            error=found.error_code,
            high_watermark=found.high_watermark,
            last_stable_offset=found.last_stable_offset,
            log_start=found.log_start_offset,
            size=len(found.records or b""),
            aborted=None if aborted is None else str([each.first_offset for each in aborted]),
            latest=_latest(talk, partition, committed),
        )
    described = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[partition])])
    for each in talk.quietly(described, 0).topics[0].partitions[0].active_producers:
        talk.note(
            f"{step}, producer {talk.symbols.of('producer_id', each.producer_id)}",
            epoch=each.producer_epoch,
            last_sequence=each.last_sequence,
            coordinator_epoch=each.coordinator_epoch,
            start=each.current_txn_start_offset,
        )


def _named_first(talk: Conversation) -> None:
    producer = Producer(talk, "names first")
    for version in (8, 10, 11):
        talk.ask("not in the transaction", producer.request(0), version)
    producer.add(0)
    talk.ask("the first batch", producer.request(0), 11)
    talk.ask("its duplicate", producer.request(0), 11)
    talk.ask("the second", producer.request(1), 9)
    talk.ask("a gap", producer.request(7), 11)
    talk.ask("a batch outside of the transaction", producer.request(2, transactional=False), 11)
    talk.ask("a partition that was not named", producer.request(0, partition=1), 11)
    talk.ask("an epoch that was never given", producer.request(0, epoch=producer.epoch + 1), 11)
    _look(talk, "while it is open")
    producer.end(3, commit=False)
    producer.settle()
    _look(talk, "after an abort")
    _look(talk, "from behind the records", offset=2)
    talk.ask("after the end", producer.request(2), 11)
    producer.add(0, 1)
    talk.ask("the next transaction", producer.request(2), 11)
    producer.end(3, commit=True)
    producer.settle()
    _look(talk, "after a commit")
    talk.ask("repeated after the end", producer.request(2), 11)
    # As with Kafka, what came first in vain holds back what comes after it.
    producer.add(0)
    talk.ask("behind what was repeated", producer.request(3), 11)
    producer.end(3, commit=False)


def _added_by_produce(talk: Conversation) -> None:
    producer = Producer(talk, "does not name them")
    first = _latest(talk, 1, False)
    talk.ask("a first batch with a sequence", producer.request(3, partition=1), 12)
    talk.ask("added by produce", producer.request(0, partition=1), 12)
    _look(talk, "added by produce", 1)
    producer.end(5, commit=False)
    producer.settle(1)
    _look(talk, "with a raised epoch", 1, first)
    talk.ask("the epoch before", producer.request(1, partition=1, epoch=producer.epoch - 1), 12)
    talk.ask("a raised epoch not from zero", producer.request(1, partition=1), 12)
    talk.ask("a raised epoch", producer.request(0, partition=1), 12)
    producer.end(5, commit=True)
    producer.settle(1)
    _look(talk, "all of it", 1, first)


def _nobodys(talk: Conversation) -> None:
    one, other = Producer(talk, "one of two"), Producer(talk, "the other")
    asked = one.request(0)
    asked.transactional_id = None
    talk.ask("a transactional batch without an id", asked, 11)
    asked = one.request(0)
    asked.topic_data[0].partition_data.append(other.request(0, partition=1).topic_data[0].partition_data[0])
    talk.ask("two producers in one request", asked, 11)
    asked = one.request(0)
    asked.transactional_id = "nobody knows this one"
    talk.ask("an id that was never initialised", asked, 11)
    asked = one.request(0)
    asked.transactional_id = "the other"
    talk.ask("the id of another producer", asked, 11)
    for name in ("__consumer_offsets", "__transaction_state"):
        talk.ask(f"an internal topic, {name}", one.request(0, topic=name, transactional=False), 11)
