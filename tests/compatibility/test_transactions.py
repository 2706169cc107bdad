"""Transactions through every client that has them: all or nothing, in partitions and in groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.compatibility.clients.client import ClientFailure, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.clients.json_lines import FranzClient, JavaClient, OlderJavaClient
from tests.compatibility.clients.transactional import (
    ConfluentTransactions,
    JsonLinesTransactions,
    KafkaPythonTransactions,
    TransactionalProducer,
)
from tests.compatibility.members.all import Programs, kinds
from tests.compatibility.members.confluent import ConfluentMember
from tests.compatibility.members.kafka_python import KafkaPythonMember
from tests.compatibility.members.member import Kind, Member, Membership, Read

#: With the kind of member that reads for each.
PRODUCERS = {
    "confluent-kafka": "confluent-kafka consumer",
    "kafka-python": "kafka-python classic",
    JavaClient.name: f"{JavaClient.name} consumer",
    OlderJavaClient.name: f"{OlderJavaClient.name} classic",
    FranzClient.name: f"{FranzClient.name} classic",
}
INVALID_PRODUCER_EPOCH = 47
PRODUCER_FENCED = 90
#: What librdkafka makes of both.
LIBRDKAFKA_FENCED = -144
READ_SECONDS = 15

Open = Callable[[str], TransactionalProducer]


@pytest.fixture(params=list(PRODUCERS))
def producer_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(producer_name: str, programs: Programs) -> Kind:
    return kinds(programs)[PRODUCERS[producer_name]]


@pytest.fixture
def open_producer(producer_name: str, programs: Programs, broker: BrokerProcess) -> Iterator[Open]:
    opened: list[TransactionalProducer] = []

    def one(transactional_id: str) -> TransactionalProducer:
        made: TransactionalProducer
        if producer_name == "confluent-kafka":
            made = ConfluentTransactions(broker.bootstrap, transactional_id)
        elif producer_name == "kafka-python":
            made = KafkaPythonTransactions(broker.bootstrap, transactional_id)
        else:
            made = JsonLinesTransactions(programs.get(producer_name, broker.bootstrap), transactional_id)
        opened.append(made)
        return made

    yield one
    for producer in opened:
        producer.close()


def read(member: Member, count: int, beyond: float = 0.3) -> list[bytes]:
    """The values of `count` records, and proof that no more follow."""
    found: list[Read] = []
    deadline = time.monotonic() + READ_SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        found += member.poll(0.05)
    found += member.poll(beyond)
    return [one.value for one in found]


def committed_only(broker: BrokerProcess, topic: str) -> ConfluentMember:
    return ConfluentMember(broker.bootstrap, Membership(f"reader-{topic}", topic, committed_only=True))


def test_readers_of_committed_records_see_all_or_nothing(
    open_producer: Open, kind: Kind, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic, 2)
    producer = open_producer(f"id-{topic}")
    producer.begin()
    producer.send(topic, [b"a", b"b"])
    producer.commit()
    producer.begin()
    producer.send(topic, [b"not this"])
    producer.send(topic, [b"nor this"], partition=1)
    producer.abort()
    producer.begin()
    producer.send(topic, [b"c"])
    producer.send(topic, [b"d"], partition=1)
    producer.commit()
    producer.begin()
    producer.send(topic, [b"open"])

    member = kind.join(
        broker.bootstrap, Membership(f"g-{topic}", topic, protocol=kind.protocol, committed_only=True)
    )
    assert sorted(read(member, 4)) == [b"a", b"b", b"c", b"d"]
    producer.commit()
    assert read(member, 1) == [b"open"]
    member.close()
    everything = kind.join(broker.bootstrap, Membership(f"all-{topic}", topic, protocol=kind.protocol))
    found = read(everything, 7)
    everything.close()
    assert sorted(found) == [b"a", b"b", b"c", b"d", b"nor this", b"not this", b"open"]


def test_a_namesake_fences_an_older_producer(
    open_producer: Open, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic)
    older = open_producer(f"id-{topic}")
    older.begin()
    older.send(topic, [b"of the older"])
    newer = open_producer(f"id-{topic}")
    newer.begin()
    newer.send(topic, [b"of the newer"])
    with pytest.raises(ClientFailure) as failure:
        older.commit()
    assert failure.value.code in (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, LIBRDKAFKA_FENCED)
    newer.commit()
    reader = committed_only(broker, topic)
    assert read(reader, 1) == [b"of the newer"]
    reader.close()


def test_consuming_and_producing_in_one_transaction(
    open_producer: Open,
    producer_name: str,
    kind: Kind,
    broker: BrokerProcess,
    librdkafka: ConfluentClient,
    topic: str,
    programs: Programs,
) -> None:
    source, sink, group = f"{topic}-from", f"{topic}-to", f"g-{topic}"
    for name in (source, sink):
        librdkafka.create_topic(name)
    librdkafka.produce(source, [NewRecord(b"%d" % number) for number in range(4)])
    wanted = Membership(group, source, protocol=kind.protocol, committed_only=True)

    def round_of(how: str) -> None:
        """Read all that the group has not done yet, write it to the sink, and end the transaction."""
        if producer_name == FranzClient.name:
            programs.get(producer_name, broker.bootstrap).operate(
                "txn_transform",
                transactional_id=f"id-{topic}",
                group=group,
                topic=source,
                to=sink,
                count=4,
                how=how,
            )
            return
        producer = open_producer(f"id-{topic}")
        member = kind.join(broker.bootstrap, wanted)
        values = read(member, 4, beyond=0.05)
        producer.begin()
        producer.send(sink, values)
        producer.send_offsets(member, {0: 4})
        if how == "commit":
            producer.commit()
        else:
            producer.abort()
        member.close()

    def place() -> dict[int, int]:
        # Not by confluent-kafka: it reads beyond the end of metadata that another client wrote.
        probe = KafkaPythonMember(broker.bootstrap, wanted)
        found = {at: one.offset for at, one in probe.committed({0}).items()}
        probe.close()
        return found

    round_of("abort")
    assert place() == {}
    round_of("commit")
    assert place() == {0: 4}
    reader = committed_only(broker, sink)
    assert read(reader, 4) == [b"0", b"1", b"2", b"3"]
    reader.close()
