"""The controller over the local coordination and a journal in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID

import pytest

from headrace.controller import codec
from headrace.controller.codec import encode_metadata_batch, encode_record
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import DEFAULT_BROKER, ConfigResource, ResourceType
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import (
    ConfigChange,
    ConfigOp,
    CreatedTopic,
    ElectionType,
    MorePartitions,
    NewTopic,
    ProducerIdBlock,
    TopicDeletion,
)
from headrace.controller.shell import Controller
from headrace.controller.store import MetadataCopy, MetadataStore
from headrace.controller.topics import MOST_PARTITIONS, TopicDefaults
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import (
    DiskFull,
    ElectionNotNeeded,
    HeadraceError,
    InvalidRequest,
    NotController,
    ServerError,
    StorageError,
    TopicExists,
)
from headrace.core.ids import BrokerId
from headrace.protocol.stored.begin_transaction_record import BeginTransactionRecord
from headrace.protocol.stored.topic_record import TopicRecord
from tests.unit.controller.cluster import FixedClock, SeededRandom, description, said
from tests.unit.coordination.memory_journal import MemoryJournal


class Started(NamedTuple):
    controller: Controller
    store: MetadataStore


def controller_on(port: LocalCoordination, journal: MetadataCopy, seed: int = 0) -> Started:
    machine = ControllerMachine(
        schema=DeclaredSchema(), random=SeededRandom(seed), defaults=TopicDefaults(2, 1)
    )
    store = MetadataStore(machine, journal)
    return Started(Controller(port, store, FixedClock()), store)


async def enter(started: Started, broker_id: int = 1) -> Controller:
    await started.store.load()
    await started.controller.enter(BrokerId(broker_id))
    await started.controller.register_alone(description(broker_id))
    return started.controller


@asynccontextmanager
async def running(journal: MemoryJournal, seed: int = 0) -> AsyncIterator[Controller]:
    async with running_with_store(journal, seed) as started:
        yield started.controller


@asynccontextmanager
async def running_with_store(journal: MemoryJournal, seed: int = 0) -> AsyncIterator[Started]:
    started = controller_on(LocalCoordination(journal), journal, seed=seed)
    await enter(started)
    try:
        yield started
    finally:
        await started.controller.stop()


async def create(controller: Controller, name: str, partitions: int = 1) -> CreatedTopic:
    (created,) = await controller.create_topics([NewTopic(name, partitions)])
    return created


async def allocate(controller: Controller) -> ProducerIdBlock:
    return await controller.allocate_producer_ids(BrokerId(1), controller.image.brokers[1].epoch)


async def test_the_first_start_finalises_registers_and_is_in_controller() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        assert controller.is_active
        assert controller.image.metadata_version > 0
        broker = controller.image.brokers[1]
        assert broker.active
        assert broker.epoch >= 0


async def test_an_answer_means_that_it_is_durable_and_in_the_image() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        created = await create(controller, "t", 3)
        assert created.error is None
        assert len(controller.image.topics_by_name["t"]) == 3
        assert journal.after_power_loss().end() == controller.end_offset
        before = said(controller.image)
    async with running(journal.after_power_loss()) as controller:
        topic = controller.image.topics_by_name["t"]
        assert topic.topic_id == created.topic_id
        assert len(before) == len(said(controller.image))


async def test_the_image_shows_nothing_that_is_not_committed() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        journal.gate = asyncio.Event()
        pending = asyncio.create_task(create(controller, "t"))
        await asyncio.sleep(0.01)
        assert controller.image.topic("t") is None
        assert not pending.done()
        journal.gate.set()
        await pending
        assert controller.image.topic("t") is not None


async def test_a_full_disk_refuses_a_change_and_takes_the_next_one() -> None:
    """It once ended a broker that is alone."""
    journal = MemoryJournal()
    async with running(journal) as controller:
        journal.is_full = True
        assert isinstance((await create(controller, "refused")).error, DiskFull)
        with pytest.raises(DiskFull):
            await allocate(controller)
        assert controller.is_active
        assert controller.image.topic("refused") is None
        journal.is_full = False
        assert (await create(controller, "taken")).error is None
        assert journal.after_power_loss().end() == controller.end_offset


async def test_every_operation_reaches_the_image() -> None:
    async with running(MemoryJournal()) as controller:
        await create(controller, "t", 1)
        assert (await controller.create_partitions([MorePartitions("t", 4)])) == [("t", None)]
        topic = ConfigResource(ResourceType.TOPIC, "t")
        change = ConfigChange(ConfigOp.SET, "retention.ms", "9")
        await controller.incremental_alter_configs([(topic, [change])])
        await controller.alter_configs([(DEFAULT_BROKER, [("log.retention.ms", "8")])])
        block, next_block = [await allocate(controller) for _ in range(2)]
        assert next_block.first == block.first + block.length
        (elected,) = await controller.elect_leaders(ElectionType.PREFERRED, [("t", 0)])
        assert isinstance(elected.error, ElectionNotNeeded)
        assert len(controller.image.topics_by_name["t"]) == 4
        assert controller.image.topic_configs("t") == {"retention.ms": "9"}
        assert controller.image.broker_configs(None) == {"log.retention.ms": "8"}
        await controller.delete_topics([TopicDeletion("t")])
        assert controller.image.topic("t") is None


async def test_validate_only_changes_nothing() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        await create(controller, "old")
        end = controller.end_offset
        (would,) = await controller.create_topics([NewTopic("t", 3)], validate_only=True)
        assert (would.error, would.num_partitions) == (None, 3)
        (refused,) = await controller.create_topics([NewTopic("old")], validate_only=True)
        assert isinstance(refused.error, TopicExists)
        await controller.create_partitions([MorePartitions("old", 9)], validate_only=True)
        resource = ConfigResource(ResourceType.TOPIC, "old")
        await controller.alter_configs([(resource, [("retention.ms", "1")])], validate_only=True)
        assert controller.end_offset == end == journal.end()


async def test_refusals_cost_no_commit() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        syncs = journal.syncs
        created = await create(controller, "bad name")
        assert created.error is not None
        assert journal.syncs == syncs


async def test_creations_that_wait_together_are_committed_together() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        syncs = journal.syncs
        asked = [create(controller, f"t{i}") for i in range(100)]
        outcomes = await asyncio.gather(*asked)
        assert [outcome.name for outcome in outcomes] == [f"t{i}" for i in range(100)]
        assert all(outcome.error is None for outcome in outcomes)
        assert journal.syncs - syncs <= 2


async def test_of_two_creations_of_one_name_the_first_wins() -> None:
    async with running(MemoryJournal()) as controller:
        first, other, second = await asyncio.gather(
            create(controller, "t"), create(controller, "u"), create(controller, "t")
        )
        assert first.error is None
        assert other.error is None
        assert isinstance(second.error, TopicExists)


async def test_creations_are_not_joined_beyond_what_one_request_may_ask() -> None:
    async with running(MemoryJournal()) as controller:
        half = MOST_PARTITIONS // 2 + 1
        outcomes = await asyncio.gather(create(controller, "t", half), create(controller, "u", half))
        assert [outcome.error for outcome in outcomes] == [None, None]


async def test_operations_keep_their_order() -> None:
    async with running(MemoryJournal()) as controller:
        first, deleted, second = await asyncio.gather(
            create(controller, "t"), controller.delete_topics([TopicDeletion("t")]), create(controller, "t")
        )
        assert deleted[0].error is None
        assert second.error is None
        assert controller.image.topics_by_name["t"].topic_id == second.topic_id != first.topic_id


async def test_a_topic_larger_than_a_batch_appears_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "MOST_COMPRESSED", 0)  # as if nothing could be made smaller
    journal = MemoryJournal()
    async with running(journal) as controller:
        before = len(journal.batches)
        await create(controller, "big", MOST_PARTITIONS)
        assert len(journal.batches) - before > 1
        assert len(controller.image.topics_by_name["big"]) == MOST_PARTITIONS
    torn = MemoryJournal(journal.batches[: before + 1])
    async with running(torn) as controller:
        assert controller.image.topic("big") is None
        assert (await create(controller, "big")).error is None
    async with running(torn) as controller:
        assert len(controller.image.topics_by_name["big"]) == 1


async def test_a_transaction_without_an_end_is_aborted_by_the_next_controller() -> None:
    records = [BeginTransactionRecord(), TopicRecord(name="t", topic_id=UUID(int=5))]
    values = [encode_record(record) for record in records]
    batch = encode_metadata_batch(values, base_offset=0, controller_epoch=0, timestamp_ms=0)
    async with running(MemoryJournal([batch])) as controller:
        assert controller.image.topic_names() == []
        assert controller.image.brokers[1].active


async def test_a_restart_is_a_new_incarnation_that_leads_in_new_epochs() -> None:
    journal = MemoryJournal()
    epochs = []
    for start in range(3):
        async with running(journal, seed=start) as controller:
            if start == 0:
                await create(controller, "t", 4)
            topic = controller.image.topics_by_name["t"]
            assert list(topic.leader_epochs) == [start] * 4
            assert list(topic.leaders) == [1] * 4
            epochs.append((controller.image.brokers[1].epoch, controller.epoch))
    assert epochs == sorted(set(epochs))
    assert len({broker for broker, _ in epochs}) == len({term for _, term in epochs}) == 3


async def test_producer_ids_are_not_given_again_after_a_restart() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        before = await allocate(controller)
    async with running(journal) as controller:
        assert (await allocate(controller)).first == before.first + before.length


async def test_subscribers_hear_of_each_commit_before_its_caller_is_answered() -> None:
    async with running_with_store(MemoryJournal()) as (controller, store):
        heard: list[MetadataDelta] = []
        stop = store.subscribe(heard.append)
        created = await create(controller, "t", 2)
        (delta,) = heard
        assert delta.created_topics == [created.topic_id]
        assert list(delta.partitions[created.topic_id]) == [0, 1]
        assert delta.end_offset == controller.end_offset
        stop()
        await create(controller, "u")
        assert len(heard) == 1


async def test_a_subscriber_that_fails_harms_no_other() -> None:
    complaints: list[Exception] = []
    async with running_with_store(MemoryJournal()) as (controller, store):
        store.on_subscriber_error = complaints.append

        def broken(delta: MetadataDelta) -> None:
            raise RuntimeError("no room")

        heard: list[MetadataDelta] = []
        store.subscribe(broken)
        store.subscribe(heard.append)
        assert (await create(controller, "t")).error is None
        assert len(heard) == 1
        assert isinstance(complaints[0], RuntimeError)


async def test_a_decision_that_cannot_be_taken_is_raised_to_its_caller_alone() -> None:
    async with running(MemoryJournal()) as controller:
        with pytest.raises(InvalidRequest):
            await controller.elect_leaders(9, None)
        assert (await create(controller, "t")).error is None


async def test_a_caller_that_goes_away_does_not_stop_its_operation() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        journal.gate = asyncio.Event()
        gone = asyncio.create_task(create(controller, "t"))
        await asyncio.sleep(0.01)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        journal.gate.set()
        assert (await create(controller, "u")).error is None
        assert controller.image.topic_names() == ["t", "u"]


async def test_what_its_caller_gave_up_before_it_began_does_not_happen() -> None:
    journal = MemoryJournal()
    async with running(journal) as controller:
        journal.gate = asyncio.Event()
        begun = asyncio.create_task(create(controller, "begun"))
        await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(create(controller, name)) for name in ("one", "two", "three")]
        await asyncio.sleep(0.01)
        for task in (waiting[0], waiting[2]):
            task.cancel()
        await asyncio.wait((waiting[0], waiting[2]))
        journal.gate.set()
        await begun
        assert (await waiting[1]).error is None
        assert (await create(controller, "after")).error is None
        assert controller.image.topic_names() == ["after", "begun", "two"]


async def test_a_deposed_controller_resigns_and_changes_nothing() -> None:
    journal = MemoryJournal()
    port = LocalCoordination(journal)
    old = await enter(controller_on(port, journal))
    await create(old, "before")
    new = await enter(controller_on(port, journal, seed=1), 2)
    assert new.epoch > old.epoch
    assert new.image.topic("before") is not None
    told: list[HeadraceError] = []
    old.on_resign(told.append)
    with pytest.raises(NotController):
        await create(old, "zombie")
    assert isinstance(told[0], NotController)
    assert not old.is_active
    with pytest.raises(NotController):
        await allocate(old)
    assert (await create(new, "after")).error is None
    assert new.image.topic_names() == ["after", "before"]
    await old.stop()
    await new.stop()


async def test_a_failing_disk_ends_the_controller_and_everything_that_waits() -> None:
    journal = MemoryJournal()
    controller = await enter(controller_on(LocalCoordination(journal), journal))
    told: list[HeadraceError] = []
    controller.on_resign(told.append)
    journal.failure = OSError(28, "No space left on device")
    outcomes = await asyncio.gather(create(controller, "t"), allocate(controller), return_exceptions=True)
    assert all(isinstance(outcome, HeadraceError) for outcome in outcomes)
    assert isinstance(told[0], StorageError)
    assert controller.image.topic("t") is None
    await controller.stop()


async def test_stop_finishes_what_is_in_flight_and_refuses_the_rest() -> None:
    journal = MemoryJournal()
    port = LocalCoordination(journal)
    controller = await enter(controller_on(port, journal))
    journal.gate = asyncio.Event()
    in_flight = asyncio.create_task(create(controller, "t"))
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(controller.delete_topics([TopicDeletion("t")]))
    await asyncio.sleep(0.01)
    stopping = asyncio.create_task(controller.stop())
    await asyncio.sleep(0.01)
    journal.gate.set()
    await stopping
    assert (await in_flight).error is None
    with pytest.raises(NotController):
        await waiting
    with pytest.raises(NotController):
        await create(controller, "late")


async def test_it_takes_nothing_before_its_start() -> None:
    controller = controller_on(LocalCoordination(MemoryJournal()), MemoryJournal()).controller
    with pytest.raises(NotController):
        await create(controller, "t")
    await controller.stop()


async def test_a_fault_in_applying_a_commit_ends_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(MemoryJournal()) as controller:
        told: list[HeadraceError] = []
        controller.on_resign(told.append)

        def broken(*_: object) -> None:
            raise KeyError("t")

        monkeypatch.setattr(ControllerMachine, "replay", broken)
        with pytest.raises(ServerError):
            await create(controller, "t")
        assert not controller.is_active
        assert len(told) == 1
