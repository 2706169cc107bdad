"""What the file with the checksum claims is believed, and what has none only if another file agrees."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from crc32c import crc32c

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, claims_file, files
from headrace.log.claims_file import Claimed, ClaimsFile, FirstBatch
from headrace.log.side_files import SideFiles
from headrace.log.wholeness import ALL_ON
from tests.unit.log.material import PARTITION, append, read_records
from tests.unit.log.test_wholeness import FOLDER, RECORDS, STOPS, Host

STARTS = f"/data/{checkpoints.LOG_START_OFFSETS}"
CLAIMS = f"/data/{claims_file.NAME}"
METADATA = f"{FOLDER}/{files.PARTITION_METADATA}"
TOPIC_ID = UUID(int=5)
SAMPLE = ClaimsFile(
    7,
    {
        PARTITION: Claimed(3, 9, FirstBatch(5, 0xABC), SideFiles(1, 2), TOPIC_ID),
        TopicPartition("a.b_c", 12): Claimed(0, 0, None),
    },
)


@pytest.fixture
def host() -> Host:
    return Host()


def test_what_was_written_is_read_again() -> None:
    content = claims_file.encode(SAMPLE)
    assert claims_file.decode(content) == SAMPLE
    for at in range(len(content)):
        assert claims_file.decode(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) is None
        assert claims_file.decode(content[:at]) is None


def test_a_file_without_ids_is_read() -> None:
    body = b"headrace claims 1\nwritten 7\norders 0 3 9 5 00000abc 00000001 00000002\n"
    said = claims_file.decode(body + b"crc32c %08x\n" % crc32c(body))
    assert said == ClaimsFile(
        7, {TopicPartition("orders", 0): Claimed(3, 9, FirstBatch(5, 0xABC), SideFiles(1, 2))}
    )


def damage_starts(host: Host, offset: int) -> None:
    host.disk.put(STARTS, checkpoints.format_offsets({PARTITION: offset}))


@STOPS
@pytest.mark.parametrize("offset", [13, RECORDS, RECORDS + 5])
@pytest.mark.parametrize("has_claims", [True, False])
def test_a_damaged_checkpoint_raises_no_log_start(
    host: Host, how: str, offset: int, has_claims: bool
) -> None:
    """Retention deletes what lies before it, here and, if this one leads, everywhere."""
    host.fill()
    host.stop(how)
    damage_starts(host, offset)
    if not has_claims:
        host.disk.lose(CLAIMS)
    host.start()
    assert not host.manager.quarantined
    assert host.log.log_start_offset == 0
    assert len(read_records(host.log)) == RECORDS


def test_without_the_check_it_does(host: Host) -> None:
    host.fill()
    host.stop("clean")
    damage_starts(host, 13)
    host.disk.lose(CLAIMS)
    host.start(replace(ALL_ON, proven_start=False))
    assert host.log.log_start_offset == 13


@STOPS
@pytest.mark.parametrize("has_claims", [True, False])
def test_a_log_start_that_was_raised_is_found_again(host: Host, how: str, has_claims: bool) -> None:
    """Of an earlier release, which left no file with a checksum, the epochs prove it."""
    host.fill()
    host.log.delete_records_before(13)
    host.stop(how)
    if not has_claims:
        host.disk.lose(CLAIMS)
    host.start()
    assert not host.manager.quarantined
    assert host.log.log_start_offset == 13


@STOPS
@pytest.mark.parametrize("count", [3, RECORDS])
def test_a_last_segment_of_another_log_is_noticed(host: Host, how: str, count: int) -> None:
    """As long as the right one, and with the same offsets: no batch says whose it is."""
    contents = []
    for value in (b"%02d", b"x%d"):
        each = Host()
        for number in range(count):
            append(each.log, value % (number % 10), timestamp=1000 + number)
        each.stop(how)
        contents.append(each.disk.content(each.logs()[-1]))
        host = each
    assert len(contents[0]) == len(contents[1])
    host.disk.put(host.logs()[-1], contents[0])
    host.start()
    assert "does not begin with" in host.why_quarantined()
    host.manager.release()
    host.disk.kill()
    host.start(replace(ALL_ON, first_batch=False))
    assert PARTITION in host.manager.logs


def test_a_last_segment_that_is_missing_after_a_kill_is_noticed(host: Host) -> None:
    """Also if nothing of it was committed, and it is the only one."""
    append(host.log, b"one")
    host.checkpoint(high_watermark=0)
    host.manager.release()
    host.disk.kill()
    host.disk.lose(host.logs()[0])
    host.start()
    assert "is missing" in host.why_quarantined()


def test_a_process_that_is_killed_leaves_half_a_batch_and_no_other_damage(host: Host) -> None:
    """A changed bit that no checkpoint knows of yet was once taken for a write that was cut off."""
    host.fill(5)
    path = host.logs()[-1]
    whole = host.disk.content(path)
    host.manager.release()
    host.disk.kill()
    last = len(whole) // 5
    host.disk.put(path, whole[: -last // 2])
    host.start()
    assert host.log.end_offset == 4
    append(host.log, b"04")
    host.manager.release()
    host.disk.kill()
    host.disk.flip(path, 8 * (len(whole) - 3))
    host.start()
    assert "does not leave that" in host.why_quarantined()
    host.manager.release()
    host.disk.kill()
    host.start(replace(ALL_ON, torn_only=False))
    assert host.log.end_offset == 4


def test_a_log_that_was_cut_is_whole(host: Host) -> None:
    """The segment that was active is gone, and another begins elsewhere with another batch."""
    host.fill()
    host.checkpoint()
    host.log.truncate_to(3)
    for number in range(20):
        append(host.log, b"other %d" % number)
    host.manager.release()
    host.disk.kill()
    host.start()
    assert not host.manager.quarantined
    assert host.log.end_offset == 23


def test_a_version_is_counted_for_each_change(host: Host) -> None:
    for number in range(1, 4):
        host.fill(1)
        host.checkpoint()
        host.checkpoint()
        said = claims_file.load(host.disk, "/data")
        assert said is not None
        assert said.written == number
    assert files.read_all(host.disk, CLAIMS).startswith(b"headrace claims 2\nwritten 3\n")


def test_a_log_that_was_closed_empty_holds_nothing(host: Host) -> None:
    """Its file was swapped with that of another log, and what was in it became its records."""
    host.stop("clean")
    other = Host()
    other.fill(3)
    host.disk.put(host.logs()[0], other.disk.content(other.logs()[0]))
    host.start()
    assert "nothing was written to it" in host.why_quarantined()


def test_the_version_that_was_found_counts_and_not_what_the_start_has_written(host: Host) -> None:
    """A start corrects what a loss of power took: a directory that was put back seemed as new as it had been
    told by that."""
    host.fill()
    host.log.flush()
    host.checkpoint()
    before = host.disk.content(host.logs()[-1])
    host.fill(1)
    host.checkpoint()
    host.manager.release()
    host.disk.kill()
    host.disk.put(host.logs()[-1], before)
    found = host.start(stayed_up=False).versions()
    assert set(found.values()) == {3}, "it has corrected the high watermark"
    assert host.manager.raise_versions(dict.fromkeys(found, 2)) == []
    (older,) = host.manager.raise_versions(dict.fromkeys(found, 3))
    assert older.path == "/data"


@pytest.mark.parametrize("loses_claims", [True, False], ids=["lost", "put back"])
def test_a_directory_that_was_older_is_the_newest_again(host: Host, loses_claims: bool) -> None:
    """Also if it says what it said: as long as nothing changed no version was written, and each process
    after that was distrusted."""
    host.fill()
    host.checkpoint()
    host.manager.release()
    host.disk.kill()
    if loses_claims:
        host.disk.lose(CLAIMS)
    told = dict.fromkeys(host.start().versions(), 5)
    assert host.manager.raise_versions(told)
    for job in host.manager.take_claims_again():
        job.run()
    said = claims_file.load(host.disk, "/data")
    assert said is not None
    assert (said.written, said.logs[PARTITION].high_watermark) == (6, RECORDS)
    assert (said.logs[PARTITION].first_batch is None) == loses_claims, "what was lost vouches for nothing"
    host.manager.release()
    host.disk.kill()
    assert host.start().raise_versions(dict.fromkeys(told, 6)) == []


def test_claims_that_were_lost_still_miss_what_a_quarantined_log_had(host: Host) -> None:
    """They were written again without it, and the next start cut the log to what was left of it."""
    host.fill(5)
    path = host.logs()[0]
    whole = host.disk.content(path)
    host.checkpoint()
    host.manager.release()
    host.disk.kill()
    host.disk.lose(CLAIMS)
    host.disk.put(path, whole[: 3 * len(whole) // 5])
    for _ in range(2):
        host.start()
        assert "high watermark" in host.why_quarantined()
        for job in host.manager.take_claims_again():
            job.run()
        host.manager.release()
        host.disk.kill()


def test_after_a_loss_of_power_nothing_begins_behind_a_hole(host: Host) -> None:
    """The epochs know that there was a beginning. The log once began where the first file did, and whoever
    followed it deleted what lay before."""
    host.fill()
    path = host.logs()[0]
    host.manager.release()
    host.disk.kill()
    host.disk.lose(path)
    host.start(stayed_up=False)
    assert (host.log.log_start_offset, host.log.end_offset) == (0, 0)


@STOPS
@pytest.mark.parametrize("count", [0, 1, RECORDS])
def test_a_flipped_bit_in_the_topic_id_makes_no_stray(host: Host, how: str, count: int) -> None:
    """`partition.metadata` has no checksum. A log of one segment, which has no manifest, was once taken for
    that of another topic; an empty one took its place, and was led."""
    host.fill(count)
    host.stop(how)
    host.disk.flip(METADATA, 8 * len("version: 0\ntopic_id: AAAAA"))
    assert checkpoints.load_topic_id(host.disk, FOLDER) != TOPIC_ID
    host.start()
    if how == "killed" and not count:
        assert host.log.topic_id != TOPIC_ID, "nothing says of which log an empty file is"
        return
    assert host.log.topic_id == TOPIC_ID
    assert checkpoints.load_topic_id(host.disk, FOLDER) == TOPIC_ID
    assert METADATA in host.manager.rebuilt


def test_files_of_an_earlier_topic_of_that_name_do_not_get_the_id_of_this_one(host: Host) -> None:
    """As after a folder was put back from a backup while the broker was killed, before its claims knew of
    the first batch."""
    host.checkpoint()
    host.manager.release()
    host.disk.kill()
    host.disk.put(METADATA, checkpoints.format_partition_metadata(UUID(int=6)))
    earlier = Host()
    earlier.fill(3)
    host.disk.put(host.logs()[0], earlier.disk.content(earlier.logs()[0]))
    host.start()
    assert host.log.topic_id == UUID(int=6)


@pytest.mark.parametrize("count", [0, 3])
def test_after_a_clean_stop_an_epoch_counts_if_a_batch_has_it(host: Host, count: int) -> None:
    """The file has no checksum. Swapped with that of another log it had an epoch that began where this one
    ends, and everything that was to follow was refused, for it was of an earlier one."""
    host.fill(count)
    host.stop("clean")
    epochs = f"{FOLDER}/{files.EPOCHS}"
    batches = [(0, 0)] if count else []
    host.disk.put(epochs, checkpoints.format_lines(f"{at} {start}" for at, start in [*batches, (7, count)]))
    host.start()
    assert host.log.latest_epoch == (0 if count else -1)
    append(host.log, b"more")
    assert host.log.end_offset == count + 1


def test_of_a_log_that_retention_has_emptied_the_epoch_is_kept(host: Host) -> None:
    host.fill(3)
    host.log.delete_records_before(3)
    host.stop("clean")
    host.start()
    assert host.log.latest_epoch == 0
