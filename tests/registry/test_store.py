"""What is kept and how: restarts, several registries over one topic, topics of another maker."""

from __future__ import annotations

import concurrent.futures
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import HEADRACE, BrokerProcess, HeadraceProcess
from tests.registry.registry_process import RegistryProcess

_PUT, _DELETE = "PUT", "DELETE"


def _record(number: int, fields: int = 1) -> dict[str, Any]:
    return {
        "type": "record",
        "name": f"R{number}",
        "fields": [{"name": f"f{at}", "type": "int", "default": at} for at in range(fields)],
    }


def _records(bootstrap: str, topic: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """All of the topic, as another client reads it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        partition = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        consumer.assign([partition])
        found: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        while len(found) < end:
            # It waits for the whole time unless it gets as many as it was asked for.
            for message in consumer.consume(end - len(found), timeout=30):
                assert message.error() is None
                value = message.value()
                found.append((json.loads(message.key() or b""), None if value is None else json.loads(value)))
        return found
    finally:
        consumer.close()


def _summary(registry: RegistryProcess) -> object:
    """All that a client can ask for."""
    subjects = registry.get("/subjects?deleted=true").body
    return (
        registry.get("/schemas?deleted=true").body,
        registry.get("/subjects").body,
        registry.get("/config").body,
        registry.get("/mode").body,
        [registry.get(f"/config/{subject}").body for subject in subjects],
        [registry.get(f"/mode/{subject}").body for subject in subjects],
    )


def test_a_restart_keeps_everything(
    broker: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    with RegistryProcess(tmp_path / "first", broker.bootstrap, topic) as registry:
        for number in range(3):
            assert registry.register(f"s{number}", _record(number)).status == 200
        registry.register("s0", _record(0, 2))
        registry.register("p", 'syntax = "proto3"; message M { int32 a = 1; }', schemaType="PROTOBUF")
        registry.register("j", {"type": "object"}, schemaType="JSON")
        registry.ask(_PUT, "/config", {"compatibility": "FULL_TRANSITIVE"})
        registry.ask(_PUT, "/config/s1", {"compatibility": "NONE"})
        registry.ask(_PUT, "/mode/s2", {"mode": "READONLY"})
        registry.ask(_DELETE, "/subjects/s0/versions/1")
        registry.ask(_DELETE, "/subjects/j")
        registry.register("gone", _record(9))
        registry.ask(_DELETE, "/subjects/gone")
        registry.ask(_DELETE, "/subjects/gone?permanent=true")
        before = _summary(registry)
        highest = max(entry["id"] for entry in registry.get("/schemas?deleted=true").body)
        registry.kill()
    with RegistryProcess(tmp_path / "second", broker.bootstrap, topic) as registry:
        assert _summary(registry) == before
        # An id that was given out and deleted for good is not given to another schema.
        assert registry.register("new", _record(10)).body["id"] == highest + 2
        assert registry.stop() == 0


def test_the_topic_is_as_confluent_writes_it(
    broker: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    with RegistryProcess(tmp_path, broker.bootstrap, topic) as registry:
        registry.register("s", '"int"')
        registry.register("p", 'syntax = "proto3"; message M { }', schemaType="PROTOBUF")
        registry.ask(_PUT, "/config/s", {"compatibility": "NONE"})
        registry.ask(_PUT, "/mode", {"mode": "READWRITE"})
        registry.ask(_DELETE, "/subjects/s/versions/1")
        registry.ask(_DELETE, "/subjects/p")
    written = [entry for entry in _records(broker.bootstrap, topic) if entry[0]["keytype"] != "NOOP"]
    schema = {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
    value = {"subject": "s", "version": 1, "id": 1, "schema": '"int"', "deleted": False}
    assert written == [
        (schema, value),
        (
            {"keytype": "SCHEMA", "subject": "p", "version": 1, "magic": 1},
            {
                "subject": "p",
                "version": 1,
                "id": 2,
                "schemaType": "PROTOBUF",
                "schema": 'syntax = "proto3"; message M { }',
                "deleted": False,
            },
        ),
        ({"keytype": "CONFIG", "subject": "s", "magic": 0}, {"subject": "s", "compatibilityLevel": "NONE"}),
        ({"keytype": "MODE", "magic": 0}, {"mode": "READWRITE"}),
        (schema, {**value, "deleted": True}),
        ({"keytype": "CONFIG", "subject": "s", "magic": 0}, None),
        ({"keytype": "DELETE_SUBJECT", "subject": "p", "magic": 0}, {"subject": "p", "version": 1}),
    ]


_CONFLUENT = [
    ('{"keytype":"NOOP","magic":0}', None),
    (
        '{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
        '{"subject":"orders-value","version":1,"id":1,"md5":"x","schema":"{\\"type\\":\\"record\\",\\"name\\":'
        '\\"O\\",\\"fields\\":[{\\"name\\":\\"a\\",\\"type\\":\\"int\\"}]}","deleted":false}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"gone-value","version":1,"magic":1}',
        '{"subject":"gone-value","version":1,"id":2,"schema":"\\"string\\"","deleted":false}',
    ),
    ('{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}', '{"subject":"gone-value","version":1}'),
    (
        '{"keytype":"SCHEMA","subject":"p-value","version":1,"magic":1}',
        '{"subject":"p-value","version":1,"id":3,"references":[],"schemaType":"PROTOBUF","schema":'
        '"syntax = \\"proto3\\";\\n\\nmessage P {\\n  int32 a = 1;\\n}\\n","deleted":false}',
    ),
    ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"FULL","alias":null}'),
    ('{"keytype":"SOMETHING_NEW","magic":7}', '{"a":1}'),
    ("not json", "at all"),
]


def test_a_topic_of_confluents_is_taken_over(
    broker: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])[topic].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in _CONFLUENT:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0
    with RegistryProcess(tmp_path, broker.bootstrap, topic) as registry:
        assert registry.get("/subjects").body == ["orders-value", "p-value"]
        assert registry.get("/subjects?deleted=true").body == ["gone-value", "orders-value", "p-value"]
        assert registry.get("/config").body == {"compatibilityLevel": "FULL"}
        # The same schema in another spelling is the same schema.
        spelled = {"name": "O", "type": "record", "fields": [{"type": "int", "name": "a"}]}
        assert registry.register("orders-value", spelled).body["id"] == 1
        proto = 'syntax="proto3"; message P { int32 a=1; } // the same'
        assert registry.register("p-value", proto, schemaType="PROTOBUF").body["id"] == 3
        assert registry.register("new", '"long"').body["id"] == 4
        assert "cannot be read" in registry.errors()


def test_two_registries_write_in_turns(
    broker: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    """No id twice, no version twice, nothing lost, however they take turns."""
    topic = new_name()
    with (
        RegistryProcess(tmp_path / "a", broker.bootstrap, topic) as first,
        RegistryProcess(tmp_path / "b", broker.bootstrap, topic) as second,
    ):

        def grow(job: tuple[RegistryProcess, int]) -> tuple[int, int]:
            registry, fields = job
            answer = registry.register("shared", _record(0, fields))
            assert answer.status == 200, answer.body
            return answer.body["version"], answer.body["id"]

        jobs = [((first, second)[at % 2], at + 1) for at in range(24)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            made = list(pool.map(grow, jobs))
        assert sorted(made) == [(at + 1, at + 1) for at in range(24)]
        _until(lambda: _summary(first) == _summary(second))
    with RegistryProcess(tmp_path / "c", broker.bootstrap, topic) as third:
        assert third.get("/subjects/shared/versions").body == list(range(1, 25))


def test_a_writer_that_slept_does_not_overwrite(
    headrace: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    with (
        RegistryProcess(tmp_path / "a", headrace.bootstrap, topic) as sleeper,
        RegistryProcess(tmp_path / "b", headrace.bootstrap, topic) as other,
    ):
        assert sleeper.register("s", _record(0)).body["version"] == 1
        sleeper.signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(sleeper.register, "s", _record(0, 3))
            assert other.register("s", _record(0, 2)).body["version"] == 2
            sleeper.signal(signal.SIGCONT)
            assert late.result(60).body["version"] == 3
        assert other.register("s", _record(0, 4)).body["version"] == 4


def test_a_broker_that_is_away_is_waited_for(tmp_path: Path) -> None:
    with (
        HeadraceProcess(tmp_path / "broker", {}) as broker,
        RegistryProcess(tmp_path / "registry", broker.bootstrap) as registry,
    ):
        assert registry.register("s", _record(0)).status == 200
        broker.kill()
        assert registry.get("/subjects").body == ["s"]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(registry.register, "s", _record(0, 2))
            time.sleep(1)
            broker.start()
            assert late.result(60).body["version"] == 2


def test_topics_that_are_no_registrys(
    headrace: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    admin = AdminClient({"bootstrap.servers": headrace.bootstrap})
    for partitions, policy, reason in ((1, "delete", "cleanup.policy"), (2, "compact", "partitions")):
        topic = new_name()
        made = admin.create_topics([NewTopic(topic, partitions, 1, config={"cleanup.policy": policy})])
        made[topic].result(30)
        with pytest.raises(RuntimeError, match=reason):
            RegistryProcess(tmp_path / topic, headrace.bootstrap, topic).start()


def test_a_topic_that_is_deleted_ends_the_registry(
    headrace: BrokerProcess, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    """What it knows is not what is stored any more, and it must not go on as if it were."""
    topic = new_name()
    registry = RegistryProcess(tmp_path, headrace.bootstrap, topic).start()
    registry.register("s", _record(0))
    admin = AdminClient({"bootstrap.servers": headrace.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    assert registry.wait(30) == 1
    assert topic in registry.errors()
    assert "Traceback" not in registry.errors()


def test_nobody_listens(tmp_path: Path) -> None:
    command = [str(HEADRACE), "registry", "-b", "127.0.0.1:1", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "nothing listens at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
