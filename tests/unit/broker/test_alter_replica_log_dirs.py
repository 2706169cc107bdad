"""AlterReplicaLogDirs: what is answered for a replica here, elsewhere or to come, and what is kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.handlers.alter_replica_log_dirs import handle
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

HERE, THERE, BROKEN = (
    SimpleNamespace(path=path, is_online=online)
    for path, online in (("/a", True), ("/b", True), ("/c", False))
)
OFFLINE = TopicPartition("t", 3)


class Broker:
    """Hosts t-0 in /a, and should host t-3, of four partitions."""

    def __init__(self) -> None:
        self.preferred: dict[TopicPartition, object] = {}
        self.moves: list[tuple[object, object]] = []
        self.hosted = SimpleNamespace(log=SimpleNamespace(directory=HERE))
        hosted = {("t", 0): self.hosted}
        self.context: Any = SimpleNamespace(
            runtime=SimpleNamespace(
                turns=SimpleNamespace(is_over=False),
            ),
            partitions=SimpleNamespace(
                find=lambda topic, index: hosted.get((topic, index)),
                is_offline=lambda topic, index: (topic, index) == OFFLINE,
            ),
            metadata=SimpleNamespace(exists=lambda topic, index: topic == "t" and index in range(4)),
            storage=SimpleNamespace(
                logs=SimpleNamespace(directories=[HERE, THERE, BROKEN], prefer=self.preferred.__setitem__),
                moves=SimpleNamespace(move=lambda *asked: self.moves.append(asked)),
            ),
        )

    async def ask(self, *wanted: tuple[str, str, int]) -> dict[tuple[str, int], int]:
        dirs = [
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])
            for path, topic, index in wanted
        ]
        call: Any = SimpleNamespace(version=2, host="10.0.0.1")
        answer = await handle(self.context, AlterReplicaLogDirsRequest(dirs=dirs), call)
        return {
            (topic.topic_name, row.partition_index): row.error_code
            for topic in answer.results
            for row in topic.partitions
        }


@pytest.mark.parametrize(
    ("path", "topic", "index", "code"),
    [
        ("/a", "t", 0, ErrorCode.NONE),
        ("/b", "t", 0, ErrorCode.NONE),
        ("/c", "t", 0, ErrorCode.KAFKA_STORAGE_ERROR),
        ("/d", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/a/", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/b", "t", 1, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("/b", "t", 3, ErrorCode.KAFKA_STORAGE_ERROR),
        ("/b", "t", 4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/b", "t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/b", "no name", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/b", "x" * 213, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/b", "x" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/d", "x" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_the_answer(path: str, topic: str, index: int, code: ErrorCode) -> None:
    assert await Broker().ask((path, topic, index)) == {(topic, index): code}


async def test_only_what_may_come_and_can_be_placed_is_remembered() -> None:
    broker = Broker()
    await broker.ask(
        ("/b", "t", 1),
        ("/d", "t", 2),
        ("/b", "t", 0),
        ("/b", "t", 3),
        ("/b", "no name", 0),
        ("/b", "t", -1),
        ("/a", "to-come", 0),
    )
    assert broker.preferred == {TopicPartition("t", 1): THERE, TopicPartition("to-come", 0): HERE}


async def test_the_last_mention_counts() -> None:
    broker = Broker()
    assert await broker.ask(("/a", "t", 1), ("/b", "t", 1)) == {("t", 1): ErrorCode.REPLICA_NOT_AVAILABLE}
    assert broker.preferred == {TopicPartition("t", 1): THERE}


async def test_only_a_replica_that_is_here_and_has_somewhere_to_go_is_moved() -> None:
    broker = Broker()
    for path, index in (("/b", 0), ("/a", 0), ("/c", 0), ("/d", 0), ("/b", 1), ("/b", 3)):
        await broker.ask((path, "t", index))
    assert broker.moves == [(broker.hosted, THERE), (broker.hosted, HERE)]
