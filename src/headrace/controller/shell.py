"""The controller as the broker uses it: operations in, one commit at a time, changes out.

While this broker is the active controller, one task owns the image. It takes an operation, lets the machine
decide on committed state, commits the records, applies them to the store, whose subscribers hear of it, and
only then answers. An operation that has begun is carried through even if its caller has gone. Creations of
different topics that wait together are decided and committed together, since none of them can change what
another finds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from headrace.controller.brokers import BrokerDescription
from headrace.controller.codec import Payload, pack
from headrace.controller.elections import NOTHING_KNOWN, LongestFirst
from headrace.controller.image import ConfigResource, MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.controller.metadata_committer import MetadataCommitter
from headrace.controller.operations import (
    AlteredConfig,
    ConfigChange,
    CreatedTopic,
    DeletedTopic,
    ElectedLeader,
    MorePartitions,
    NewTopic,
    PartitionsCreated,
    ProducerIdBlock,
    RecordGroup,
    Result,
    TopicDeletion,
)
from headrace.controller.store import MetadataStore
from headrace.controller.topics import MOST_PARTITIONS, topic_sizes
from headrace.core.errors import DiskFull, HeadraceError, InvalidRequest, NotController, ServerError
from headrace.core.failures import report
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports import Clock
from headrace.core.ports_coordination import CommitUnknown, ControllerFenced, Coordination, SessionState
from headrace.core.tasks import spawn
from headrace.protocol.stored.abort_transaction_record import AbortTransactionRecord
from headrace.protocol.stored.no_op_record import NoOpRecord

RETRY_SECONDS: Final = 0.01

R = TypeVar("R")
Decision = Callable[[ControllerMachine], Result[R]]


@dataclass(slots=True)
class _Waiting:
    decide: Callable[[ControllerMachine], Result[Any]]
    answer: asyncio.Future[Any]
    new_topics: Sequence[NewTopic] | None = None
    """Set on creations only: they may be decided together."""


class Controller:
    def __init__(self, coordination: Coordination, store: MetadataStore, clock: Clock) -> None:
        self._coordination = coordination
        self._store = store
        self._machine = store.machine
        self._clock = clock
        self._committer: MetadataCommitter | None = None
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        # Why no operation is taken; None while it is the active controller.
        self._over: HeadraceError | None = NotController("this broker is not the controller")
        self._on_resign: list[Callable[[HeadraceError], None]] = []
        self._gives_up = False
        """This controller waits for nothing any more. The next controller settles what is in flight."""
        self._reconsider = asyncio.Event()

    # --- reading --------------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        return self._store.image

    @property
    def end_offset(self) -> int:
        """The metadata log is applied up to here, exclusively."""
        return self._store.end

    @property
    def epoch(self) -> ControllerEpoch:
        """Of the last term that this broker held; -1 if it held none."""
        return ControllerEpoch(-1) if self._committer is None else self._committer.epoch

    @property
    def is_active(self) -> bool:
        return self._over is None

    def on_resign(self, resigned: Callable[[HeadraceError], None]) -> None:
        """Call `resigned` with the error that ended a term. NotController: another broker is controller. Any
        other error: the metadata cannot be trusted any more, and the broker must stop."""
        self._on_resign.append(resigned)

    # --- life -----------------------------------------------------------------------------------------------

    async def enter(self, broker_id: BrokerId, *, deposing: ControllerEpoch | None = None) -> None:
        """Become controller, catch up with what is committed, mark the beginning of the epoch, then serve.

        Raises ControllerFenced if another was faster. The queue is empty: whoever asked before was refused.
        """
        await self.settled()
        self._gives_up = False
        epoch = await self._coordination.claim_controller(broker_id, deposing=deposing)
        self._committer = MetadataCommitter(self._coordination, self._clock, epoch, self._until_connected)
        if self._store.end < await self._coordination.start_offset():
            # Nobody trims from now on, but an earlier controller has trimmed what this copy lacks.
            raise ControllerFenced("what this broker lacks of the metadata was trimmed")
        async for batch in self._committer.committed_from(self._store.end):
            self._store.apply(batch)
        opening: list[RecordGroup] = [[NoOpRecord()]]
        if self._machine.in_transaction:
            # The controller of this metadata transaction is gone: none of it takes effect.
            opening = [[AbortTransactionRecord(reason="its controller is gone")]]
        await self._write(_encoded([*opening, *self._machine.finalise_features().groups]))
        self._over = None
        self._owner = spawn("controller", self._own())

    async def register_alone(self, broker: BrokerDescription) -> BrokerEpoch:
        """Register the only broker of a cluster as a new incarnation, and renew its leader epochs."""
        epoch = await self._coordination.register(broker.broker_id, b"")
        await self.submit(lambda machine: machine.register_broker(broker, epoch, fenced=False))
        await self.submit(lambda machine: machine.renew_leaderships(broker.broker_id))
        return epoch

    async def stop(self) -> None:
        """Finish the commit that is in flight if the service answers, refuse the rest."""
        if self._over is None:
            self._over = NotController("the controller is stopping")
        self._give_up()
        if self._owner is not None:
            await self._owner
            self._owner = None

    def resign(self, error: HeadraceError) -> None:
        """Resign, because the session is over. The next controller settles the commit in flight."""
        if self._over is None:
            self._resign(NotController(str(error)), [])
            self._give_up()

    async def settled(self) -> None:
        """Wait until nothing of the last term is in flight. Its last batch may be applied meanwhile."""
        if self._owner is not None:
            await asyncio.wait((self._owner,))

    def _give_up(self) -> None:
        self._gives_up = True
        self._arrived.set()
        self._reconsider.set()

    async def _until_connected(self) -> None:
        # Always pause: a connection can fail before the session says so.
        await asyncio.sleep(RETRY_SECONDS)
        stop = self._coordination.watch_session(lambda _state: self._reconsider.set())
        try:
            while True:
                if self._coordination.session is SessionState.LOST:
                    raise ControllerFenced("the session ended, and the controllership with it")
                if self._gives_up:
                    raise ControllerFenced("the term is over")
                if self._coordination.session is SessionState.CONNECTED:
                    return
                self._reconsider.clear()
                await self._reconsider.wait()
        finally:
            stop()

    # --- operations -----------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[CreatedTopic]:
        try:
            return await self.submit(
                lambda machine: machine.create_topics(topics), validate_only, new_topics=topics
            )
        except DiskFull as error:
            return [CreatedTopic(topic.name, error=error) for topic in topics]

    async def delete_topics(self, topics: Sequence[TopicDeletion]) -> list[DeletedTopic]:
        return await self.submit(lambda machine: machine.delete_topics(topics))

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[PartitionsCreated]:
        return await self.submit(lambda machine: machine.create_partitions(topics), validate_only)

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> list[AlteredConfig]:
        return await self.submit(lambda machine: machine.alter_configs(resources), validate_only)

    async def incremental_alter_configs(
        self,
        changes: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> list[AlteredConfig]:
        return await self.submit(lambda machine: machine.incremental_alter_configs(changes), validate_only)

    async def elect_leaders(
        self,
        election: int,
        partitions: Sequence[tuple[str, int]] | None,
        longest_first: LongestFirst = NOTHING_KNOWN,
    ) -> list[ElectedLeader]:
        """Raises InvalidRequest for an election type that does not exist."""
        return await self.submit(lambda machine: machine.elect_leaders(election, partitions, longest_first))

    async def allocate_producer_ids(self, broker_id: BrokerId, epoch: BrokerEpoch) -> ProducerIdBlock:
        return await self.submit(lambda machine: machine.allocate_producer_ids(broker_id, epoch))

    async def submit(
        self,
        decide: Decision[R],
        validate_only: bool = False,
        *,
        new_topics: Sequence[NewTopic] | None = None,
    ) -> R:
        """Let the machine decide once all earlier operations are committed. Return once this one is, too."""
        if self._over is not None:
            raise self._over
        if validate_only:
            return decide(self._machine).response
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
            if self._queue[0].answer.done():
                self._queue.popleft()  # its caller has gone, or was refused, before it began
                continue
            together = self._take()
            try:
                await self._carry_out(together)
            except (ControllerFenced, CommitUnknown) as error:
                # CommitUnknown: nobody said what became of the commit. The next controller finds out.
                self._resign(NotController(str(error)), together)
            except HeadraceError as error:
                self._resign(error, together)
            except Exception as error:  # Committed but not applied: the image may not be used any more.
                self._resign(ServerError(f"the metadata cannot be applied: {error!r}"), together)
        self._refuse(list(self._queue), self._over)
        self._queue.clear()

    def _take(self) -> list[_Waiting]:
        """The next operation. If it creates topics, also the creations of other topics right after it."""
        first = self._queue.popleft()
        together = [first]
        if first.new_topics is None:
            return together
        names = {topic.name for topic in first.new_topics}
        size = topic_sizes(first.new_topics, self._machine.defaults)
        while self._queue and (more := self._queue[0].new_topics) is not None:
            if self._queue[0].answer.done():
                self._queue.popleft()
                continue
            size += topic_sizes(more, self._machine.defaults)
            if size > MOST_PARTITIONS or not names.isdisjoint(topic.name for topic in more):
                break
            names.update(topic.name for topic in more)
            together.append(self._queue.popleft())
        return together

    async def _carry_out(self, together: list[_Waiting]) -> None:
        try:
            result = self._decide(together)
            payloads = _encoded(result.groups)
        except Exception as error:  # A decision changes nothing, so the next one is not in danger.
            if len(together) == 1:
                self._refuse(together, error)
                return
            for each in together:  # one of them fails: decide each alone
                await self._carry_out([each])
            return
        try:
            await self._write(payloads)
        except DiskFull as error:  # The batch was refused whole, and the next one may find room.
            self._refuse(together, error)
            return
        self._answer(together, result.response)

    def _decide(self, together: list[_Waiting]) -> Result[Any]:
        if len(together) == 1:
            return together[0].decide(self._machine)
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

    async def _write(self, payloads: list[Payload]) -> None:
        committer = self._committer
        assert committer is not None, "nobody commits before becoming controller"
        for payload in payloads:
            batch = await committer.write(self._store.end, payload.values)
            self._store.apply(batch, payload.records)

    def _resign(self, error: HeadraceError, together: list[_Waiting]) -> None:
        self._over = error
        self._refuse(together, error)
        for resigned in self._on_resign:
            try:
                resigned(error)
            except Exception as failure:  # the others, and whoever waits, hear of it all the same
                report("somebody who was told that the controller resigned", failure)

    @staticmethod
    def _refuse(waiting: list[_Waiting], error: Exception) -> None:
        for each in waiting:
            if not each.answer.done():
                each.answer.set_exception(error)


def _encoded(groups: list[RecordGroup]) -> list[Payload]:
    """Encode all groups before writing any, so that a value that does not fit is refused without harm."""
    try:
        return list(pack(groups))
    except ValueError as error:
        raise InvalidRequest(f"this cannot be written down: {error}") from error
