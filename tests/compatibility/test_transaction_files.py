"""Transactions on disk: Kafka's tool reads markers, aborted transactions and open ones as we write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from tests.apache_kafka import KafkaTools
from tests.compatibility.log_dump import complaints
from tests.unit.log.material import NOW, append, open_at, topic_config
from tests.unit.log.transactional_writes import end, write


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PartitionLog:
    """Committed, aborted over two segments, raised in epoch, and one that is open at the end."""
    config = topic_config(index_interval_bytes=100)
    log = open_at(OsDisk(), str(tmp_path_factory.mktemp("transactions")), config=config)
    append(log, b"plain")
    write(log, 5, 0, b"a", b"b")
    write(log, 6, 0, b"c")
    end(log, 5, commit=True, coordinator_epoch=8)
    write(log, 5, 2)
    log.roll(NOW)
    end(log, 5, commit=False, coordinator_epoch=9)
    end(log, 6, commit=False, epoch=1, coordinator_epoch=9, version=2)
    write(log, 6, 0, b"d", b"e", epoch=1)
    log.close()
    return log


def test_kafka_reads_every_file_without_complaint(log: PartitionLog, tools_431: KafkaTools) -> None:
    assert complaints(tools_431, Path(log.path).parent) == []


def test_kafka_reads_the_markers(log: PartitionLog, tools_431: KafkaTools) -> None:
    names = ",".join(str(path) for path in sorted(Path(log.path).glob("*.log")))
    printed = tools_431.run("dump-log", "--files", names, "--print-data-log").output
    markers = [line.split("endTxnMarker: ")[1] for line in printed.splitlines() if "endTxnMarker" in line]
    assert markers == [
        "COMMIT coordinatorEpoch: 8",
        "ABORT coordinatorEpoch: 9",
        "ABORT coordinatorEpoch: 9",
    ]


def test_kafka_reads_aborted_transactions(log: PartitionLog, tools_431: KafkaTools) -> None:
    (index,) = Path(log.path).glob("*.txnindex")
    printed = tools_431.run("dump-log", "--files", str(index)).output
    found = [line for line in printed.splitlines() if line.startswith("version: 0 ")]
    assert found == [
        "version: 0 producerId: 5 firstOffset: 5 lastOffset: 6 lastStableOffset: 3",
        "version: 0 producerId: 6 firstOffset: 3 lastOffset: 7 lastStableOffset: 8",
    ]


def test_kafka_reads_the_producers(log: PartitionLog, tools_431: KafkaTools) -> None:
    newest = sorted(Path(log.path).glob("*.snapshot"))[-1]
    printed = tools_431.run("dump-log", "--files", str(newest)).output
    found = [line for line in printed.splitlines() if line.startswith("producerId: ")]
    # One line for each batch that is known of a producer. Of several, Kafka keeps the last.
    last = {line.split()[1]: line for line in found}
    assert last.keys() == {"5", "6"}
    assert "producerEpoch: 0 coordinatorEpoch: 9 currentTxnFirstOffset: OptionalLong.empty" in last["5"]
    assert "lastSequence: 2 lastOffset: 5" in last["5"]
    assert "producerEpoch: 1 coordinatorEpoch: 9 currentTxnFirstOffset: OptionalLong[8]" in last["6"]
