"""Damage in what consumers read, and in what nobody reads, by their numbers in the list of faults."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
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
    return sorted((bed.log_dir(broker) / f"{TOPIC}-0").glob("*.log"))[0]


def is_whole(bed: Testbed, broker: int, content: bytes) -> bool:
    """Its first segment. There is none for a moment if all of it is fetched anew."""
    try:
        return first_segment(bed, broker).read_bytes() == content
    except (IndexError, FileNotFoundError):
        return False


def wait_sealed(bed: Testbed, broker: int) -> None:
    """Until the first segment is synced and listed: what is not has nothing to be compared with."""
    manifest = bed.partition_dir(broker, TOPIC) / "headrace.manifest"
    eventually(lambda: manifest.exists() and b"\nsegment 0 " in manifest.read_bytes(), 90, "it is sealed")


def asides(bed: Testbed, broker: int) -> list[Path]:
    return list(bed.log_dir(broker).glob(f"{TOPIC}-0.*-stray"))


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
    """The damaged replica leads: whoever reads gets every record as it was written, once it is mended."""
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
    whole = first_segment(bed, 2).read_bytes()
    eventually(lambda: is_whole(bed, 1, whole), 30, "it is whole again")
    bed.cluster.wait_in_sync(TOPIC)
    assert asides(bed, 1) == [], "the rest of it is where it was"


@pytest.mark.parametrize("broker", [1, 3], ids=["leader", "follower"])
def test_fault_34_damage_that_nobody_reads_is_found_and_mended(make_bed: MakeBed, broker: int) -> None:
    """The scrub reads what nobody else does, of a leader and of a follower."""
    bed = make_bed(properties={"headrace.log.scrub.interval.ms": "500"})
    fill(bed)
    elect_preferred(bed, TOPIC)
    eventually(lambda: bed.cluster.leader(TOPIC) == 1, 20, "the first replica leads")
    wait_sealed(bed, broker)
    whole = first_segment(bed, 2).read_bytes()
    damage(first_segment(bed, broker), bytes(512), cold=True)
    eventually(lambda: is_whole(bed, broker, whole), 90, "it is found and mended")
    bed.cluster.wait_in_sync(TOPIC)
    assert asides(bed, broker) == [], "nothing else was fetched"
    assert bed.cluster.leader(TOPIC) == 1, "a leader that mends itself leads on"


def test_fault_34_replicas_with_the_same_damage_stay_until_a_whole_one_comes_back(
    make_bed: MakeBed,
) -> None:
    """Both in sync, each took the other for whole, and both gave themselves up: nobody led."""
    bed = make_bed(properties={"headrace.log.scrub.interval.ms": "500"})
    fill(bed)
    for broker in (1, 2):
        wait_sealed(bed, broker)
    elect_preferred(bed, TOPIC)
    eventually(lambda: bed.cluster.leader(TOPIC) == 1, 20, "the first replica leads")
    whole = first_segment(bed, 3).read_bytes()
    bed.cluster.terminate(3)
    bed.cluster.wait_ended(3)
    more = [b"more"] * 100
    send_all(bed.cluster.bootstrap, TOPIC, more, settings=TRIED_AGAIN)
    for broker in (1, 2):
        damage(first_segment(bed, broker), bytes(512), cold=True)

    def status() -> str:
        return CliRunner().invoke(cli, ["cluster", "status", "-b", bed.cluster.bootstrap]).output

    eventually(lambda: all(f"broker {each}: {TOPIC}-0 offsets" in status() for each in (1, 2)), 60, "told")
    time.sleep(10)
    told = status()
    assert told.startswith("unreadable"), told
    assert bed.cluster.leader(TOPIC) == 1
    send_all(bed.cluster.bootstrap, TOPIC, more, settings=TRIED_AGAIN)
    bed.cluster.restart(3)
    eventually(lambda: all(is_whole(bed, each, whole) for each in (1, 2)), 90, "both are mended")
    bed.cluster.wait_in_sync(TOPIC)
    assert asides(bed, 1) == asides(bed, 2) == []
    values = [message.value() for message in read(bed.cluster.bootstrap, TOPIC, len(VALUES) + 200)]
    assert values == VALUES + more + more


def test_fault_34_what_cannot_be_mended_alone_is_fetched_anew(make_bed: MakeBed) -> None:
    """A file that is gone has no place to be mended in."""
    bed = make_bed(properties={"headrace.log.scrub.interval.ms": "500"})
    fill(bed)
    path = first_segment(bed, 3)
    whole = path.read_bytes()
    path.unlink()

    def is_back() -> bool:
        return bool(asides(bed, 3)) and path.exists() and path.read_bytes() == whole

    eventually(is_back, 90, "the replica is fetched anew")
    bed.cluster.wait_in_sync(TOPIC)
