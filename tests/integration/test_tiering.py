"""Tiered storage on a real broker process, with a real S3 server and clients that know nothing of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
)

from headrace.arrow import read_topic
from tests.broker_process import HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties, silent
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.integration.tiered_broker import (
    alter,
    bases,
    create_topic,
    local_start,
    objects,
    objects_of,
    produce,
    read,
    status,
    value_of,
    wait_tiered,
)

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as server:
        yield server


@pytest.fixture(scope="module")
def broker(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    directory = tmp_path_factory.mktemp("tiered")
    with HeadraceProcess(
        directory, broker_properties(store), place=Place(environment=ENVIRONMENT)
    ) as running:
        yield running


@pytest.fixture
def topic(broker: HeadraceProcess) -> str:
    return create_topic(broker)


def test_tier_invariant_15_history_is_read_by_who_knows_nothing_of_it(
    broker: HeadraceProcess, topic: str
) -> None:
    begin_ms = int(time.time() * 1000) - 100_000
    produce(broker, topic, 0, 6000, begin_ms)
    wait_tiered(broker, topic, 3000)
    expected = [(number, value_of(number)) for number in range(6000)]
    assert read(broker, topic, 6000) == expected
    told = status(broker, topic)
    assert (told["log_start"], told["end"]) == (0, 6000)
    assert told["local_start"] == local_start(broker, topic) <= told["tiered_end"]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "times"})
    asked = [TopicPartition(topic, 0, begin_ms + number) for number in (0, 1, 777, 2999, 5999)]
    found = [consumer.offsets_for_times([each], timeout=30)[0].offset for each in asked]
    consumer.close()
    assert found == [0, 1, 777, 2999, 5999]


def test_after_kill_9_all_of_it_is_there(broker: HeadraceProcess, topic: str) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    broker.kill()
    broker.start()
    assert [offset for offset, _ in read(broker, topic, 3000)] == list(range(3000))
    produce(broker, topic, 3000, 3000)
    wait_tiered(broker, topic, 4000)
    assert read(broker, topic, 6000) == [(number, value_of(number)) for number in range(6000)]


def test_tier_invariant_15_aborted_transactions_are_passed_over_across_the_border(
    broker: HeadraceProcess, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "linger.ms": 2})
    producer.init_transactions(60)
    committed = []
    for transaction in range(30):
        producer.begin_transaction()
        for number in range(transaction * 200, transaction * 200 + 200):
            producer.produce(topic, value_of(number))
        producer.flush(60)
        if transaction % 3:
            producer.commit_transaction(60)
            committed += [value_of(number) for number in range(transaction * 200, transaction * 200 + 200)]
        else:
            producer.abort_transaction(60)
    wait_tiered(broker, topic, 2000)
    assert [value for _, value in read(broker, topic, len(committed))] == committed
    everything = read(broker, topic, 6000, level="read_uncommitted")
    assert [value for _, value in everything] == [value_of(number) for number in range(6000)]


def test_what_brokers_have_copied_is_read_past_them(
    broker: HeadraceProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also transactions, whose markers are all that decides about them where no broker is asked."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "linger.ms": 2})
    producer.init_transactions(60)
    for transaction in range(12):
        producer.begin_transaction()
        for number in range(transaction * 300, transaction * 300 + 300):
            producer.produce(topic, value_of(number))
        producer.flush(60)
        if transaction % 4:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    wait_tiered(broker, topic, 1500)
    from_brokers = read_topic(topic, bootstrap=broker.bootstrap).read_all()
    history = read_topic(
        topic,
        bootstrap=broker.bootstrap,
        tier=broker.properties["headrace.tier.url"],
        endpoint=broker.properties["headrace.tier.endpoint"],
    ).read_all()
    assert history.num_rows >= 1000
    assert history == from_brokers.slice(0, history.num_rows)
    values = [value_of(number) for number in range(3600) if number // 300 % 4]
    assert from_brokers["value"].to_pylist() == values


def test_tier_invariant_11_a_store_that_does_not_answer_is_noticed_by_nobody_who_does_not_read_from_it(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    before = local_start(broker, topic)
    with silent(store):
        produce(broker, topic, 3000, 3000)
        assert read(broker, topic, 100, first=before)[0] == (before, value_of(before))
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": uuid4().hex, "auto.offset.reset": "error"}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        heard = consumer.consume(10, 8)  # it asks again and again, and is never told that it is out of range
        consumer.close()
        assert all(message.error() is None for message in heard)
        # What was on its way when the store fell silent may still be in the manifest, and no more.
        assert local_start(broker, topic) < 4000
    wait_tiered(broker, topic, 4000)
    assert read(broker, topic, 6000) == [(number, value_of(number)) for number in range(6000)]


def test_tier_invariant_16_deleted_records_are_deleted_in_the_store_as_well(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 4000)
    wait_tiered(broker, topic, 2000)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = TopicPartition(topic, 0, 1500)
    assert admin.delete_records([asked])[asked].result(60).low_watermark == 1500
    assert read(broker, topic, 2500, first=1500)[0] == (1500, value_of(1500))
    with pytest.raises(KafkaException, match="out of range"):
        read(broker, topic, 1, first=1400)
    eventually(
        lambda: len([each for each in bases(objects_of(store, broker, topic)) if each <= 1500]) == 1,
        60,
        "objects before the new start are gone",
    )
    broker.kill()
    broker.start()
    assert status(broker, topic)["log_start"] == 1500


def test_tiered_storage_is_switched_off_and_on_again(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 4000)
    wait_tiered(broker, topic, 2000)
    assert any(path.endswith(".log") for path in objects_of(store, broker, topic))
    with pytest.raises(KafkaException, match=r"remote\.log\.delete\.on\.disable"):
        alter(broker, topic, remote_storage_enable="false")
    alter(broker, topic, remote_storage_enable="false", remote_log_delete_on_disable="true")
    eventually(
        lambda: not any(path.endswith(".log") for path in objects_of(store, broker, topic)),
        60,
        "nothing of the topic is left in the store",
    )
    begin = local_start(broker, topic)  # until then, segments went from the disk
    assert read(broker, topic, 4000 - begin, first=begin)[0] == (begin, value_of(begin))
    with pytest.raises(KafkaException, match="out of range"):
        read(broker, topic, 1, first=begin - 1)
    alter(broker, topic, remote_storage_enable="true")
    produce(broker, topic, 4000, 4000)
    wait_tiered(broker, topic, 6000)
    found = read(broker, topic, 8000 - begin, first=begin)
    assert found == [(number, value_of(number)) for number in range(begin, 8000)]


def test_tier_invariant_16_nothing_is_left_of_a_deleted_topic_but_the_word_that_it_is(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    line = (broker.log_dir / f"{topic}-0" / "partition.metadata").read_text().split("topic_id: ")[1]
    folder = f"/{line.split()[0]}/"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    eventually(
        lambda: (
            [path.rpartition("/")[2] for path in objects(store, broker) if folder in path] == ["manifest"]
        ),
        60,
        "only the manifest of the deleted topic is left",
    )


def test_a_broker_does_not_stay_without_the_store_of_its_topics(broker: HeadraceProcess, topic: str) -> None:
    broker.stop()
    broker.properties["remote.log.storage.system.enable"] = "false"
    try:
        broker.launch()
        eventually(lambda: not broker.running, 60, "the broker has ended")
        assert "has history in an object store" in broker.tail()
    finally:
        broker.kill()
        broker.properties["remote.log.storage.system.enable"] = "true"
        broker.start()
    assert status(broker, topic)["end"] == 0


def test_a_broker_without_a_store_loads_nothing_of_it() -> None:
    """The base installation has no client of object stores."""
    look = (
        "import sys; import headrace.broker.process.main;"
        "print([name for name in sys.modules if name.startswith(('obstore', 'headrace.tier',"
        " 'headrace.broker.tiering', 'headrace.objects'))])"
    )
    run = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
