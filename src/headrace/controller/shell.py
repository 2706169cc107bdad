"""The controller as the broker uses it: operations in, one commit at a time, changes out.

One task owns the image. It takes an operation, lets the machine decide on committed state, commits the
records, replays them, tells the subscribers, and only then answers. An operation that has begun is
carried through even if its caller has gone. Creations of different topics that wait together are decided
and committed together, since none of them can change what another finds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.controller.brokers import BrokerDescription
from headrace.controller.checkpoint import Checkpoints, decode_checkpoint, encode_checkpoint
from headrace.controller.codec import decode_metadata_batch, pack
from headrace.controller.commit import MetadataCopy, Pen
from headrace.controller.configs import ConfigSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ConfigResource, MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import (
    AlteredConfig,
    ConfigChange,
    CreatedTopic,
    DeletedTopic,
    DoomedTopic,
    ElectedLeader,
    GrownTopic,
    MorePartitions,
    NewTopic,
    ProducerIdBlock,
    RecordGroup,
    Result,
)
from headrace.controller.topics import MOST_PARTITIONS, TopicDefaults, topic_sizes
from headrace.core.errors import CorruptLog, HeadraceError, NotController, ServerError
from headrace.core.ids import BrokerEpoch, ControllerEpoch
from headrace.core.ports import Clock, Random
from headrace.core.ports_coordination import Coordination, OfficeLost
from headrace.protocol.stored.abort_transaction_record import AbortTransactionRecord

CHECKPOINT_AFTER = 20_000
"""Records in the tail that make a start write a checkpoint: about a third of a second of replay."""

R = TypeVar("R")
Subscriber = Callable[[MetadataDelta], None]


@dataclass(slots=True)
class _Waiting:
    decide: Callable[[], Result[Any]]
    answer: asyncio.Future[Any]
    new_topics: Sequence[NewTopic] | None = None
    """Set on creations only: they may be decided together."""


class Controller:
    def __init__(
        self,
        coordination: Coordination,
        broker: BrokerDescription,
        *,
        schema: ConfigSchema,
        defaults: TopicDefaults,
        clock: Clock,
        random: Random,
        copy: MetadataCopy | None = None,
        checkpoints: Checkpoints | None = None,
        checkpoint_after: int = CHECKPOINT_AFTER,
    ) -> None:
        self._coordination = coordination
        self._broker = broker
        self._machine = ControllerMachine(schema=schema, random=random, defaults=defaults)
        self._pen = Pen(coordination, clock, copy)
        self._clock = clock
        self._checkpoints = checkpoints
        self._checkpoint_after = checkpoint_after
        self._broker_epoch = BrokerEpoch(-1)
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._subscribers: list[Subscriber] = []
        self._owner: asyncio.Task[None] | None = None
        # Why no operation is taken any more; None while in office.
        self._over: HeadraceError | None = NotController("the controller has not started")
        self._on_resign: list[Callable[[HeadraceError], None]] = []

    # --- reading --------------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """Committed state. Read it without an await in between, or read it again after one."""
        return self._machine.image

    @property
    def end_offset(self) -> int:
        """The metadata log is applied up to here, exclusively."""
        return self._pen.end

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self._broker_epoch

    @property
    def controller_epoch(self) -> ControllerEpoch:
        return self._pen.epoch

    @property
    def in_office(self) -> bool:
        return self._over is None

    def subscribe(self, changed: Subscriber) -> Callable[[], None]:
        """Call `changed` after each commit, once the image shows it; the answer ends that."""
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)

    def on_resign(self, resigned: Callable[[HeadraceError], None]) -> None:
        """Call `resigned` when the office is lost, or the metadata log failed, which must stop the broker."""
        self._on_resign.append(resigned)

    # --- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take office, catch up, register this process as a new incarnation, renew what it leads."""
        broker_id = self._broker.broker_id
        await self._pen.take_office(broker_id)
        shortcut = await self._load_checkpoint()
        async for batch in self._pen.committed_tail():
            self._machine.replay(decode_metadata_batch(batch), MetadataDelta())
        if self._machine.in_transaction:
            # Its controller died in the middle: nothing of it has happened.
            await self._commit([[AbortTransactionRecord(reason="its controller is gone")]])
        self._broker_epoch = await self._coordination.register(broker_id, b"")
        features = self._machine.finalise_features()
        registration = self._machine.register_broker(self._broker, self._broker_epoch, fenced=False)
        await self._commit([*features.groups, *registration.groups])
        await self._commit(self._machine.renew_leaderships(broker_id).groups)
        if self._pen.end - shortcut >= self._checkpoint_after:
            await self._save_checkpoint()
        self._over = None
        self._owner = asyncio.create_task(self._own(), name="controller")

    async def _load_checkpoint(self) -> int:
        """Where the tail begins: after a checkpoint that can be read, otherwise at 0."""
        checkpoint = None if self._checkpoints is None else await self._checkpoints.latest()
        if checkpoint is None:
            return 0
        end = await self._coordination.end()
        if end < checkpoint.end_offset:
            raise CorruptLog(
                f"the metadata log ends at {end}, its checkpoint at {checkpoint.end_offset}: records are lost"
            )
        try:
            groups = decode_checkpoint(checkpoint)
        except CorruptLog:
            return 0
        for group in groups:
            self._machine.replay(group, MetadataDelta())
        self._pen.skip_to(checkpoint.end_offset)
        return checkpoint.end_offset

    async def _save_checkpoint(self) -> None:
        """So that the next start replays little. Only here: nothing else changes the image meanwhile."""
        if self._checkpoints is not None:
            checkpoint = encode_checkpoint(
                self.image,
                end_offset=self._pen.end,
                epoch=self._pen.epoch,
                timestamp_ms=self._clock.wall_ms(),
            )
            await self._checkpoints.save(checkpoint)

    async def stop(self) -> None:
        """Finish the commit that is in flight, refuse the rest."""
        if self._over is None:
            self._over = NotController("the controller is stopping")
        self._arrived.set()
        if self._owner is not None:
            await self._owner
            self._owner = None
            await self._coordination.deregister(self._broker.broker_id, self._broker_epoch)

    # --- operations -----------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[CreatedTopic]:
        def decide() -> Result[list[CreatedTopic]]:
            return self._machine.create_topics(topics)

        return await self._submit(decide, validate_only, new_topics=topics)

    async def delete_topics(self, topics: Sequence[DoomedTopic]) -> list[DeletedTopic]:
        return await self._submit(lambda: self._machine.delete_topics(topics))

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[GrownTopic]:
        return await self._submit(lambda: self._machine.create_partitions(topics), validate_only)

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> list[AlteredConfig]:
        return await self._submit(lambda: self._machine.alter_configs(resources), validate_only)

    async def incremental_alter_configs(
        self,
        changes: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> list[AlteredConfig]:
        return await self._submit(lambda: self._machine.incremental_alter_configs(changes), validate_only)

    async def elect_leaders(
        self, election: int, partitions: Sequence[tuple[str, int]] | None
    ) -> list[ElectedLeader]:
        """Raises InvalidRequest for an election type that does not exist."""
        return await self._submit(lambda: self._machine.elect_leaders(election, partitions))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A block for this broker."""
        broker_id, epoch = self._broker.broker_id, self._broker_epoch
        return await self._submit(lambda: self._machine.allocate_producer_ids(broker_id, epoch))

    async def _submit(
        self,
        decide: Callable[[], Result[R]],
        validate_only: bool = False,
        *,
        new_topics: Sequence[NewTopic] | None = None,
    ) -> R:
        if self._over is not None:
            raise self._over
        if validate_only:
            return decide().response
        waiting = _Waiting(decide, asyncio.get_running_loop().create_future(), new_topics)
        self._queue.append(waiting)
        self._arrived.set()
        answer: R = await waiting.answer
        return answer

    # --- the owner ------------------------------------------------------------------------------------------

    async def _own(self) -> None:
        while self._over is None:
            if not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            together = self._take()
            try:
                await self._carry_out(together)
            except OfficeLost as error:
                self._resign(NotController(str(error)), together)
            except HeadraceError as error:
                self._resign(error, together)
            except Exception as error:  # Committed but not applied: the image may not be used any more.
                self._resign(ServerError(f"the metadata cannot be applied: {error!r}"), together)
        self._refuse(list(self._queue), self._over)
        self._queue.clear()

    def _take(self) -> list[_Waiting]:
        """The next operation, and the creations of other topics that stand right behind a creation."""
        first = self._queue.popleft()
        together = [first]
        if first.new_topics is None:
            return together
        names = {topic.name for topic in first.new_topics}
        size = topic_sizes(first.new_topics, self._machine.defaults)
        while self._queue and (more := self._queue[0].new_topics) is not None:
            size += topic_sizes(more, self._machine.defaults)
            if size > MOST_PARTITIONS or not names.isdisjoint(topic.name for topic in more):
                break
            names.update(topic.name for topic in more)
            together.append(self._queue.popleft())
        return together

    async def _carry_out(self, together: list[_Waiting]) -> None:
        try:
            result = self._decide(together)
        except Exception as error:  # A decision changes nothing, so the next one is not in danger.
            self._refuse(together, error)
            return
        await self._commit(result.groups)
        self._answer(together, result.response)

    def _decide(self, together: list[_Waiting]) -> Result[Any]:
        if len(together) == 1:
            return together[0].decide()
        return self._machine.create_topics([t for each in together for t in each.new_topics or ()])

    def _answer(self, together: list[_Waiting], response: Any) -> None:
        for waiting in together:
            if waiting.answer.done():
                continue
            if len(together) == 1:
                waiting.answer.set_result(response)
            else:
                names = {topic.name for topic in waiting.new_topics or ()}
                waiting.answer.set_result([created for created in response if created.name in names])

    async def _commit(self, groups: list[RecordGroup]) -> None:
        if not groups:
            return
        delta = MetadataDelta()
        for payload in pack(groups):
            await self._pen.write(payload.values)
            self._machine.replay(payload.records, delta)
        delta.end_offset = self._pen.end
        for changed in tuple(self._subscribers):
            try:
                changed(delta)
            except Exception as error:  # One subscriber's fault must not keep the others uninformed.
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a subscriber of the metadata failed", "exception": error}
                )

    def _resign(self, error: HeadraceError, together: list[_Waiting]) -> None:
        self._over = error
        self._refuse(together, error)
        for resigned in self._on_resign:
            resigned(error)

    @staticmethod
    def _refuse(waiting: list[_Waiting], error: Exception) -> None:
        for each in waiting:
            if not each.answer.done():
                each.answer.set_exception(error)
