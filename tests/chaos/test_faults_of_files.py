"""Files of a replica that vanish or change while its broker is down, by their numbers in the list of faults.

Each form of a fault has a topic of its own in one cluster. The replica is the preferred leader: it is given
every chance to lead, and to take the others with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints
from tests.chaos.conftest import FURTHER_FORM, MakeBed
from tests.chaos.test_faults_of_disks import elect_preferred
from tests.chaos.testbed import Testbed
from tests.chaos.workload import TRIED_AGAIN
from tests.cluster_process import eventually
from tests.integration.real_client import read, send_all

pytestmark = pytest.mark.timeout(240)
RECORDS = 20_000
#: Segments as small as Kafka allows. What is deleted is deleted at once.
CONFIGS = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "0"}
PROPERTIES = {
    "leader.imbalance.check.interval.seconds": "1",
    "log.retention.check.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
}
PRODUCING = {**TRIED_AGAIN, "batch.num.messages": "200", "linger.ms": "20"}
PREFERRED = 1
STOPS = pytest.mark.parametrize("how", ["clean", "killed"])
Strike = Callable[[Path, list[Path]], None]
"""Told the folder of a partition, and its segments in their order."""


def values_of(topic: str, count: int) -> list[bytes]:
    """A bit more than a kilobyte each: four thousand of them make five segments."""
    return [f"{topic}:{number:08d}:".encode() + b"A" * 1200 for number in range(count)]


class Replicas:
    """Topics with a replica on each of three brokers, and what was acknowledged of them."""

    def __init__(self, bed: Testbed, topics: list[str]) -> None:
        self.bed = bed
        self.sent = 0
        """Of each topic."""
        self.values = {topic: values_of(topic, RECORDS // len(topics)) for topic in topics}
        for topic in topics:
            bed.cluster.create_topic(topic, [[1, 2, 3]], CONFIGS)

    def send(self, begin: float = 0.0, end: float = 1.0) -> None:
        """These parts of all values."""
        self.sent = int(end * (RECORDS // len(self.values)))
        for topic, values in self.values.items():
            part = values[int(begin * len(values)) : int(end * len(values))]
            send_all(self.bed.cluster.bootstrap, topic, part, settings=PRODUCING)
        self.wait_in_sync()
        for topic in self.values:
            eventually(lambda name=topic: self._is_listed(name), 30, "its manifest lists what is sealed")  # type: ignore[misc]  # mypy cannot infer a lambda with defaults

    def _is_listed(self, topic: str) -> bool:
        try:
            lines = (self.folder(topic) / "headrace.manifest").read_text().splitlines()
        except FileNotFoundError:
            return False
        listed = sum(line.startswith("segment ") for line in lines) == len(self.segments(topic)) - 1
        return listed and self._is_checkpointed(topic)

    def _is_checkpointed(self, topic: str) -> bool:
        """A kill leaves nothing that knows of what came after the last checkpoint."""
        path = self.bed.log_dir(PREFERRED) / checkpoints.HIGH_WATERMARKS
        with suppress(FileNotFoundError):
            marks = checkpoints.parse_offsets(path.read_bytes())
            return marks.get(TopicPartition(topic, 0), 0) == self.sent
        return False

    def wait_in_sync(self) -> None:
        for topic in self.values:
            self.bed.cluster.wait_in_sync(topic)

    def stop_preferred(self, how: str) -> None:
        cluster = self.bed.cluster
        if how == "killed":
            cluster.kill(PREFERRED)
        else:
            cluster.terminate(PREFERRED)
            cluster.wait_ended(PREFERRED)
        for topic in self.values:
            self._wait_leader(topic, 2, 3)

    def _wait_leader(self, topic: str, *brokers: int) -> None:
        row = (topic, 0)
        eventually(
            lambda: self.bed.cluster.ask(2, topic).partitions[row].leader in brokers, 30, "it has a leader"
        )

    def folder(self, topic: str, number: int = PREFERRED) -> Path:
        return self.bed.partition_dir(number, topic)

    def segments(self, topic: str, number: int = PREFERRED) -> list[Path]:
        return sorted(self.folder(topic, number).glob("*.log"))

    def contents(self, topic: str, number: int) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.segments(topic, number)}

    def whole(self, topic: str, number: int) -> bytes:
        return b"".join(self.contents(topic, number).values())

    def strike(self, forms: Mapping[str, Strike], how: str) -> None:
        """With the preferred leader down. It comes back, leads again, and nothing is missing anywhere."""
        self.stop_preferred(how)
        good = {(topic, number): self.contents(topic, number) for topic in forms for number in (2, 3)}
        for topic, strike in forms.items():
            strike(self.folder(topic), self.segments(topic))
        self.bed.cluster.restart(PREFERRED)
        self.wait_in_sync()
        for topic, values in self.values.items():
            elect_preferred(self.bed, topic)
            self._wait_leader(topic, PREFERRED)
            values.append(b"one more")
            send_all(self.bed.cluster.bootstrap, topic, [b"one more"], settings=PRODUCING)
        self.wait_in_sync()
        for (topic, number), before in good.items():
            after = self.contents(topic, number)
            assert list(after) == list(before), f"broker {number} has lost files of {topic}"
            assert all(after[name].startswith(content) for name, content in before.items())
        self.read_all()
        for topic in forms:
            # Not file by file: where a follower begins a segment depends on how much each fetch has brought.
            assert self.whole(topic, PREFERRED) == self.whole(topic, 2), "it was fetched anew"
            assert self.set_aside(topic), "the rest was kept"

    def set_aside(self, topic: str) -> list[Path]:
        return list(self.bed.log_dir(PREFERRED).glob(f"{topic}-0.*-stray"))

    def read_all(self) -> None:
        for topic, values in self.values.items():
            found = [message.value() for message in read(self.bed.cluster.bootstrap, topic, len(values))]
            assert found == values, f"{topic}: {len(set(values) - set(found))} acknowledged records are lost"


def remove(*places: int) -> Strike:
    def strike(_: Path, segments: list[Path]) -> None:
        for place in places:
            segments[place].unlink()

    return strike


MISSING: dict[str, Strike] = {
    "first": remove(0),
    "middle": remove(2),
    "last": remove(-1),
    "several": remove(0, 1, 3),
    "all": remove(0, 1, 2, 3, 4),
}


@STOPS
def test_fault_30_a_segment_file_is_missing(make_bed: MakeBed, how: str) -> None:
    replicas = Replicas(make_bed(properties=PROPERTIES), list(MISSING))
    replicas.send()
    assert all(len(replicas.segments(topic)) == 5 for topic in MISSING)
    replicas.strike(MISSING, how)


def test_fault_30_without_a_good_replica_nothing_is_served_and_nothing_is_deleted(make_bed: MakeBed) -> None:
    """The others are gone. What is left of the last one must not become the log."""
    bed = make_bed(properties=PROPERTIES)
    replicas = Replicas(bed, ["alone"])
    replicas.send()
    for number in (2, 3):
        bed.cluster.kill(number)
    eventually(
        lambda: set(bed.cluster.ask(PREFERRED, "alone").partitions["alone", 0].isr) == {PREFERRED},
        60,
        "the others are out",
    )
    bed.cluster.kill(PREFERRED)
    replicas.segments("alone")[0].unlink()
    left = replicas.contents("alone", PREFERRED)
    bed.cluster.restart(PREFERRED)
    eventually(
        lambda: ("alone", 0) in bed.cluster.ask(PREFERRED, "alone").partitions, 30, "the topic is known"
    )
    assert replicas.contents("alone", PREFERRED) == left
    for number in (2, 3):
        bed.cluster.restart(number)
    replicas.wait_in_sync()
    replicas.read_all()


def cut(place: int, part: float) -> Strike:
    return lambda _, segments: os.truncate(segments[place], int(segments[place].stat().st_size * part))


def zero_the_end(_: Path, segments: list[Path]) -> None:
    with segments[1].open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(bytes(4096))


def swap_with_another(folder: Path, segments: list[Path]) -> None:
    """With the same segment of another topic."""
    shutil.copy(folder.with_name("emptied-0") / segments[1].name, segments[1])


CHANGED: dict[str, Strike] = {
    "cut": cut(1, 0.5),
    "emptied": cut(2, 0),
    "end-cut": cut(-1, 0.5),
    "zeroed": zero_the_end,
    "swapped": swap_with_another,
}


@pytest.mark.parametrize("how", ["clean", pytest.param("killed", marks=FURTHER_FORM)])
def test_fault_31_a_segment_file_is_another_than_it_was(make_bed: MakeBed, how: str) -> None:
    replicas = Replicas(make_bed(properties=PROPERTIES), list(CHANGED))
    replicas.send()
    replicas.strike(CHANGED, how)


@pytest.mark.parametrize("how", ["clean", pytest.param("killed", marks=FURTHER_FORM)])
def test_fault_31_an_older_copy_of_the_folder_comes_back(make_bed: MakeBed, tmp_path: Path, how: str) -> None:
    """It was made after a stop, when a third of the records was there."""
    bed = make_bed(properties=PROPERTIES)
    replicas = Replicas(bed, ["older"])
    replicas.send(end=1 / 3)
    replicas.stop_preferred("clean")
    shutil.copytree(replicas.folder("older"), tmp_path / "older")
    bed.cluster.restart(PREFERRED)
    replicas.send(begin=1 / 3)

    def put_back(folder: Path, _: list[Path]) -> None:
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "older", folder)

    replicas.strike({"older": put_back}, how)


def promise_more(folder: Path, _: list[Path]) -> None:
    """The recovery point is beyond the end of the files."""
    path = folder.parent / checkpoints.RECOVERY_POINTS
    points = checkpoints.parse_offsets(path.read_bytes())
    points[TopicPartition("ahead", 0)] += 1000
    path.write_bytes(checkpoints.format_offsets(points))


@pytest.mark.parametrize("how", ["clean", pytest.param("killed", marks=FURTHER_FORM)])
def test_fault_32_a_checkpoint_says_more_than_the_files_hold(make_bed: MakeBed, how: str) -> None:
    replicas = Replicas(make_bed(properties=PROPERTIES), ["ahead", "neighbour"])
    replicas.send()
    replicas.strike({"ahead": promise_more}, how)
    assert not replicas.set_aside("neighbour")


@pytest.mark.parametrize("how", ["killed", pytest.param("clean", marks=FURTHER_FORM)])
def test_fault_32_checkpoints_that_are_lost_are_made_again(make_bed: MakeBed, how: str) -> None:
    replicas = Replicas(make_bed(properties=PROPERTIES), ["kept"])
    replicas.send()
    replicas.stop_preferred(how)
    for path in replicas.bed.log_dir(PREFERRED).glob("*-checkpoint"):
        path.unlink()
    replicas.bed.cluster.restart(PREFERRED)
    replicas.wait_in_sync()
    assert not replicas.set_aside("kept")
    replicas.read_all()
