"""Indexes of aborted transactions and snapshots of producers that are not what was written: a reader of
committed records was given aborted ones, and lost others, while the log said that it was whole."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from headrace.core.ids import TopicPartition
from headrace.core.ports import File
from headrace.log import manifest, scan
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_snapshot import SnapshotEntry
from headrace.log.read_state import UnverifiedReads
from headrace.log.side_files import SideFiles
from headrace.log.transaction_index import AbortedTransaction
from headrace.log.wholeness import ALL_ON, Wholeness
from headrace.protocol.batch import BatchHeader
from tests.unit.log.material import NOW, open_manager, topic_config
from tests.unit.log.transactional_writes import end, write

PARTITION = TopicPartition("t", 0)
SEGMENTS = 4
ENTRY_BYTES = 34
State = tuple[list[list[AbortedTransaction]], list[SnapshotEntry]]
Damage = Callable[[list[Path]], None]


def state_of(log: PartitionLog) -> State:
    aborted = [list(segment.transactions.entries()) for segment in log.segments]
    return aborted, sorted(log.producers.snapshot())


def written(path: Path, *, clean: bool) -> State:
    """Four segments with an aborted transaction each, two of them with two, and one that is open."""
    manager = open_manager(path, topic_config())
    log = manager.create(PARTITION, UUID(int=1), NOW)
    for number in range(SEGMENTS):
        write(log, 5, number)
        write(log, 6, number)
        end(log, 5, commit=False)
        if number == SEGMENTS - 1:
            break
        end(log, 6, commit=number % 2 == 0)
        log.roll(NOW)
        log.flush()
    before = state_of(log)
    if clean:
        manager.shut_down(1, {PARTITION: log.end_offset})
    else:
        for job in manager.take_checkpoint({PARTITION: log.end_offset}):
            job.run()
        manager.release()
    return before


def opened(path: Path, wholeness: Wholeness = ALL_ON) -> State:
    manager = open_manager(path, topic_config(), wholeness)
    found = state_of(manager.get(PARTITION))
    manager.shut_down(2)
    return found


def remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


def empty(paths: list[Path]) -> None:
    for path in paths:
        path.write_bytes(b"")


def cut(paths: list[Path]) -> None:
    for path in paths:
        path.write_bytes(path.read_bytes()[:-ENTRY_BYTES])


def rotate(paths: list[Path]) -> None:
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)


def forge(paths: list[Path]) -> None:
    """Another producer: an entry as good as any."""
    for path in paths:
        content = bytearray(path.read_bytes())
        content[9] ^= 2
        path.write_bytes(content)


def copy_last(paths: list[Path]) -> None:
    content = paths[-1].read_bytes()
    for path in paths:
        path.write_bytes(content)


KINDS = [
    *((".txnindex", damage) for damage in (remove, empty, cut, rotate, forge, copy_last)),
    *((".snapshot", damage) for damage in (remove, empty, rotate, copy_last)),
]


def harm(path: Path, suffix: str, damage: Damage) -> None:
    paths = sorted((path / str(PARTITION)).glob(f"*{suffix}"))
    assert len(paths) >= SEGMENTS - 1
    damage(paths)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize(("suffix", "damage"), KINDS)
def test_what_is_not_the_one_that_was_written_is_made_anew(
    tmp_path: Path, suffix: str, damage: Damage, clean: bool
) -> None:
    before = written(tmp_path, clean=clean)
    harm(tmp_path, suffix, damage)
    assert opened(tmp_path) == before
    assert opened(tmp_path) == before, "and is there the next time"


@pytest.mark.parametrize(("suffix", "damage"), [(".txnindex", forge), (".snapshot", rotate)])
def test_whoever_opens_the_log_hears_of_it(tmp_path: Path, suffix: str, damage: Damage) -> None:
    """And of nothing else: a line that comes at every start is not read when it matters."""
    written(tmp_path, clean=True)
    harm(tmp_path, suffix, damage)
    heard = []
    for _ in range(2):
        manager = open_manager(tmp_path, topic_config())
        heard.append(manager.rebuilt)
        manager.shut_down(2)
    assert heard[0]
    assert all(path.endswith(suffix) for path in heard[0])
    assert heard[1] == []


def test_it_hears_of_each_where_one_is_needed_for_the_other(tmp_path: Path) -> None:
    written(tmp_path, clean=True)
    harm(tmp_path, ".txnindex", lambda paths: paths[-1].unlink())
    harm(tmp_path, ".snapshot", rotate)
    harmed = {str(path) for path in (tmp_path / str(PARTITION)).glob("*.snapshot")}
    manager = open_manager(tmp_path, topic_config())
    heard = manager.rebuilt
    manager.shut_down(2)
    assert {path for path in heard if path.endswith(".snapshot")} == harmed
    assert sum(path.endswith(".txnindex") for path in heard) == 1


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_both_may_be_harmed(tmp_path: Path, clean: bool) -> None:
    before = written(tmp_path, clean=clean)
    harm(tmp_path, ".txnindex", remove)
    harm(tmp_path, ".snapshot", rotate)
    assert opened(tmp_path) == before


def test_what_is_as_it_was_is_not_made_anew(tmp_path: Path) -> None:
    before = written(tmp_path, clean=True)
    folder = tmp_path / str(PARTITION)
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("*.txnindex")}
    assert opened(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.txnindex")} == stamps


@pytest.mark.parametrize(("suffix", "damage"), [(".txnindex", remove), (".snapshot", rotate)])
def test_the_check_has_a_switch_whose_absence_is_noticed(tmp_path: Path, suffix: str, damage: Damage) -> None:
    before = written(tmp_path, clean=True)
    harm(tmp_path, suffix, damage)
    assert opened(tmp_path, Wholeness(side_files=False)) != before


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_without_the_notes_the_batches_tell(tmp_path: Path, clean: bool) -> None:
    before = written(tmp_path, clean=clean)
    (tmp_path / str(PARTITION) / "headrace.manifest").unlink()
    harm(tmp_path, ".txnindex", rotate)
    harm(tmp_path, ".snapshot", rotate)
    assert opened(tmp_path) == before
    assert opened(tmp_path) == before, "and are noted"


@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot"])
@pytest.mark.parametrize("damage", [remove, rotate])
def test_what_lies_beside_a_segment_in_doubt_is_not_believed(
    tmp_path: Path, suffix: str, damage: Damage
) -> None:
    """The manifest leaves such a segment out (rule 13), and with it the notes of its files, although its
    batches were walked and synced at a start before."""
    before = written(tmp_path, clean=False)
    folder = tmp_path / str(PARTITION)
    known = manifest.load(OsDisk(), str(folder))
    assert known is not None
    (folder / "headrace.manifest").write_bytes(manifest.encode(known._replace(sealed=known.sealed[:1])))
    harm(tmp_path, suffix, damage)
    assert opened(tmp_path) == before


def test_a_log_whose_notes_are_lost_is_read_once_and_not_once_for_each_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of a thousand segments would not have come to an end."""
    written(tmp_path, clean=True)
    (tmp_path / str(PARTITION) / "headrace.manifest").unlink()
    read: list[str] = []
    plain = scan.headers

    def headers(file: File | UnverifiedReads, position: int, size: int) -> Iterator[tuple[int, BatchHeader]]:
        opened = file._file if isinstance(file, UnverifiedReads) else file
        read.append(os.readlink(f"/proc/self/fd/{opened.fileno()}"))
        return plain(file, position, size)

    monkeypatch.setattr(scan, "headers", headers)
    opened(tmp_path)
    assert len(set(Counter(read).values())) == 1, "the first is read as often as the last"


def test_a_log_of_a_release_that_noted_nothing_is_believed(tmp_path: Path) -> None:
    """Its files are the only ones that tell, and may be large."""
    before = written(tmp_path, clean=True)
    folder = tmp_path / str(PARTITION)
    known = manifest.load(OsDisk(), str(folder))
    assert known is not None
    sealed = tuple(each._replace(side=SideFiles()) for each in known.sealed)
    (folder / "headrace.manifest").write_bytes(manifest.encode(known._replace(sealed=sealed)))
    (tmp_path / "headrace.claims").unlink()
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("*.txnindex")}
    assert opened(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.txnindex")} == stamps
    harm(tmp_path, ".txnindex", remove)
    assert opened(tmp_path) == before, "from now on they are noted"
