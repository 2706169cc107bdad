from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.controller.checkpoint import Checkpoint, decode_checkpoint, encode_checkpoint
from headrace.controller.checkpoint_files import KEPT, CheckpointFiles
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import NewTopic, TopicDeletion
from headrace.controller.replay import Replayer
from headrace.controller.shell import Controller
from headrace.controller.store import MetadataStore
from headrace.controller.topics import TopicDefaults
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import BrokerId
from headrace.log.os_disk import OsDisk
from tests.unit.controller.cluster import Cluster, FixedClock, SeededRandom, description, said
from tests.unit.coordination.memory_journal import MemoryJournal


class KeptInMemory:
    def __init__(self) -> None:
        self.kept: list[Checkpoint] = []

    async def latest(self) -> Checkpoint | None:
        return self.kept[-1] if self.kept else None

    async def save(self, checkpoint: Checkpoint) -> None:
        self.kept.append(checkpoint)


async def in_place(call: Callable[[], None]) -> None:
    call()


@asynccontextmanager
async def running(
    journal: MemoryJournal, checkpoints: KeptInMemory, after: int = 10
) -> AsyncIterator[Controller]:
    machine = ControllerMachine(
        schema=DeclaredSchema(), random=SeededRandom(journal.end()), defaults=TopicDefaults()
    )
    store = MetadataStore(machine, journal, checkpoints=checkpoints, checkpoint_after=after)
    controller = Controller(LocalCoordination(journal), store, FixedClock())
    await store.load()
    await controller.enter(BrokerId(1))
    await controller.register_alone(description(1))
    while (end := store.checkpoint_due) is not None:
        await store.keep_checkpoint(store.plan_checkpoint(end).carry_out())
    try:
        yield controller
    finally:
        await controller.stop()


def a_checkpoint(cluster: Cluster, end_offset: int = 42) -> Checkpoint:
    return encode_checkpoint(cluster.image, end_offset=end_offset, epoch=3, timestamp_ms=1000)


def test_a_checkpoint_gives_the_image_back() -> None:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", 5, 3, configs=[("retention.ms", "9")])
    replayer = Replayer(MetadataImage())
    for group in decode_checkpoint(a_checkpoint(cluster)):
        replayer.replay_all(group, MetadataDelta())
    assert said(replayer.image) == said(cluster.image)


def test_a_checkpoint_that_is_cut_or_changed_anywhere_is_refused() -> None:
    cluster = Cluster([0])
    cluster.create("t", 2)
    whole = a_checkpoint(cluster)
    size = len(whole.content)
    for length in range(size):
        with pytest.raises(CorruptLog):
            decode_checkpoint(whole._replace(content=whole.content[:length]))
    # Base offset and leader epoch of a batch lie outside its checksum; the length and the rest do not.
    for position in range(21, size, 7):
        flipped = bytearray(whole.content)
        flipped[position] ^= 0x40
        try:
            groups = decode_checkpoint(whole._replace(content=bytes(flipped)))
        except CorruptLog:
            continue
        assert groups == decode_checkpoint(whole)
    with pytest.raises(CorruptLog):
        decode_checkpoint(whole._replace(content=whole.content * 2))


async def test_a_long_tail_is_replaced_by_a_checkpoint_at_the_next_start() -> None:
    journal, checkpoints = MemoryJournal(), KeptInMemory()
    async with running(journal, checkpoints) as controller:
        assert not checkpoints.kept
        await controller.create_topics([NewTopic("t", 20), NewTopic("gone", 3)])
        await controller.delete_topics([TopicDeletion("gone")])
    async with running(journal, checkpoints) as controller:
        (saved,) = checkpoints.kept
        assert saved.end_offset == controller.end_offset
        assert saved.epoch == controller.epoch
        with_log = said(controller.image)
    # The records before the checkpoint are not looked at again: they could as well be unreadable.
    history = [batch for batch in journal.batches if batch not in journal.read(saved.end_offset)]
    journal.batches = [batch[:61] + bytes(len(batch) - 61) for batch in history]
    async with running(journal, checkpoints, after=10**6) as controller:
        assert [r for r in said(controller.image) if type(r).__name__ == "TopicRecord"] == [
            r for r in with_log if type(r).__name__ == "TopicRecord"
        ]
        assert list(controller.image.topics_by_name["t"].leader_epochs) == [2] * 20


async def test_a_broken_checkpoint_costs_time_and_nothing_else() -> None:
    journal, checkpoints = MemoryJournal(), KeptInMemory()
    async with running(journal, checkpoints) as controller:
        await controller.create_topics([NewTopic("t", 20)])
    async with running(journal, checkpoints):
        pass
    checkpoints.kept[-1] = checkpoints.kept[-1]._replace(content=checkpoints.kept[-1].content[:-5])
    async with running(journal, checkpoints) as controller:
        assert list(controller.image.topics_by_name["t"].leader_epochs) == [2] * 20


async def test_a_log_that_ends_before_its_checkpoint_has_lost_records() -> None:
    journal, checkpoints = MemoryJournal(), KeptInMemory()
    async with running(journal, checkpoints, after=1):
        pass
    shorter = MemoryJournal()
    with pytest.raises(CorruptLog):
        async with running(shorter, checkpoints):
            pass
    assert shorter.batches == []


async def test_files_keep_the_newest_two(tmp_path: Path) -> None:
    files = CheckpointFiles(OsDisk(), str(tmp_path))
    assert await files.latest() is None
    cluster = Cluster([0])
    for end_offset in (5, 900, 70):
        await files.save(a_checkpoint(cluster, end_offset))
    assert await files.latest() == a_checkpoint(cluster, 900)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == KEPT
    assert names[-1] == "00000000000000000900-0000000003.checkpoint"


async def test_a_disk_that_fails_is_told_as_such(tmp_path: Path) -> None:
    files = CheckpointFiles(OsDisk(), str(tmp_path), offload=in_place)
    await files.save(a_checkpoint(Cluster([0])))
    (path,) = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError):
        await files.latest()
    with pytest.raises(StorageError):
        await CheckpointFiles(OsDisk(), str(tmp_path / "none"), offload=in_place).save(
            a_checkpoint(Cluster([0]))
        )
