"""How terms of controller end, and what cannot end one."""

from __future__ import annotations

import asyncio

import pytest

from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, NewTopic
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import HeadraceError, InvalidRequest, NotController
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import CommitUnknown, ControllerFenced
from tests.unit.controller.test_shell import controller_on, create, enter, running
from tests.unit.coordination.memory_journal import MemoryJournal


async def test_what_no_record_can_say_is_refused_and_harms_nobody() -> None:
    """A list that is appended to grows beyond any string that a request can carry."""
    async with running(MemoryJournal()) as controller:
        await create(controller, "t")
        topic = ConfigResource(ResourceType.TOPIC, "t")

        async def throttle(broker_id: int) -> None:
            replicas = ",".join(f"{partition}:{broker_id}" for partition in range(2000, 5000))
            change = ConfigChange(ConfigOp.APPEND, "follower.replication.throttled.replicas", replicas)
            await controller.incremental_alter_configs([(topic, [change])])

        await throttle(1)
        end = controller.end_offset
        with pytest.raises(InvalidRequest):
            await throttle(2)
        assert controller.is_active
        assert controller.end_offset == end


async def test_creations_that_wait_together_do_not_fail_together() -> None:
    async with running(MemoryJournal()) as controller:
        listed = {"follower.replication.throttled.replicas": ",".join(f"{i}:1" for i in range(1000, 8000))}
        bad = NewTopic("bad", 1, 1, configs=list(listed.items()))
        outcomes = await asyncio.gather(
            create(controller, "a"),
            controller.create_topics([bad]),
            create(controller, "b"),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], InvalidRequest)
        assert controller.image.topic_names() == ["a", "b"]


class Hanging(LocalCoordination):
    """A commit waits for `answer`, and then finds that its term is over, or that nothing is known of it."""

    answer: asyncio.Future[HeadraceError] | None = None

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        if self.answer is not None:
            raise await self.answer
        await super().append(sequence, batch, epoch)


async def test_what_is_left_of_a_term_does_not_end_the_next_one() -> None:
    journal = MemoryJournal()
    port = Hanging(journal)
    controller = await enter(controller_on(port, journal))
    port.answer = answer = asyncio.get_running_loop().create_future()
    in_flight = asyncio.create_task(create(controller, "t"))
    await asyncio.sleep(0.01)
    controller.resign(ControllerFenced("the session ended"))
    port.answer = None
    again = asyncio.create_task(controller.enter(BrokerId(1)))
    await asyncio.sleep(0.05)
    answer.set_result(ControllerFenced("another broker has become controller"))
    await again
    with pytest.raises(NotController):
        await in_flight
    assert controller.is_active
    assert (await create(controller, "u")).error is None
    await controller.stop()


async def test_a_controller_whose_commits_stay_unknown_resigns_and_does_not_take_the_broker_with_it() -> None:
    journal = MemoryJournal()
    port = Hanging(journal)
    controller = await enter(controller_on(port, journal))
    told: list[HeadraceError] = []
    controller.on_resign(told.append)
    port.answer = asyncio.get_running_loop().create_future()
    port.answer.set_result(CommitUnknown("the connection broke"))
    with pytest.raises(NotController):
        await create(controller, "t")
    assert isinstance(told[0], NotController)
    await controller.stop()
