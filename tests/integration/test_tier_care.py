"""Scrub, garbage and forks of histories that a real broker has written, with a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.core.ports_objects import Absent
from headrace.objects.opening import open_bucket
from tests.broker_process import HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties, silent
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.integration.tiered_broker import (
    alter,
    bases,
    bucket_of,
    create_topic,
    headrace,
    objects,
    objects_of,
    produce,
    read,
    refusal,
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


def test_tier_invariant_17_what_a_broker_has_copied_is_proved(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    command = ("tier", "scrub", *bucket_of(broker), topic, "--json")
    code, said = headrace(broker, *command)
    (told,) = json.loads(said)["partitions"]
    assert (code, told["whole"], told["start"]) == (0, True, 0)
    assert told["segments"] >= 5
    victim = [path for path in objects_of(store, broker, topic) if path.endswith(".log")][1]
    files = store.files()
    with files.open_input_stream(victim) as before:
        content = bytearray(before.read())
    content[len(content) // 2] ^= 1
    with files.open_output_stream(victim) as after:
        after.write(bytes(content))
    code, said = headrace(broker, *command)
    (found,) = json.loads(said)["partitions"][0]["findings"]
    assert (code, found["kind"]) == (1, "damaged")
    assert victim.endswith(found["key"])


def garbage(broker: HeadraceProcess, topic: str, *options: str) -> list[tuple[str, int, bool]]:
    """(why, objects, due) of a topic, by its name or id. The clocks of this test are too short for a day."""
    code, said = headrace(broker, "tier", "gc", *bucket_of(broker), "--older-than", "1ms", "--json", *options)
    assert code == 0, said
    found = json.loads(said)["garbage"]
    return [(each["why"], each["objects"], each["due"]) for each in found if each["topic"] == topic]


def test_what_belongs_to_nobody_is_found_and_deleted(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    before = objects_of(store, broker, topic)
    folder = before[0].rpartition("/")[0]
    name = f"{0:020}-0-{'a' * 32}"  # of the leader before the restart
    broker.kill()
    with store.files().open_output_stream(f"{folder}/{name}.log") as orphan:
        orphan.write(b"nobody has named it")
    broker.start()
    produce(broker, topic, 3000, 2000)
    wait_tiered(broker, topic, 3000)  # a later leader has written the manifest
    assert garbage(broker, topic) == [("no manifest names it", 1, True)]
    assert f"{folder}/{name}.log" in objects_of(store, broker, topic)
    assert garbage(broker, topic, "--delete") == [("no manifest names it", 1, True)]
    assert f"{folder}/{name}.log" not in objects_of(store, broker, topic)
    assert garbage(broker, topic) == []
    assert read(broker, topic, 5000) == [(number, value_of(number)) for number in range(5000)]


def test_what_a_leader_leaves_that_dies_before_it_has_deleted_its_topic(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    line = (broker.log_dir / f"{topic}-0" / "partition.metadata").read_text().split("topic_id: ")[1]
    topic_id = line.split()[0]

    def left() -> list[str]:
        return [path for path in objects(store, broker) if f"/{topic_id}/" in path]

    with silent(store):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([topic])[topic].result(30)
        broker.kill()
    broker.start()
    count = len(left())
    assert count > 10
    ((why, objects_left, _),) = garbage(broker, topic_id)
    assert why.startswith("its topic was deleted")  # whether the store was told before it fell silent or not
    assert (objects_left, len(left())) == (count, count)
    garbage(broker, topic_id, "--delete")  # its manifest says so from now on
    garbage(broker, topic_id, "--delete")
    assert left() == []


def fork(broker: HeadraceProcess, topic: str, *options: str) -> tuple[str, int]:
    """Its name, and where it goes on by itself."""
    name = f"{topic}-fork-{uuid4().hex[:4]}"
    code, said = headrace(broker, "topic", "fork", topic, name, "--json", *options)
    assert code == 0, said
    return name, json.loads(said)["partitions"][0]["offset"]


def test_tier_invariant_18_a_fork_is_read_at_once_and_written_by_itself(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 4000)
    wait_tiered(broker, topic, 2000)
    name, end = fork(broker, topic, "--at", "1000")
    assert end == 1000
    first_end = status(broker, name)["end"]
    assert 900 < first_end <= 1000  # a batch is not divided
    assert read(broker, name, first_end) == [(number, value_of(number)) for number in range(first_end)]
    assert [path.rpartition("/")[2] for path in objects_of(store, broker, name)] == ["manifest"]
    produce(broker, name, 100_000, 4000)
    produce(broker, topic, 4000, 2000)
    wait_tiered(broker, name, 3000)
    own = [(number, value_of(number)) for number in range(first_end)]
    own += [(first_end + number, value_of(100_000 + number)) for number in range(4000)]
    assert read(broker, name, len(own)) == own
    assert read(broker, topic, 6000) == [(number, value_of(number)) for number in range(6000)]
    code, said = headrace(broker, "tier", "scrub", *bucket_of(broker), name, topic)
    assert code == 0, said
    broker.kill()
    broker.start()
    assert read(broker, name, len(own)) == own
    # The origin goes, and what the fork names stays.
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    folder = objects_of(store, broker, topic)[0].rpartition("/")[0]
    admin.delete_topics([topic])[topic].result(30)
    eventually(
        lambda: max(bases([path for path in objects(store, broker) if folder in path])) < first_end,
        60,
        "what only the origin named is gone",
    )
    topic_id = folder.split("/")[-2]
    garbage(broker, topic_id, "--delete")
    garbage(broker, topic_id, "--delete")
    assert read(broker, name, len(own)) == own


def test_tier_invariant_18_transactions_end_in_a_fork_as_in_its_origin(
    broker: HeadraceProcess, topic: str
) -> None:
    """Three of four are committed. Each fork ends within one, and nobody waits for its end."""
    producers = [
        Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-{one}"})
        for one in "ab"
    ]
    for producer in producers:
        producer.init_transactions(60)
    for transaction in range(12):
        for producer in producers:  # the two overlap always
            producer.begin_transaction()
            for number in range(100):
                producer.produce(topic, value_of(transaction * 100 + number))
            producer.flush(60)
        for at, producer in enumerate(producers):
            if (transaction + at) % 4:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)
    wait_tiered(broker, topic, 1200)
    total = status(broker, topic)["end"]
    committed = sum(100 for transaction in range(12) for at in (0, 1) if (transaction + at) % 4)
    everything = read(broker, topic, committed)
    assert len(everything) == committed < total
    for place in (230, 450, 651, 1000):
        name, asked = fork(broker, topic, "--at", str(place))
        end = status(broker, name)["end"]
        assert end <= asked + 2  # a batch is not divided, and at most two transactions are ended
        produce(broker, name, 77_000, 10)
        own = read(broker, name, 10, first=end)
        assert own == [(end + number, value_of(77_000 + number)) for number in range(10)]
        surely = [each for each in everything if each[0] < place - 100]
        theirs = [each for each in read(broker, name, len(surely)) if each[0] < end]
        assert theirs == everything[: len(theirs)]
        assert theirs[-1][0] < place


def test_a_fork_of_what_is_not_in_the_store_is_refused(broker: HeadraceProcess, topic: str) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    end = status(broker, topic)["end"]
    late = refusal(broker, "topic", "fork", topic, f"{topic}-late", "--at", str(end))
    assert f", and not up to {end}" in late
    name, _ = fork(broker, topic, "--config", "retention.ms=60000000")
    assert "is a fork itself" in refusal(broker, "topic", "fork", name, f"{name}-again")
    with pytest.raises(KafkaException, match="says what the topic was made as"):
        alter(broker, name, headrace_tier_fork="")
    with pytest.raises(KafkaException, match="a fork reads its history in the object store"):
        alter(broker, name, remote_storage_enable="false", remote_log_delete_on_disable="true")


def test_tier_invariant_18_a_fork_that_is_deleted_takes_nothing_with_it(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 4000)
    wait_tiered(broker, topic, 2000)
    name, end = fork(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = TopicPartition(topic, 0, 1500)
    admin.delete_records([asked])[asked].result(60)
    assert read(broker, name, end) == [(number, value_of(number)) for number in range(end)]
    assert status(broker, topic)["log_start"] == 1500
    folder = objects_of(store, broker, name)[0].rpartition("/")[0]
    admin.delete_topics([name])[name].result(30)
    eventually(
        lambda: len([path for path in objects(store, broker) if folder in path]) == 1, 60, "it is gone"
    )
    assert read(broker, topic, 2500, first=1500) == [
        (number, value_of(number)) for number in range(1500, 4000)
    ]


def test_tier_invariant_12_what_a_broker_was_uploading_when_it_was_killed_is_aborted(
    broker: HeadraceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    at = broker.properties
    url, endpoint, region = bucket_of(broker)[::2]
    opened = open_bucket(at["headrace.tier.url"], endpoint=endpoint, region=region)

    def uploads() -> list[str]:
        found = opened.partial_uploads("", deadline_seconds=60)
        assert isinstance(found, list), url
        return [each.key for each in found]

    large = create_topic(broker, settings={"internal.segment.bytes": str(48 << 20)})

    def is_copied(first: int) -> bool:
        return bool(uploads()) or status(broker, large)["tiered_end"] > first

    count = 0
    while True:  # until it is killed in between
        produce(broker, large, count, 600, size=100_000)
        count += 600
        eventually(partial(is_copied, count - 600), 60, "a copy begins or has ended")
        if uploads():
            broker.kill()
            if uploads():
                break
            broker.start()
    (left,) = uploads()
    assert isinstance(opened.get(left, deadline_seconds=60), Absent)
    broker.start()
    eventually(lambda: left not in uploads(), 90, "it is aborted")
    wait_tiered(broker, large, 1)
    opened.close()
    assert [offset for offset, _ in read(broker, large, count)] == list(range(count))


def found_by_doctor(broker: HeadraceProcess) -> dict[str, str]:
    """The first finding of each check of the group."""
    _, said = headrace(broker, "doctor", "tier", "--json")
    return {each["check"]: each["what"] for each in reversed(json.loads(said)["findings"])}


def test_doctor_tells_of_a_store_that_fails_and_of_a_manifest_that_cannot_be_read(
    broker: HeadraceProcess, store: ObjectStore, topic: str
) -> None:
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    assert found_by_doctor(broker) == {}
    with silent(store):
        produce(broker, topic, 3000, 2000)
        eventually(lambda: "tier-store-failing" in found_by_doctor(broker), 60, "the store does not answer")
    eventually(lambda: found_by_doctor(broker) == {}, 60, "it answers again")
    (manifest,) = [path for path in objects_of(store, broker, topic) if path.endswith("/manifest")]
    broker.kill()
    with store.files().open_output_stream(manifest) as written:
        written.write(b"{}")
    broker.start()
    eventually(
        lambda: "tier-manifest-unreadable" in found_by_doctor(broker), 60, "the manifest is no manifest"
    )
    assert "it is not in the form of a manifest" in found_by_doctor(broker)["tier-manifest-unreadable"]


def test_the_settings_of_the_tier_are_applied_and_exported(
    broker: HeadraceProcess, topic: str, tmp_path: Path
) -> None:
    """With a fork beside it, whose origin is no setting."""
    file = tmp_path / "cluster.yaml"

    def apply(text: str, *options: str) -> tuple[int, str]:
        file.write_text(text)
        return headrace(broker, "apply", "-f", str(file), *options)

    made = f"{topic}-made"
    text = f"""
owns: {{topics: [{made}]}}
topics:
  {made}:
    partitions: 1
    settings: {{remote.storage.enable: true, local.retention.ms: 3600000, local.retention.bytes: 100000}}
"""
    assert apply(text, "--yes")[0] == 0
    assert apply(text, "--check")[0] == 0
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    fork(broker, topic)
    code, exported = headrace(broker, "export", "--topics", f"{topic}*")
    assert code == 0
    for setting in ("remote.storage.enable: true", "local.retention.ms: 3600000"):
        assert setting in exported
    assert "headrace.tier.fork" not in exported
    assert apply(exported, "--check")[0] == 0  # nothing is to be changed, and a fork stays one
    changed = text.replace("3600000", "7200000")
    assert apply(changed, "--check")[0] == 2
    assert apply(changed, "--yes")[0] == 0
    exported = headrace(broker, "export", "--topics", made)[1]
    assert "local.retention.ms: 7200000" in exported
    file.write_text(text.replace("remote.storage.enable: true, ", "remote.storage.enable: false, "))
    refused = refusal(broker, "apply", "-f", str(file), "--yes")
    assert "remote.log.delete.on.disable" in refused
