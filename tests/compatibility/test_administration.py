"""Administration through every client that offers it, with the codes that Kafka gives."""

from __future__ import annotations

import time

import pytest

from tests.broker_process import BROKER_ID, BrokerProcess
from tests.compatibility.clients.client import Client, ClientFailure, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.patience import eventually

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40
ELECTION_NOT_NEEDED = 84
OFFSET_OUT_OF_RANGE = 1


@pytest.mark.needs("create")
def test_create_describe_and_delete(client: Client, topic: str) -> None:
    client.create_topic(topic, partitions=3)

    def described() -> None:
        expected = [
            {"partition": i, "leader": BROKER_ID, "replicas": [BROKER_ID], "isr": [BROKER_ID]}
            for i in range(3)
        ]
        found = client.operate("describe", topic=topic)["partitions"]
        assert sorted(found, key=lambda one: one["partition"]) == expected

    eventually(described)
    with pytest.raises(ClientFailure) as failure:
        client.create_topic(topic)
    assert failure.value.code == TOPIC_ALREADY_EXISTS

    client.operate("delete", topic=topic)

    def gone() -> None:
        with pytest.raises(ClientFailure) as failure:
            client.operate("describe", topic=topic)
        assert failure.value.code == UNKNOWN_TOPIC_OR_PARTITION

    if client.name != "aiokafka":  # whose describe creates the topic again
        eventually(gone)


@pytest.mark.needs("delete")
def test_a_topic_that_is_not_there_cannot_be_deleted(client: Client, topic: str) -> None:
    with pytest.raises(ClientFailure) as failure:
        client.operate("delete", topic=topic)
    assert failure.value.code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.needs("create")
@pytest.mark.parametrize(
    ("name", "configs", "code"),
    [
        ("has space", {}, INVALID_TOPIC),
        ("..", {}, INVALID_TOPIC),
        ("x" * 250, {}, INVALID_TOPIC),
        (None, {"no.such.config": "1"}, INVALID_CONFIG),
        (None, {"retention.ms": "soon"}, INVALID_CONFIG),
        (None, {"cleanup.policy": "shred"}, INVALID_CONFIG),
        (None, {"segment.bytes": "1"}, INVALID_CONFIG),
    ],
)
def test_a_topic_that_cannot_be_created(
    client: Client, topic: str, name: str | None, configs: dict[str, str], code: int
) -> None:
    with pytest.raises(ClientFailure) as failure:
        client.create_topic(name or topic, configs=configs)
    assert failure.value.code == code


@pytest.mark.needs("add_partitions")
def test_partitions_can_be_added_but_not_taken_away(
    client: Client, librdkafka: ConfluentClient, topic: str
) -> None:
    client.create_topic(topic, partitions=2)
    client.operate("add_partitions", topic=topic, count=5)
    eventually(lambda: _demand_partitions(librdkafka, topic, 5))
    for count in (5, 1):
        with pytest.raises(ClientFailure) as failure:
            client.operate("add_partitions", topic=topic, count=count)
        assert failure.value.code == INVALID_PARTITIONS
    assert client.produce(topic, [NewRecord(b"new")], partition=4) == [0]


def _demand_partitions(client: Client, topic: str, count: int) -> None:
    assert len(client.operate("describe", topic=topic)["partitions"]) == count


#: A sample over all value types. The oracle compares every one with Apache Kafka's.
KAFKA_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.bytes": "1073741824",
    "max.message.bytes": "1048588",
    "min.cleanable.dirty.ratio": "0.5",
    "message.timestamp.type": "CreateTime",
    "preallocate": "false",
    "unclean.leader.election.enable": "false",
}


@pytest.mark.needs("describe_configs")
def test_all_configs_are_described_with_default_and_source(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "1234567"})
    eventually(lambda: client.operate("describe_configs", topic=topic))
    found = client.operate("describe_configs", topic=topic)["configs"]
    sources = {
        name: entry["source"].upper().replace(" ", "_").removesuffix("_CONFIG")
        for name, entry in found.items()
    }
    assert len(found) >= 30
    assert found["retention.ms"]["value"] == "1234567"
    assert sources["retention.ms"] in ("DYNAMIC_TOPIC", "TOPIC")
    for name, value in KAFKA_DEFAULTS.items():
        if name != "retention.ms":
            assert found[name]["value"] == value, name
            assert sources[name] in ("DEFAULT", "STATIC_BROKER"), name


