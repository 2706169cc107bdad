"""A log whose files are not all that it claims to be is not believed, and its files stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.core.errors import CorruptLog
from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.log.wholeness import ALL_ON, Wholeness
from headrace.protocol.records import encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, append, read_records, records, topic_config

CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)
FOLDER = f"/data/{PARTITION}"
RECORDS = 37


class Host:
    """One log directory through several lives of its process, on a host that stays up."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.manager = self.start()
        self.log = self.manager.create(PARTITION, UUID(int=5), NOW)

    def start(self, wholeness: Wholeness = ALL_ON, *, stayed_up: bool = True) -> LogManager:
        self.manager = LogManager(
            self.disk,
            ["/data"],
            DirectoryIdentity("c", 1),
            lambda _: CONFIG,
            new_uuid=lambda: UUID(int=9),
            threads_per_directory=1,
            wholeness=wholeness,
        )
        self.manager.open_all(NOW, host_stayed_up=lambda _: stayed_up)
        if PARTITION in self.manager.logs:
            self.log = self.manager.logs[PARTITION]
        return self.manager

    def fill(self, count: int = RECORDS) -> PartitionLog:
        for number in range(count):
            append(self.log, b"%02d" % number, timestamp=NOW + number)
        return self.log

    def checkpoint(self, high_watermark: int | None = None) -> None:
        mark = self.log.end_offset if high_watermark is None else high_watermark
        for job in self.manager.take_checkpoint({PARTITION: mark}):
            job.run()
            job.done()

    def stop(self, how: str) -> None:
        self.checkpoint()
        if how == "clean":
            self.manager.shut_down(1, {PARTITION: self.log.end_offset})
        else:
            self.manager.release()
            self.disk.kill()

    def logs(self) -> list[str]:
        return [path for path in self.disk.files(FOLDER) if path.endswith(files.LOG)]

    def contents(self) -> dict[str, bytes]:
        return {path: files.read_all(self.disk, path) for path in self.logs()}

    def why_quarantined(self) -> str:
        assert PARTITION not in self.manager.logs
        return str(self.manager.quarantined[PARTITION])


@pytest.fixture
def host() -> Host:
    return Host()


STOPS = pytest.mark.parametrize("how", ["clean", "killed"])
MISSING: dict[str, Callable[[list[str]], list[str]]] = {
    "first": lambda paths: paths[:1],
    "middle": lambda paths: paths[2:3],
    "last": lambda paths: paths[-1:],
    "the last two": lambda paths: paths[-2:],
    "several": lambda paths: [paths[0], paths[3], paths[4]],
    "all but the last": lambda paths: paths[:-1],
    "all": lambda paths: paths,
}


@STOPS
@pytest.mark.parametrize("which", MISSING)
def test_a_missing_segment_file_is_noticed_and_nothing_else_is_touched(
    host: Host, how: str, which: str
) -> None:
    host.fill()
    host.log.flush()
    host.stop(how)
    paths = host.logs()
    assert len(paths) > 6
    for path in MISSING[which](paths):
        host.disk.remove(path)
    before = host.contents()
    host.start()
    assert host.why_quarantined()
    assert host.contents() == before


@pytest.mark.parametrize("which", MISSING)
def test_also_where_nothing_was_synced_but_the_host_stayed_up(host: Host, which: str) -> None:
    host.fill()
    host.stop("killed")
    for path in MISSING[which](host.logs()):
        host.disk.remove(path)
    before = host.contents()
    host.start()
    assert host.why_quarantined()
    assert host.contents() == before


