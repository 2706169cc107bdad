"""Compacted logs: Kafka's own tool reads what the cleaner has written, in every codec and with tombstones."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaTools
from tests.broker_process import BrokerProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.conftest import StartBroker
from tests.compatibility.log_dump import complaints

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "index.interval.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
}
#: What the tool says of a gap. In a compacted log gaps are as they should be.
GAP = re.compile(r"Non-consecutive offsets in |^\s*\d+ is followed by \d+$")
SECONDS = 60.0
ROUNDS = 8
KEYS = 200


def fill(broker: BrokerProcess) -> None:
    client = ConfluentClient(broker.bootstrap)
    for codec in CODECS:
        topic = f"table-{codec}"
        client.create_topic(topic, configs=COMPACTED)
        for part in range(ROUNDS):
            filler = bytes(range(256)) * 8
            records = [
                NewRecord(None if i % 10 == part else b"%d %d" % (part, i) + filler, key=b"key %d" % i)
                for i in range(KEYS)
            ]
            client.produce(topic, records, compression=codec, idempotent=part % 2 == 0)


def clean_offsets(log_dir: Path) -> dict[str, int]:
    try:
        lines = (log_dir / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
    except FileNotFoundError:
        return {}
    return {row[0]: int(row[2]) for row in map(str.split, lines)}


@pytest.fixture(scope="module")
def stopped(new_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker that has cleaned its topics, uncompressed ones at least."""
    broker = new_broker(tmp_path_factory.mktemp("compacted"), {"log.cleaner.backoff.ms": "100"})
    with broker:
        fill(broker)
        deadline = time.monotonic() + SECONDS
        while clean_offsets(broker.log_dir).get("table-none", 0) < KEYS * 3:
            assert time.monotonic() < deadline, "nothing was cleaned"
            time.sleep(0.1)
        time.sleep(1.0)
    return broker.log_dir


def test_kafka_reads_what_was_compacted(stopped: Path, tools_431: KafkaTools) -> None:
    found = [line for line in complaints(tools_431, stopped) if not GAP.search(line.partition(": ")[2])]
    assert found == []


def test_kafka_finds_the_delete_horizon_of_tombstones(stopped: Path, tools_431: KafkaTools) -> None:
    first = sorted((stopped / "table-none-0").glob("*.log"))[0]
    printed = tools_431.run("dump-log", "--files", str(first)).output
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", printed), printed[:2000]
