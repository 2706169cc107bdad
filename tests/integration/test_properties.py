"""What each property does to a running broker, seen by a real client.

Types, bounds, defaults and synonyms of every property are tested in tests/unit/config.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import ResourceType

from headrace.config.broker import BrokerConfig
from headrace.protocol.batch import iterate
from headrace.testing.cluster import Cluster
from tests.integration.real_client import (
    admin,
    create,
    eventually,
    read,
    send,
    send_all,
    set_config,
    watermarks,
)

MEGABYTE = 1024 * 1024


def running(properties: Mapping[str, str], directory: Path) -> Cluster:
    return Cluster(properties, directory=directory)


def segments(cluster: Cluster, topic: str, partition: int = 0) -> list[str]:
    folder = f"{cluster.directory}/{topic}-{partition}"
    return sorted(name for name in os.listdir(folder) if name.endswith(".log"))


def code_of(error: KafkaError | None) -> int:
    assert error is not None
    return error.code()


# --- identity and listeners ---------------------------------------------------------------------------------


def test_broker_id_and_advertised_listeners_are_what_clients_are_told(tmp_path: Path) -> None:
    properties = {"broker.id": "7", "advertised.listeners": "PLAINTEXT://localhost:9999"}
    with running(properties, tmp_path) as cluster:
        port = cluster.call(lambda: next(iter(cluster.broker.network._listening)).getsockname()[1])
        brokers = admin(f"127.0.0.1:{port}").list_topics(timeout=10).brokers
    assert {(node.id, str(node.host), node.port) for node in brokers.values()} == {(7, "localhost", 9999)}


def test_each_listener_is_told_its_own_address(tmp_path: Path) -> None:
    properties = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    with running(properties, tmp_path) as cluster:
        for endpoint in cluster.broker.node.endpoints:
            brokers = admin(f"127.0.0.1:{endpoint.port}").list_topics(timeout=10).brokers
            assert [node.port for node in brokers.values()] == [endpoint.port]


def test_the_old_port_is_a_listener(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = BrokerConfig.parse({"port": str(port), "log.dirs": str(tmp_path)})
    assert [(listener.host, listener.port) for listener in config.bound_listeners] == [("127.0.0.1", port)]


# --- topics -------------------------------------------------------------------------------------------------


def test_topics_are_created_on_produce_with_num_partitions(tmp_path: Path) -> None:
    with running({"num.partitions": "3"}, tmp_path) as cluster:
        send_all(cluster.bootstrap, "made", [b"x"])
        assert len(admin(cluster.bootstrap).list_topics("made", timeout=10).topics["made"].partitions) == 3


def test_topics_are_created_on_fetch(tmp_path: Path) -> None:
    with running({}, tmp_path) as cluster:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "none",
                "allow.auto.create.topics": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition("read-first", 0, 0)])
        eventually(lambda: consumer.poll(0.1) or "read-first" in cluster.broker.metadata.image.topics_by_name)
        consumer.close()


def test_auto_create_topics_enable_false_creates_nothing(tmp_path: Path) -> None:
    with running({"auto.create.topics.enable": "false"}, tmp_path) as cluster:
        outcome = send(cluster.bootstrap, "absent", [b"x"], settings={"message.timeout.ms": "1500"})
        assert code_of(outcome[0]) in (KafkaError._UNKNOWN_TOPIC, KafkaError._MSG_TIMED_OUT)
        assert not cluster.broker.metadata.image.topics_by_name


def test_default_replication_factor_holds_where_none_is_given(tmp_path: Path) -> None:
    with running({"default.replication.factor": "2"}, tmp_path) as cluster:
        with pytest.raises(KafkaException) as refused:
            create(cluster.bootstrap, "two", replicas=-1)
        assert refused.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR
        create(cluster.bootstrap, "one", replicas=1)


def test_delete_topic_enable_false_keeps_topics(tmp_path: Path) -> None:
    with running({"delete.topic.enable": "false"}, tmp_path) as cluster:
        create(cluster.bootstrap, "kept")
        client = admin(cluster.bootstrap)
        with pytest.raises(KafkaException) as refused:
            client.delete_topics(["kept"])["kept"].result(10)
        assert refused.value.args[0].code() == KafkaError.TOPIC_DELETION_DISABLED


# --- what a record may be -----------------------------------------------------------------------------------


def test_a_topic_with_fewer_replicas_than_min_insync_replicas_needs_all_it_has(tmp_path: Path) -> None:
    """As Apache Kafka 4: the effective minimum is never more than the number of replicas."""
    with running({"min.insync.replicas": "2"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x"], settings={"acks": "all"})
        send_all(cluster.bootstrap, "t", [b"x"], settings={"acks": "1"})


def test_message_max_bytes_at_broker_and_topic_level(tmp_path: Path) -> None:
    with running({"message.max.bytes": "20000"}, tmp_path) as cluster:
        create(cluster.bootstrap, "usual")
        create(cluster.bootstrap, "roomy", config={"max.message.bytes": "50000"})
        assert code_of(send(cluster.bootstrap, "usual", [b"x" * 30_000])[0]) == KafkaError.MSG_SIZE_TOO_LARGE
        send_all(cluster.bootstrap, "usual", [b"x" * 15_000])
        send_all(cluster.bootstrap, "roomy", [b"x" * 30_000])
        set_config(cluster.bootstrap, ResourceType.BROKER, "1", "message.max.bytes", "40000")
        send_all(cluster.bootstrap, "usual", [b"x" * 30_000])


def test_socket_request_max_bytes_ends_the_connection(tmp_path: Path) -> None:
    with running({"socket.request.max.bytes": "10000"}, tmp_path) as cluster:
        host, port = cluster.bootstrap.split(":")
        with socket.create_connection((host, int(port)), 5) as peer:
            peer.sendall(struct.pack(">i", 10_001))
            assert peer.recv(1) == b""


def test_compression_type_rewrites_batches(tmp_path: Path) -> None:
    with running({"compression.type": "zstd"}, tmp_path) as cluster:
        create(cluster.bootstrap, "zipped")
        create(cluster.bootstrap, "as-sent", config={"compression.type": "producer"})
        for topic in ("zipped", "as-sent"):
            send_all(cluster.bootstrap, topic, [b"x" * 2000])
            assert read(cluster.bootstrap, topic, 1)[0].value() == b"x" * 2000
        codecs = {}
        for topic in ("zipped", "as-sent"):
            data = Path(cluster.directory, f"{topic}-0", segments(cluster, topic)[0]).read_bytes()
            codecs[topic] = [header.compression for _, header in iterate(data)]
    assert codecs == {"zipped": [4], "as-sent": [0]}


def test_log_append_time_replaces_the_producers(tmp_path: Path) -> None:
    with running({"log.message.timestamp.type": "LogAppendTime"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        before = int(time.time() * 1000)
        send_all(cluster.bootstrap, "t", [b"x"], timestamp=1_000_000)
        kind, stamp = read(cluster.bootstrap, "t", 1)[0].timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= stamp <= int(time.time() * 1000)


@pytest.mark.parametrize(
    ("name", "shift_ms"),
    [("log.message.timestamp.after.max.ms", 60_000), ("log.message.timestamp.before.max.ms", -60_000)],
)
def test_timestamps_too_far_off_are_refused(tmp_path: Path, name: str, shift_ms: int) -> None:
    with running({name: "30000"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        now = int(time.time() * 1000)
        outcome = send(cluster.bootstrap, "t", [b"x"], timestamp=now + shift_ms)
        assert code_of(outcome[0]) == KafkaError.INVALID_TIMESTAMP
        send_all(cluster.bootstrap, "t", [b"x"], timestamp=now)


def test_cleanup_policy_compact_needs_keys(tmp_path: Path) -> None:
    with running({"log.cleanup.policy": "compact"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        assert code_of(send(cluster.bootstrap, "t", [b"x"])[0]) == KafkaError.INVALID_RECORD
        send_all(cluster.bootstrap, "t", [b"x"], key=b"k")


# --- segments, retention, flush -----------------------------------------------------------------------------


def test_log_segment_bytes_rolls_by_size(tmp_path: Path) -> None:
    with running({"log.segment.bytes": str(MEGABYTE)}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x" * 300_000] * 8)
        assert len(segments(cluster, "t")) == 3


@pytest.mark.parametrize("name", ["log.roll.ms", "log.segment.ms"])
def test_log_roll_ms_rolls_by_time(tmp_path: Path, name: str) -> None:
    with running({name: "60000"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        now = int(time.time() * 1000)
        for shift in (-300_000, -299_000, -100_000):
            send_all(cluster.bootstrap, "t", [b"x"], timestamp=now + shift)
        assert len(segments(cluster, "t")) == 2


def test_log_index_interval_bytes_spaces_the_entries(tmp_path: Path) -> None:
    sizes = {}
    for interval in ("100", "100000"):
        with running({"log.index.interval.bytes": interval}, tmp_path / interval) as cluster:
            create(cluster.bootstrap, "t")
            send_all(cluster.bootstrap, "t", [b"x" * 1000] * 50)
        sizes[interval] = os.path.getsize(tmp_path / interval / "t-0" / f"{0:020d}.index")
    assert sizes["100"] > 40 * 8
    assert sizes["100000"] <= 8


def test_log_retention_ms_removes_old_segments(tmp_path: Path) -> None:
    properties = {
        "log.retention.ms": "60000",
        "log.retention.check.interval.ms": "200",
        "log.roll.ms": "1000",
    }
    with running(properties, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        now = int(time.time() * 1000)
        send_all(cluster.bootstrap, "t", [b"old"], timestamp=now - 200_000)
        send_all(cluster.bootstrap, "t", [b"older"], timestamp=now - 190_000)
        send_all(cluster.bootstrap, "t", [b"new"], timestamp=now)
        eventually(lambda: watermarks(cluster.bootstrap, "t") == (2, 3))


def test_log_retention_bytes_keeps_the_newest(tmp_path: Path) -> None:
    properties = {
        "log.retention.bytes": str(2 * MEGABYTE),
        "log.segment.bytes": str(MEGABYTE),
        "log.retention.check.interval.ms": "200",
    }
    with running(properties, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        create(cluster.bootstrap, "all", config={"retention.bytes": "-1"})
        for topic in ("t", "all"):
            send_all(cluster.bootstrap, topic, [b"x" * 300_000] * 20)
        eventually(lambda: watermarks(cluster.bootstrap, "t")[0] > 0)
        low, high = watermarks(cluster.bootstrap, "t")
        assert high == 20
        assert (high - low) * 300_000 >= 2 * MEGABYTE
        assert watermarks(cluster.bootstrap, "all") == (0, 20)


def test_log_flush_interval_messages_syncs_before_the_answer(tmp_path: Path) -> None:
    with running({"log.flush.interval.messages": "1"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        create(cluster.bootstrap, "lazy", config={"flush.messages": "9223372036854775807"})
        for topic in ("t", "lazy"):
            send_all(cluster.bootstrap, topic, [b"x", b"y"])
        points = {
            topic: cluster.broker.partitions.get(topic, 0).log.recovery_point for topic in ("t", "lazy")
        }
    assert points == {"t": 2, "lazy": 0}


def test_log_flush_interval_ms_syncs_by_the_clock(tmp_path: Path) -> None:
    with running({"log.flush.interval.ms": "100"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x"])
        log = cluster.broker.partitions.get("t", 0).log
        eventually(lambda: log.recovery_point == 1)


def test_several_log_dirs_share_the_partitions(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    properties = {
        "log.dirs": ",".join(map(str, directories)),
        "num.recovery.threads.per.data.dir": "3",
    }
    with running(properties, tmp_path) as cluster:
        create(cluster.bootstrap, "t", 9)
        send_all(cluster.bootstrap, "t", [b"x"])
        counts = [sum(name.startswith("t-") for name in os.listdir(path)) for path in directories]
        assert sum(counts) == 9
        assert max(counts) - min(counts) <= 2  # the metadata log counts as one of the first directory's
        cluster.restart()
        assert [message.value() for message in read(cluster.bootstrap, "t", 1)] == [b"x"]


# --- connections and sessions -------------------------------------------------------------------------------


def test_connections_max_idle_ms_closes_quiet_peers(tmp_path: Path) -> None:
    with running({"connections.max.idle.ms": "1000"}, tmp_path) as cluster:
        host, port = cluster.bootstrap.split(":")
        with socket.create_connection((host, int(port)), 30) as peer:
            assert peer.recv(1) == b""


def test_max_connections_per_ip_refuses_the_next(tmp_path: Path) -> None:
    with running({"max.connections.per.ip": "2"}, tmp_path) as cluster:
        host, port = cluster.bootstrap.split(":")
        with (
            socket.create_connection((host, int(port)), 5),
            socket.create_connection((host, int(port)), 5),
            socket.create_connection((host, int(port)), 5) as third,
        ):
            assert third.recv(1) == b""


def test_what_was_set_at_run_time_holds_after_a_restart(tmp_path: Path) -> None:
    with running({}, tmp_path) as cluster:
        number = str(cluster.broker.runtime.broker_id)
        set_config(cluster.bootstrap, ResourceType.BROKER, number, "max.connections.per.ip", "70")
        for restarted in (False, True):
            if restarted:
                cluster.restart()
            assert cluster.call(lambda: cluster.broker.runtime.config.max_connections_per_ip) == 70
            assert cluster.call(lambda: cluster.broker.network.max_connections_per_ip) == 70


def test_no_session_slots_means_no_sessions(tmp_path: Path) -> None:
    with running({"max.incremental.fetch.session.cache.slots": "0"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x"])
        assert len(read(cluster.bootstrap, "t", 1)) == 1
        assert cluster.call(lambda: len(cluster.broker.context.fetches.sessions)) == 0


def test_producer_id_expiration_forgets_idle_producers(tmp_path: Path) -> None:
    with running({"log.retention.check.interval.ms": "200"}, tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x"], settings={"enable.idempotence": "true", "retries": "5"})
        log = cluster.broker.partitions.get("t", 0).log
        assert cluster.call(lambda: len(list(log.active_producers()))) == 1
        set_config(cluster.bootstrap, ResourceType.BROKER, "1", "producer.id.expiration.ms", "1000")
        eventually(lambda: not cluster.call(lambda: list(log.active_producers())))


# --- accepted now, used later -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("log.preallocate", "true"), ("max.connection.creation.rate", "100")]
)
def test_later_properties_are_accepted_and_marked(name: str, value: str) -> None:
    config = BrokerConfig.parse({name: value})
    assert any("does not use it yet" in warning for warning in config.warnings)


def test_num_recovery_threads_at_run_time_count_for_the_next_shutdown(tmp_path: Path) -> None:
    with running({"num.recovery.threads.per.data.dir": "3"}, tmp_path) as cluster:
        assert cluster.broker.storage.logs.threads_per_directory == 3
        set_config(cluster.bootstrap, ResourceType.BROKER, "1", "num.recovery.threads.per.data.dir", "5")
        eventually(lambda: cluster.broker.storage.logs.threads_per_directory == 5)


def test_internal_topics_come_to_be_whatever_their_segments_are_to_be() -> None:
    """Their least is Kafka's, that of a topic is more: no transaction was possible, and no group."""
    properties = {"transaction.state.log.segment.bytes": "16384", "offsets.topic.segment.bytes": "1"}
    with Cluster(properties) as cluster:
        create(cluster.bootstrap, "t", 1)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "x"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", b"v")
        producer.commit_transaction(60)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        consumer.close()
