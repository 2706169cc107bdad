"""`headrace log verify` on the directory of a broker that is stopped."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from headrace.broker.cluster import description
from headrace.broker.process.system import boot_id
from headrace.cli.main import cli
from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, claims_file, manifest
from headrace.log.os_disk import OsDisk
from tests.unit.log.material import NOW, append, open_manager, topic_config

CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)
ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
RECORDS = 37
LEADER_EPOCH_LAST_BYTE = 15


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two partitions of several segments, stopped cleanly; one of them without its beginning."""
    path = tmp_path / "data"
    manager = open_manager(path, CONFIG)
    for partition in (ORDERS, OTHER):
        log = manager.create(partition, UUID(int=5), NOW)
        for number in range(RECORDS):
            append(log, b"%d:%02d" % (partition.partition, number), timestamp=NOW + number)
        log.flush()
    log.delete_records_before(13)
    log.enforce_retention(NOW, RECORDS)
    log.folder.delete_expired_files(NOW + 10**9)
    manager.shut_down(1, {ORDERS: RECORDS, OTHER: RECORDS})
    return path


def verify(*args: object) -> Result:
    return CliRunner().invoke(cli, ["log", "verify", *map(str, args)])


def verdict_of(path: Path, partition: TopicPartition = ORDERS) -> dict[str, Any]:
    result = verify(path, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == int(not document["whole"])
    (found,) = [each for each in document["partitions"] if each["partition"] == str(partition)]
    return dict(found)


def segments(directory: Path, partition: TopicPartition = ORDERS) -> list[Path]:
    return sorted((directory / str(partition)).glob("*.log"))


def snapshot(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_whole_directory_is_whole_and_stays_as_it_is(directory: Path) -> None:
    before = snapshot(directory)
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert f"orders-0: whole, offsets 0 to {RECORDS}, 8 segments" in result.stdout
    assert f"orders-1: whole, offsets 13 to {RECORDS}" in result.stdout
    assert "is whole: 2 partitions" in result.stdout
    assert "note" not in result.stdout
    assert snapshot(directory) == before


def test_a_single_partition_may_be_named(directory: Path) -> None:
    result = verify(directory / "orders-1")
    assert result.exit_code == 0, result.output
    assert "orders-0" not in result.stdout


Damage = Callable[[Path], None]


def lower_the_end(directory: Path) -> None:
    points = checkpoints.format_offsets({ORDERS: RECORDS + 5, OTHER: RECORDS})
    (directory / checkpoints.RECOVERY_POINTS).write_bytes(points)


def zero(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(bytes(50))


def swap(directory: Path) -> None:
    shutil.copy(segments(directory, OTHER)[-2], segments(directory)[-2])


DAMAGES: dict[str, tuple[Damage, str]] = {
    "first missing": (lambda path: segments(path)[0].unlink(), "missing"),
    "middle missing": (lambda path: segments(path)[3].unlink(), "missing"),
    "last missing": (lambda path: segments(path)[-1].unlink(), "missing"),
    "cut": (lambda path: os.truncate(segments(path)[2], 100), "bytes"),
    "zeroed": (lambda path: zero(segments(path)[2], 100), "position"),
    "swapped": (swap, "not what was sealed"),
    "recovery point ahead": (lower_the_end, f"recovery point is {RECORDS + 5}"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_told_with_what_to_do_next(directory: Path, kind: str) -> None:
    strike, expected = DAMAGES[kind]
    strike(directory)
    before = snapshot(directory)
    result = verify(directory)
    assert result.exit_code == 1
    assert "orders-0: DAMAGED" in result.stdout
    assert "orders-1: whole" in result.stdout
    assert expected in result.stdout
    assert "next: in a cluster start the broker" in result.stdout
    assert "1 of 2 partitions" in result.stderr
    found = verdict_of(directory)
    assert not found["whole"]
    assert any(each["is_damage"] for each in found["findings"])
    assert snapshot(directory) == before


def test_the_broker_and_the_command_agree(directory: Path) -> None:
    """Whatever the command calls damaged is quarantined, and the other way round."""
    for kind, (strike, _) in DAMAGES.items():
        copy = directory.with_name(kind.replace(" ", "-"))
        shutil.copytree(directory, copy)
        strike(copy)
        manager = open_manager(copy, CONFIG)
        manager.release()
        assert ORDERS in manager.quarantined, kind
        assert OTHER in manager.logs


@pytest.mark.parametrize(
    "suffix", [".index", ".timeindex", manifest.NAME, "leader-epoch-checkpoint", ".snapshot"]
)
def test_what_the_broker_makes_again_is_a_note(directory: Path, suffix: str) -> None:
    for path in (directory / "orders-0").iterdir():
        if path.name.endswith(suffix) and path.stat().st_size:
            path.write_bytes(path.read_bytes()[:-1])
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert "note" in result.stdout
    assert "nothing to do" in result.stdout


def test_a_good_index_beside_damage_is_not_told_of(directory: Path) -> None:
    zero(segments(directory)[2], 100)
    findings = verdict_of(directory)["findings"]
    assert [each["path"] for each in findings] == [str(segments(directory)[2])]


def test_only_the_newest_snapshot_is_put_right_at_the_next_start(directory: Path) -> None:
    snapshots = sorted((directory / "orders-0").glob("*.snapshot"))
    for path in snapshots:
        path.write_bytes(path.read_bytes()[:-1])
    steps = {each["path"]: each["next_step"] for each in verdict_of(directory)["findings"]}
    assert "at its next start" in steps[str(snapshots[-1])]
    assert all("does not need it" in steps[str(path)] for path in snapshots[:-1])


def test_the_newest_snapshot_that_is_gone_is_a_note(directory: Path) -> None:
    newest = max((directory / "orders-0").glob("*.snapshot"))
    newest.unlink()
    (finding,) = verdict_of(directory)["findings"]
    assert (finding["path"], finding["problem"]) == (str(newest), "it is missing")


def test_damage_in_what_is_deleted_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "data"
    manager = open_manager(path, CONFIG)
    log = manager.create(ORDERS, UUID(int=5), NOW)
    for number in range(RECORDS):
        append(log, b"%02d" % number)
    log.flush()
    log.delete_records_before(13)  # the files of it are removed later
    manager.shut_down(1, {ORDERS: RECORDS})
    zero(segments(path)[0], 100)
    found = verdict_of(path)
    assert found["whole"], found
    assert "deleted" in found["findings"][0]["problem"]


def test_partitions_that_were_never_written_have_nothing_to_tell(tmp_path: Path) -> None:
    manager = open_manager(tmp_path / "data", CONFIG)
    manager.create(ORDERS, UUID(int=5), NOW)
    manager.shut_down(1, {ORDERS: 0})
    assert verdict_of(tmp_path / "data")["findings"] == []


def test_files_that_were_put_back_where_an_empty_log_was_closed_are_damage(
    directory: Path, tmp_path: Path
) -> None:
    """The broker refuses them: it knows that nothing had been written when it stopped."""
    other = tmp_path / "other"
    manager = open_manager(other, CONFIG)
    manager.create(ORDERS, UUID(int=5), NOW)
    manager.shut_down(1, {ORDERS: 0})
    shutil.rmtree(other / str(ORDERS))
    shutil.copytree(directory / str(ORDERS), other / str(ORDERS))
    assert not verdict_of(other)["whole"]
    manager = open_manager(other, CONFIG)
    manager.release()
    assert ORDERS in manager.quarantined


def test_folders_that_only_the_claims_name_are_missed(directory: Path) -> None:
    """After a kill that came before the first recovery point."""
    (directory / checkpoints.RECOVERY_POINTS).unlink()
    shutil.rmtree(directory / str(ORDERS))
    result = verify(directory)
    assert result.exit_code == 1
    assert "orders-0: the folder is missing" in result.stdout
    assert "1 of 2 partitions are not whole" in result.stderr


def test_a_segment_that_was_cleaned_twice_is_whole(directory: Path) -> None:
    """Both times to the same size. The manifest lists the first, and has announced the second."""
    folder = directory / str(ORDERS)
    known = manifest.load(OsDisk(), str(folder))
    assert known is not None
    right = known.sealed[0]
    older = right._replace(fingerprint=right.fingerprint ^ 1)
    said = known._replace(sealed=(older, *known.sealed[1:]), announced=(older, right))
    (folder / manifest.NAME).write_bytes(manifest.encode(said))
    assert verdict_of(directory)["findings"] == []
    (folder / manifest.NAME).write_bytes(manifest.encode(said._replace(announced=(older,))))
    assert verdict_of(directory)["findings"] != []


@pytest.mark.parametrize("place", [0, -1], ids=["sealed", "last"])
def test_an_index_of_aborted_transactions_that_is_another_is_a_note(directory: Path, place: int) -> None:
    """Of the last segment, if it was closed by a clean stop."""
    made_up = segments(directory)[place].with_suffix(".txnindex")
    made_up.write_bytes((0).to_bytes(2, "big") + b"".join(each.to_bytes(8, "big") for each in (5, 0, 1, 2)))
    (finding,) = verdict_of(directory)["findings"]
    assert finding["path"] == str(made_up)
    assert verdict_of(directory)["whole"]


def test_half_of_a_last_write_is_a_note(directory: Path) -> None:
    last = segments(directory)[-1]
    last.write_bytes(last.read_bytes() + b"half of a batch")
    assert verdict_of(directory)["whole"]


def test_a_folder_that_is_missing_is_damage(directory: Path) -> None:
    shutil.rmtree(directory / "orders-0")
    result = verify(directory)
    assert result.exit_code == 1
    assert "the folder is missing" in result.stdout


def test_a_running_broker_is_not_judged(directory: Path) -> None:
    manager = open_manager(directory, CONFIG)
    try:
        result = verify(directory)
    finally:
        manager.release()
    assert result.exit_code != 0
    assert "stop it first" in result.output


def test_a_directory_without_partitions_is_refused(tmp_path: Path) -> None:
    result = verify(tmp_path)
    assert result.exit_code != 0
    assert "holds no partitions" in result.output


def test_the_last_segment_of_another_partition_is_damage(directory: Path) -> None:
    """Whole in itself, and of the same name and length: the broker refuses it, and so says the command."""
    ours, theirs = segments(directory)[-1], segments(directory, OTHER)[-1]
    assert ours.name == theirs.name
    shutil.copy(theirs, ours)
    found = verdict_of(directory)["findings"]
    assert any("does not begin with the batch that was written there" in each["problem"] for each in found)
    assert ORDERS in open_manager(directory, CONFIG).quarantined


@pytest.mark.parametrize("content", [b"", b"headrace claims 1\nwritten 5\n"], ids=["emptied", "cut short"])
def test_claims_that_are_damaged_are_a_note(directory: Path, content: bytes) -> None:
    (directory / claims_file.NAME).write_bytes(content)
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert f"{claims_file.NAME}: it is damaged" in result.stdout


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot"])
@pytest.mark.parametrize("kind", ["a folder", "a pipe"])
def test_an_odd_file_ends_the_verdict_of_no_other_partition(directory: Path, suffix: str, kind: str) -> None:
    path = sorted((directory / str(ORDERS)).glob(f"*{suffix}"))[0]
    path.unlink()
    path.mkdir() if kind == "a folder" else os.mkfifo(path)
    assert suffix != ".log" or not verdict_of(directory)["whole"]
    assert verdict_of(directory, OTHER)["whole"]


def test_only_what_may_be_read_is_needed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup that is mounted read-only can be verified too."""
    plain = os.open

    def refuse_writers(path: Any, flags: int, *args: Any, **named: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) and str(path).startswith(str(directory)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return plain(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", refuse_writers)
    result = verify(directory)
    assert result.exit_code == 0, result.output


def raise_epoch(path: Path, position: int) -> None:
    """By 64: no checksum covers it."""
    with path.open("r+b") as file:
        file.seek(position + LEADER_EPOCH_LAST_BYTE)
        (was,) = file.read(1)
        file.seek(position + LEADER_EPOCH_LAST_BYTE)
        file.write(bytes([was ^ 64]))


@pytest.mark.parametrize("was_killed", [False, True])
@pytest.mark.parametrize(("place", "batch"), [(2, 0), (2, 1), (-1, 0)])
def test_a_leader_epoch_that_does_not_fit_is_damage(
    directory: Path, place: int, batch: int, was_killed: bool
) -> None:
    """As recovery says, with the same words."""
    path = segments(directory)[place]
    if was_killed:  # nothing was synced, nothing is listed
        for name in (checkpoints.CLEAN_SHUTDOWN, checkpoints.RECOVERY_POINTS, claims_file.NAME):
            (directory / name).unlink()
        (directory / str(ORDERS) / manifest.NAME).unlink()
        description.remember(OsDisk(), [str(directory)], boot_id(), [UUID(int=1)])
    length = int.from_bytes(path.read_bytes()[8:12], "big") + 12
    raise_epoch(path, length * batch)
    damages = [each for each in verdict_of(directory)["findings"] if each["is_damage"]]
    assert damages[0]["path"] == str(path)
    assert any("offset or leader epoch does not fit" in each["problem"] for each in damages)


def test_epochs_that_the_batches_do_not_have_are_a_note(directory: Path) -> None:
    epochs = directory / str(ORDERS) / "leader-epoch-checkpoint"
    epochs.write_bytes(b"0\n2\n0 0\n7 20\n")
    (found,) = verdict_of(directory)["findings"]
    assert (found["path"], found["is_damage"]) == (str(epochs), False)
    assert "what the batches say" in found["problem"]


def test_another_topic_id_is_a_note(directory: Path) -> None:
    metadata = directory / str(ORDERS) / "partition.metadata"
    metadata.write_bytes(checkpoints.format_partition_metadata(UUID(int=6)))
    (found,) = verdict_of(directory)["findings"]
    assert "another topic id than the manifest" in found["problem"]
    metadata.unlink()
    (found,) = verdict_of(directory)["findings"]
    assert (found["path"], found["problem"]) == (str(metadata), "it is missing")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("node.id=1", "node.id=q", "no number"),
        ("version=1", "version=3", "version is 3"),
        ("cluster.id", "cluster.hd", "no cluster.id"),
        ("directory.id=", "directory.id=?", "directory.id"),
        ("", "", "it is missing"),
    ],
)
def test_a_directory_that_does_not_say_whose_it_is(directory: Path, old: str, new: str, problem: str) -> None:
    meta = directory / checkpoints.META_PROPERTIES
    if old:
        meta.write_text(meta.read_text().replace(old, new))
    else:
        meta.unlink()
    (found,) = json.loads(verify(directory, "--json").stdout)["findings"]
    assert (found["path"], found["is_damage"]) == (str(meta), False)
    assert problem in found["problem"]
