"""A broker with a bucket, and what tests ask of the two."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from uuid import uuid4

from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from pyarrow.fs import FileSelector

from headrace.cli.main import cli
from tests.broker_process import HeadraceProcess
from tests.cluster.tiered_store import ENVIRONMENT
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore

TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "50000",
    "local.retention.bytes": "100000",
}


def create_topic(broker: HeadraceProcess, settings: Mapping[str, str] = TIERED) -> str:
    """One that is tiered."""
    name = f"tiered-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config={**TIERED, **settings})])[name].result(30)
    return name


def value_of(number: int) -> bytes:
    return b"%08d" % number * 12


def produce(
    broker: HeadraceProcess, topic: str, first: int, count: int, begin_ms: int = 0, size: int = 0
) -> None:
    """`size`: of records whose values nobody compares."""
    batch = max(5000, 2 * size)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "batch.size": batch})
    for number in range(first, first + count):
        value = b"x" * size or value_of(number)
        producer.produce(topic, value, timestamp=begin_ms + number if begin_ms else 0)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(
    broker: HeadraceProcess, topic: str, count: int, *, first: int = 0, level: str = "read_committed"
) -> list[tuple[int, bytes]]:
    """(offset, value) of so many records. An offset that is out of range is an error."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid4().hex,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "isolation.level": level,
        }
    )
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[tuple[int, bytes]] = []
    until = time.monotonic() + 60
    try:
        while len(found) < count and time.monotonic() < until:
            for message in consumer.consume(500, 0.5):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                offset, value = message.offset(), message.value()
                assert offset is not None
                assert value is not None
                found.append((offset, value))
    finally:
        consumer.close()
    return found


def local_start(broker: HeadraceProcess, topic: str) -> int:
    """By what is on the disk."""
    return min(int(path.stem) for path in (broker.log_dir / f"{topic}-0").glob("*.log"))


def wait_tiered(broker: HeadraceProcess, topic: str, at_least: int) -> None:
    eventually(
        lambda: local_start(broker, topic) >= at_least, 60, f"{topic} begins at {at_least} or later here"
    )


def status(broker: HeadraceProcess, topic: str) -> dict[str, int]:
    command = ["tier", "status", topic, "--bootstrap", broker.bootstrap, "--json"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)  # where a broker is slow, it says beside it that it waits
    return row  # type: ignore[no-any-return]  # as the command writes it


def objects(store: ObjectStore, broker: HeadraceProcess) -> list[str]:
    prefix = broker.properties["headrace.tier.url"].removeprefix("s3://")
    found = store.files().get_file_info(FileSelector(prefix, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.is_file]


def bases(paths: list[str]) -> list[int]:
    return [int(path.rpartition("/")[2][:20]) for path in paths if path.endswith(".log")]


def alter(broker: HeadraceProcess, topic: str, **settings: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def objects_of(store: ObjectStore, broker: HeadraceProcess, topic: str) -> list[str]:
    """By the id of the topic, which is in their keys."""
    line = (broker.log_dir / f"{topic}-0" / "partition.metadata").read_text().split("topic_id: ")[1]
    return [path for path in objects(store, broker) if f"/{line.split()[0]}/" in path]


def headrace(broker: HeadraceProcess, *arguments: str) -> tuple[int, str]:
    """Exit code, and what it printed."""
    command = [*arguments, "--bootstrap", broker.bootstrap]
    done = CliRunner(env=ENVIRONMENT).invoke(cli, command)
    return done.exit_code, done.stdout


def bucket_of(broker: HeadraceProcess) -> tuple[str, ...]:
    """The arguments of a command that looks into the bucket."""
    at = broker.properties
    return (
        at["headrace.tier.url"],
        *("--endpoint", at["headrace.tier.endpoint"], "--region", at["headrace.tier.region"]),
    )


def refusal(broker: HeadraceProcess, *arguments: str) -> str:
    """What a command says that fails."""
    done = CliRunner(env=ENVIRONMENT).invoke(cli, [*arguments, "--bootstrap", broker.bootstrap])
    assert done.exit_code == 1, done.output
    return done.stderr
