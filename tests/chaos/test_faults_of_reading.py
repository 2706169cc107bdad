"""Damage in what consumers read, and in what nobody reads, by their numbers in the list of faults."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.conftest import FURTHER_FORM, MakeBed
from tests.chaos.test_faults_of_disks import ALL_ON_ONE, SMALL_SEGMENTS, elect_preferred
from tests.chaos.testbed import Testbed
from tests.chaos.workload import TRIED_AGAIN
from tests.cluster_process import eventually
from tests.integration.real_client import read, send_all

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its files in an old way
    from kafka import KafkaConsumer, TopicPartition

pytestmark = pytest.mark.timeout(240)
VALUES = [b"%d:" % number + b"x" * 1000 for number in range(3000)]
TOPIC = "read"


def fill(bed: Testbed) -> None:
    bed.cluster.create_topic(TOPIC, ALL_ON_ONE, SMALL_SEGMENTS)
    producing = {**TRIED_AGAIN, "batch.num.messages": "50", "linger.ms": "20"}
    send_all(bed.cluster.bootstrap, TOPIC, VALUES, settings=producing)
    bed.cluster.wait_in_sync(TOPIC)


def first_segment(bed: Testbed, broker: int) -> Path:
    return sorted(bed.partition_dir(broker, TOPIC).glob("*.log"))[0]


def damage(path: Path, content: bytes, *, cold: bool) -> None:
    """In the middle of a file, and of the records of a batch."""
    at = path.stat().st_size // 2
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        if cold:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_with_librdkafka(bed: Testbed) -> list[bytes | None]:
    return [message.value() for message in read(bed.cluster.bootstrap, TOPIC, len(VALUES))]


def read_with_kafka_python(bed: Testbed) -> list[bytes | None]:
    consumer = KafkaConsumer(bootstrap_servers=bed.cluster.bootstrap.split(","), check_crcs=False)
    partition = TopicPartition(TOPIC, 0)
    values: list[bytes | None] = []
    with closing(consumer):
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        deadline = time.monotonic() + 60
        while len(values) < len(VALUES) and time.monotonic() < deadline:
            for messages in consumer.poll(200).values():
                values += [message.value for message in messages]
    return values


Reading = Callable[[Testbed], list[bytes | None]]


@pytest.mark.parametrize(
    ("content", "cold", "reading"),
    [
        (bytes(512), True, read_with_librdkafka),
        (b"y", False, read_with_kafka_python),
        pytest.param(bytes(512), False, read_with_kafka_python, marks=FURTHER_FORM),
        pytest.param(b"y", True, read_with_librdkafka, marks=FURTHER_FORM),
    ],
    ids=["zeroed-cold", "flipped-warm", "zeroed-warm", "flipped-cold"],
)
def test_fault_33_damage_that_consumers_read_is_given_to_nobody(
    make_bed: MakeBed, content: bytes, cold: bool, reading: Reading
) -> None:
    """The damaged replica leads: whoever reads gets every record as it was written, from another one."""
    bed = make_bed()
    fill(bed)
    bed.cluster.terminate(1)
    bed.cluster.wait_ended(1)
    damage(first_segment(bed, 1), content, cold=cold)
    bed.cluster.restart(1)
    bed.cluster.wait_in_sync(TOPIC)
    elect_preferred(bed, TOPIC)
    eventually(lambda: bed.cluster.leader(TOPIC) == 1, 20, "the damaged replica leads")
    # Neither checks a checksum: what they are given they deliver.
    assert reading(bed) == VALUES
    eventually(lambda: bed.cluster.leader(TOPIC) != 1, 30, "the damaged replica leads no more")
    bed.cluster.wait_in_sync(TOPIC)
    assert first_segment(bed, 1).read_bytes() == first_segment(bed, 2).read_bytes(), "it is whole again"


@pytest.mark.parametrize("broker", [1, 3], ids=["leader", "follower"])
def test_fault_34_damage_that_nobody_reads_is_found_and_mended(make_bed: MakeBed, broker: int) -> None:
    """The scrub reads what nobody else does, of a leader and of a follower."""
    bed = make_bed(properties={"headrace.log.scrub.interval.ms": "500"})
    fill(bed)
    elect_preferred(bed, TOPIC)
    eventually(lambda: bed.cluster.leader(TOPIC) == 1, 20, "the first replica leads")
    whole = first_segment(bed, 2).read_bytes()
    damage(first_segment(bed, broker), bytes(512), cold=True)

    def is_mended() -> bool:
        asides = list(bed.log_dir(broker).glob(f"{TOPIC}-0.*-stray"))
        found = sorted(bed.log_dir(broker).glob(f"{TOPIC}-0/*.log"))
        return bool(asides) and bool(found) and found[0].read_bytes() == whole

    eventually(is_mended, 90, "the damage is found and mended")
    bed.cluster.wait_in_sync(TOPIC)