@pytest.mark.needs("alter_config")
def test_configs_are_altered_one_by_one(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "1000000"})

    def values() -> dict[str, str]:
        found = librdkafka.describe_configs(topic)["configs"]
        return {name: found[name]["value"] for name in ("retention.ms", "cleanup.policy")}

    def expect(retention: str, policy: str) -> None:
        assert values() == {"retention.ms": retention, "cleanup.policy": policy}

    client.operate("alter_config", topic=topic, name="retention.ms", value="2000000", how="set")
    eventually(lambda: expect("2000000", "delete"))
    client.operate("alter_config", topic=topic, name="cleanup.policy", value="compact", how="append")
    eventually(lambda: expect("2000000", "delete,compact"))
    client.operate("alter_config", topic=topic, name="cleanup.policy", value="delete", how="subtract")
    eventually(lambda: expect("2000000", "compact"))
    client.operate("alter_config", topic=topic, name="retention.ms", value="", how="delete")
    eventually(lambda: expect("604800000", "compact"))
    with pytest.raises(ClientFailure) as failure:
        client.operate("alter_config", topic=topic, name="retention.ms", value="soon", how="set")
    assert failure.value.code == INVALID_CONFIG


@pytest.mark.needs("delete_records")
def test_records_are_deleted_up_to_an_offset(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, [NewRecord(b"%d" % i) for i in range(10)])
    answer = client.operate("delete_records", topic=topic, partition=0, offset=4)
    assert answer.get("low_watermark", 4) == 4
    assert librdkafka.list_offsets(topic, 0, "earliest")["offset"] == 4
    # Offset 4 lies inside the one batch that was written; what was deleted must not come back.
    assert [record.offset for record in client.consume(topic, 6)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(ClientFailure) as failure:
        client.operate("delete_records", topic=topic, partition=0, offset=11)
    assert failure.value.code == OFFSET_OUT_OF_RANGE or "OffsetOutOfRange" in str(failure.value)
    client.operate("delete_records", topic=topic, partition=0, offset=-1)
    assert librdkafka.list_offsets(topic, 0, "earliest")["offset"] == 10


@pytest.mark.needs("list_offsets")
def test_offsets_are_listed_by_moment(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    base = int(time.time() * 1000) - 3_600_000
    for i, delay in enumerate((0, 1000, 5000, 2000)):
        librdkafka.produce(topic, [NewRecord(b"%d" % i, timestamp=base + delay)])

    def offset(at: str) -> int:
        found: int = client.operate("list_offsets", topic=topic, partition=0, at=at)["offset"]
        return found

    assert offset("earliest") == 0
    assert offset("latest") == 4
    assert offset(str(base)) == 0
    assert offset(str(base + 1)) == 1
    assert offset(str(base + 1500)) == 2
    if (
        client.name != "sarama"
    ):  # which takes a later time for the end, and asks in too old a version for the newest
        assert offset("max_timestamp") == 2
        after_all = client.operate("list_offsets", topic=topic, partition=0, at=str(base + 9000))["offset"]
        assert after_all in (-1, 4)


@pytest.mark.needs("describe_cluster")
def test_the_cluster_is_described(client: Client, broker: BrokerProcess) -> None:
    found = client.operate("describe_cluster")
    assert found["nodes"] == [BROKER_ID]
    assert found["controller"] == BROKER_ID
    if "cluster_id" in found:
        assert len(found["cluster_id"]) == 22


@pytest.mark.needs("describe_log_dirs")
def test_log_dirs_tell_sizes(client: Client, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    client.produce(topic, [NewRecord(b"x" * 1000)])
    found = client.operate("describe_log_dirs", topic=topic, broker=BROKER_ID)["replicas"]
    sizes = {one["partition"]: one["size"] for one in found}
    assert sizes.keys() == {0, 1}
    assert 1000 < sizes[0] < 1200
    assert sizes[1] == 0


@pytest.mark.needs("describe_producers")
def test_producers_are_described(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, [NewRecord(b"%d" % i) for i in range(3)], idempotent=True)
    (found,) = client.operate("describe_producers", topic=topic, partition=0)["producers"]
    assert found["producer_id"] >= 0
    assert found["last_sequence"] == 2


@pytest.mark.needs("elect_leaders")
def test_the_preferred_leader_leads_already(client: Client, topic: str) -> None:
    client.create_topic(topic)
    with pytest.raises(ClientFailure) as failure:
        client.operate("elect_leaders", topic=topic, partition=0)
    assert failure.value.code == ELECTION_NOT_NEEDED
