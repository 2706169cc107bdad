"""As much of a broker as the handlers of offsets see: topics, a coordinator of groups, and verification."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from headrace.broker.handlers import offset_commit
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.core.completion import Completion
from headrace.core.errors import CoordinatorNotAvailable, HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from tests.unit.groups.offsets.logged_offsets import NOW, LoggedOffsets

ORDERS, PAYMENTS, NOBODYS = UUID(int=1), UUID(int=2), UUID(int=99)
GROUPS_TOPIC = "__consumer_offsets"


class Topic:
    def __init__(self, name: str, topic_id: UUID, partitions: int) -> None:
        self.name, self.topic_id, self._partitions = name, topic_id, partitions

    def __len__(self) -> int:
        return self._partitions


class Image:
    def __init__(self, *topics: Topic) -> None:
        self.topics = list(topics)

    def topic(self, name: str) -> Topic | None:
        return next((each for each in self.topics if each.name == name), None)

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return next((each for each in self.topics if each.topic_id == topic_id), None)


class Groups:
    """A coordinator with one shard, which answers at once."""

    topic = GROUPS_TOPIC

    def __init__(self) -> None:
        self.logged = LoggedOffsets()
        self.refusal: HeadraceError | None = None
        self.asked: list[tuple[object, bool]] = []

    def partition_for(self, _key: str) -> int:
        if isinstance(self.refusal, CoordinatorNotAvailable):
            raise self.refusal
        return 7

    def ask(self, key: str, operation: Any, **how: Any) -> Completion[Any]:
        return self.ask_partition(key, operation, **how)

    def ask_partition(
        self, key: object, operation: Any, *, producer: tuple[int, int] | None = None, writes: bool = True
    ) -> Completion[Any]:
        self.asked.append((key, writes))
        completion: Completion[Any] = Completion()
        try:
            if self.refusal is not None:
                raise self.refusal
            decision = operation(SimpleNamespace(offsets=self.logged.offsets), None, NOW)
            completion.complete(self.logged.write(decision, -1 if producer is None else producer[0]))
        except HeadraceError as error:
            completion.fail(error)
        return completion


class Verification:
    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.asked: list[tuple[Any, ...]] = []

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        add: bool,
        knows_abortable: bool = True,
    ) -> Completion[dict[TopicPartition, ErrorCode]]:
        self.asked.append((transactional_id, producer_id, epoch, add, knows_abortable))
        completion: Completion[dict[TopicPartition, ErrorCode]] = Completion()
        completion.complete(dict.fromkeys(partitions, self.code))
        return completion


class Server:
    def __init__(self) -> None:
        self.groups = Groups()
        self.image = Image(Topic("orders", ORDERS, 2), Topic("payments", PAYMENTS, 1))
        self.verification = Verification()
        stub = SimpleNamespace(
            metadata=SimpleNamespace(image=self.image),
            coordinators=SimpleNamespace(groups=self.groups, verification=self.verification),
        )
        self._context = cast(RequestContext, stub)

    def serve(self, handler: Any, request: Message, version: int) -> Any:
        """The answer, once through bytes: every version must be able to say it."""
        asked = type(request).from_bytes(request.to_bytes(version), version)
        answer = handler.handle(self._context, asked, Call(version, "test", cast(Any, None)))
        if isinstance(answer, Completion):
            answer = answer.result()
        assert isinstance(answer, Message)
        return type(answer).from_bytes(answer.to_bytes(version), version)

    def commit(self, request: OffsetCommitRequest, version: int) -> list[tuple[object, int, int]]:
        answer = self.serve(offset_commit, request, version)
        assert isinstance(answer, OffsetCommitResponse)
        return [
            (topic.topic_id if version >= 10 else topic.name, row.partition_index, row.error_code)
            for topic in answer.topics
            for row in topic.partitions
        ]
