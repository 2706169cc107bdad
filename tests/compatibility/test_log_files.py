"""The files on disk: Kafka's own tool must accept ours, and we must accept Kafka's."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.apache_kafka import ApacheKafka, KafkaTools
from tests.broker_process import BROKER_ID, HEADRACE, BrokerProcess, HeadraceProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.conftest import StartBroker
from tests.compatibility.log_dump import METADATA_LOG, complaints, files_of

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
#: Small, so that segments roll and indexes get entries within a few records.
SMALL = {"segment.bytes": "1048576", "index.interval.bytes": "500"}


def fill(broker: BrokerProcess) -> None:
    """Every compression, several segments, several producers, a moved start, an empty partition."""
    client = ConfluentClient(broker.bootstrap)
    for codec in CODECS:
        client.create_topic(f"dump-{codec}", configs=SMALL)
        for part in range(4):
            records = [
                NewRecord(b"%d %d " % (part, i) + b"filler " * 60, key=b"%d" % i, headers=(("h", b"v"),))
                for i in range(150)
            ]
            client.produce(f"dump-{codec}", records, compression=codec, idempotent=part % 2 == 0)
    client.create_topic("dump-rolled", configs=SMALL)
    for _ in range(8):  # a roll may wait for a flush, and a segment then has a batch or two more
        client.produce("dump-rolled", [NewRecord(b"x" * 9000) for _ in range(80)], idempotent=True)
    client.delete_records("dump-rolled", 0, 130)
    client.create_topic("dump-empty", partitions=3)
    client.create_topic("dump-stamped", configs={"message.timestamp.type": "LogAppendTime"})
    client.produce("dump-stamped", [NewRecord(b"a"), NewRecord(b"b")])


@pytest.fixture(scope="module")
def stopped(new_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker that was filled, killed, filled again and stopped."""
    broker = new_broker(tmp_path_factory.mktemp("dumped"), {})
    with broker:
        fill(broker)
        broker.kill()
        broker.start()
        ConfluentClient(broker.bootstrap).produce("dump-none", [NewRecord(b"after")], idempotent=True)
    return broker.log_dir


def test_kafka_reads_every_file_without_complaint(stopped: Path, tools_431: KafkaTools) -> None:
    suffixes = {path.suffix for path in files_of(stopped)}
    assert suffixes >= {".log", ".index", ".timeindex", ".snapshot"}
    assert len(list((stopped / "dump-rolled-0").glob("*.log"))) >= 2
    assert complaints(tools_431, stopped) == []


def test_kafka_decodes_the_metadata_log(stopped: Path, tools_431: KafkaTools) -> None:
    (newest,) = sorted((stopped / METADATA_LOG).glob("*.log"))[-1:]
    printed = tools_431.run("dump-log", "--cluster-metadata-decoder", "--files", str(newest)).output
    payloads = [
        json.loads(line.split("payload: ", 1)[1]) for line in printed.splitlines() if "payload: {" in line
    ]
    kinds = {payload["type"] for payload in payloads}
    assert kinds >= {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"}
    topics = {payload["data"]["name"] for payload in payloads if payload["type"] == "TOPIC_RECORD"}
    assert topics >= {f"dump-{codec}" for codec in CODECS}


@pytest.mark.parametrize(
    ("suffix", "position"),
    [
        (".log", 40),  # inside the first header: the checksum no longer fits
        (".log", 70),  # inside the records
        (".index", 5),  # an entry that points to a wrong place
        (".timeindex", 6),  # an entry with a wrong timestamp
        (".snapshot", 8),  # the checksum of the producers
    ],
)
def test_the_judge_can_say_no(
    stopped: Path, tools_431: KafkaTools, tmp_path: Path, suffix: str, position: int
) -> None:
    """One flipped byte is found: otherwise silence would prove nothing."""
    shutil.copytree(stopped / "dump-none-0", tmp_path / "dump-none-0")
    damaged = next(
        path
        for path in sorted((tmp_path / "dump-none-0").glob(f"*{suffix}"))
        if path.stat().st_size > position
    )
    data = bytearray(damaged.read_bytes())
    data[position] ^= 0x15
    damaged.write_bytes(data)
    assert complaints(tools_431, tmp_path) != []


@pytest.mark.timeout(180)
def test_partitions_written_by_kafka_are_adopted(tmp_path: Path, tools_431: KafkaTools) -> None:
    topics = [*(f"dump-{codec}" for codec in CODECS), "dump-rolled", "dump-stamped"]
    with ApacheKafka(tmp_path / "kafka") as kafka:
        fill(kafka)
        expected = {topic: read_all(kafka, topic) for topic in topics}

    headrace = HeadraceProcess(tmp_path / "headrace")
    command = [str(HEADRACE), "log", "adopt", str(kafka.log_dir), "--to", str(headrace.log_dir)]
    done = subprocess.run(
        [*command, "--broker-id", str(BROKER_ID)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    with headrace:
        assert {topic: read_all(headrace, topic) for topic in topics} == expected
        client = ConfluentClient(headrace.bootstrap)
        assert len(client.describe("dump-empty")["partitions"]) == 3
        # It is an ordinary partition now: what comes next follows on what Kafka wrote.
        last = expected["dump-zstd"][-1][0]
        assert client.produce("dump-zstd", [NewRecord(b"next")], idempotent=True) == [last + 1]
    assert complaints(tools_431, headrace.log_dir) == []


def read_all(broker: BrokerProcess, topic: str) -> list[tuple[int, int, bytes | None, bytes | None, object]]:
    client = ConfluentClient(broker.bootstrap)
    earliest, latest = (client.list_offsets(topic, 0, at)["offset"] for at in ("earliest", "latest"))
    found = client.consume(topic, latest - earliest)
    assert [record.offset for record in found] == list(range(earliest, latest))
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found]