@STOPS
@pytest.mark.parametrize("place", [0, 2, -1])
@pytest.mark.parametrize("size", ["half", "empty", "a batch less"])
def test_a_file_that_was_cut_is_noticed(host: Host, how: str, place: int, size: str) -> None:
    host.fill()
    append(host.log, b"one more, in the active segment")
    host.log.flush()
    batch = host.log.segments[0].size // host.log.segments[1].base_offset
    host.stop(how)
    path = host.logs()[place]
    whole = host.disk.size(path)
    left = {"half": whole // 2, "empty": 0, "a batch less": whole - batch}[size]
    host.disk.open(path).truncate(max(left, 0))
    before = host.contents()
    host.start()
    assert host.why_quarantined()
    assert host.contents() == before


@STOPS
def test_neighbours_that_were_both_cut_are_noticed(host: Host, how: str) -> None:
    """The second is too short to say where it begins."""
    host.fill()
    host.log.flush()
    batch = host.log.segments[0].size // host.log.segments[1].base_offset
    host.stop(how)
    first, second = host.logs()[1:3]
    host.disk.open(first).truncate(host.disk.size(first) - batch)
    host.disk.open(second).truncate(25)
    host.start()
    assert host.why_quarantined()


def test_a_torn_last_batch_of_a_killed_process_is_cut_off(host: Host) -> None:
    """Half of a write is what a kill may leave: it was never acknowledged."""
    host.fill()
    host.checkpoint(high_watermark=RECORDS - 1)
    host.manager.release()
    host.disk.kill()
    path = host.logs()[-1]
    host.disk.open(path).truncate(host.disk.size(path) - 1)
    host.start()
    assert host.log.end_offset == RECORDS - 1


def test_a_high_watermark_beyond_the_end_is_a_loss_only_where_nothing_can_be_lost(host: Host) -> None:
    host.fill()
    host.stop("killed")
    path = host.logs()[-1]
    host.disk.open(path).truncate(host.disk.size(path) - 1)
    host.start(stayed_up=False)
    assert host.log.end_offset == RECORDS - 1, "the power may have taken what was not synced"


def test_the_high_watermark_is_lowered_with_the_log(host: Host) -> None:
    host.fill()
    host.checkpoint()
    host.log.truncate_to(12)
    host.manager.release()
    host.disk.kill()
    host.start()
    assert host.log.end_offset == 12


def test_a_ticket_from_before_a_truncation_does_not_raise_the_high_watermark_again(host: Host) -> None:
    host.fill()
    jobs = host.manager.take_checkpoint({PARTITION: RECORDS})
    host.log.truncate_to(12)
    for job in jobs:
        job.run()
    host.manager.release()
    host.disk.kill()
    host.start()
    assert host.log.end_offset == 12


@STOPS
def test_a_recovery_point_that_is_lost_is_no_damage(host: Host, how: str) -> None:
    host.fill()
    host.log.flush()
    host.stop(how)
    host.disk.remove(f"/data/{checkpoints.RECOVERY_POINTS}")
    host.start()
    assert host.log.end_offset == RECORDS
    assert len(read_records(host.log)) == RECORDS


@STOPS
def test_an_older_copy_of_the_folder_is_not_the_log(host: Host, how: str) -> None:
    host.fill(15)
    host.log.flush()
    older = {path: files.read_all(host.disk, path) for path in host.disk.files(FOLDER)}
    host.fill(15)
    host.log.flush()
    host.stop(how)
    for path in host.disk.files(FOLDER):
        host.disk.remove(path)
    for path, content in older.items():
        host.disk.open(path, create=True).pwrite(content, 0)
    host.start()
    assert host.why_quarantined()


@STOPS
def test_a_log_whose_beginning_was_deleted_is_whole(host: Host, how: str) -> None:
    host.fill()
    host.log.delete_records_before(13)
    host.log.enforce_retention(NOW, RECORDS)
    host.log.folder.delete_expired_files(NOW + 10**9)
    start = host.log.log_start_offset
    host.stop(how)
    host.start()
    assert (host.log.log_start_offset, host.log.end_offset) == (start, RECORDS)


@STOPS
@pytest.mark.parametrize("harm", ["emptied", "missing", "flipped"])
def test_what_lies_before_the_log_start_may_be_damaged(host: Host, how: str, harm: str) -> None:
    """Records were deleted, and the stop came before their files went."""
    host.fill()
    host.log.flush()
    paths = host.logs()
    starts_in = host.log.segments[3]
    host.log.raise_log_start(starts_in.base_offset + 1)
    host.stop(how)
    if harm == "emptied":
        host.disk.put(paths[1], b"")
    elif harm == "missing":
        host.disk.remove(paths[1])
    else:
        host.disk.flip(paths[1], 8 * 20)
    host.start()
    assert host.manager.quarantined == {}
    assert host.log.log_start_offset == starts_in.base_offset + 1
    assert [record.value for record in read_records(host.log)] == [
        b"%02d" % number for number in range(starts_in.base_offset + 1, RECORDS)
    ]
    assert host.logs() == paths[3:], "the deletion is finished"


@STOPS
def test_the_segment_that_the_log_starts_in_may_not(host: Host, how: str) -> None:
    host.fill()
    host.log.flush()
    paths = host.logs()
    host.log.raise_log_start(host.log.segments[3].base_offset + 1)
    host.stop(how)
    host.disk.put(paths[3], b"")
    host.disk.put(paths[1], b"")
    before = host.contents()
    host.start()
    assert "had" in host.why_quarantined()
    assert host.contents() == before, "nothing is touched"


def test_a_log_that_goes_on_elsewhere_is_whole(host: Host) -> None:
    host.fill()
    host.log.flush()
    host.checkpoint()
    host.log.truncate_fully_and_start_at(500)
    host.manager.release()
    host.disk.kill()
    host.start()
    assert host.log.end_offset == 500


def test_gaps_that_kafka_has_left_are_no_damage() -> None:
    """Its cleaner may take the last batch of a segment. The log was adopted by an earlier release."""
    disk = SimulatedDisk()
    other = TopicPartition("adopted", 0)
    disk.make_dirs(f"/data/{other}")
    first = encode_batch(records(b"a"), base_offset=3, leader_epoch=1)
    second = encode_batch(records(b"b"), base_offset=20, leader_epoch=1)
    for base, batch in ((0, first), (20, second)):
        disk.open(f"/data/{other}/{files.numbered(base)}.log", create=True).pwrite(bytes(batch), 0)
    manager = LogManager(
        disk, ["/data"], DirectoryIdentity("c", 1), lambda _: CONFIG, new_uuid=lambda: UUID(int=9)
    )
    saved = checkpoints.format_offsets({other: 21})
    files.replace(disk, f"/data/{checkpoints.RECOVERY_POINTS}", saved, sync=True)
    manager.open_all(NOW)
    assert [record.offset for record in read_records(manager.logs[other])] == [3, 20]


@pytest.mark.parametrize(
    ("switch", "which"), [("first_segment", "first"), ("gaps", "middle"), ("checkpoint_ahead", "last")]
)
def test_each_check_has_a_switch_whose_absence_is_noticed(switch: str, which: str) -> None:
    """With that check off, and no manifest, a log with a hole is served as if it were whole."""
    only_batches = replace(ALL_ON, manifest=False, first_batch=False)
    for rules, is_served in ((only_batches, False), (replace(only_batches, **{switch: False}), True)):
        host = Host()
        host.fill()
        host.stop("clean")
        for path in MISSING[which](host.logs()):
            host.disk.remove(path)
        host.start(rules)
        assert (PARTITION in host.manager.logs) is is_served, (switch, rules)


def test_what_is_quarantined_keeps_its_promises_for_the_next_start(host: Host) -> None:
    host.fill()
    host.log.flush()
    host.stop("clean")
    host.disk.remove(host.logs()[0])
    for _ in range(3):
        host.start()
        assert host.why_quarantined()
        host.manager.shut_down(2, {})
    assert isinstance(host.manager.quarantined[PARTITION], CorruptLog)
