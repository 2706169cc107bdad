"""DescribeLogDirs of a broker with thousands of logs: in turns, with what is there when they are over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headrace.broker.handlers.describe_log_dirs import handle
from headrace.broker.storage.replica_moves import FutureReplica
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)

LOGS = 1050
IN_A_SLICE = 100


class Turns:
    """A slice is over after so many looks at it."""

    def __init__(self) -> None:
        self.looks = 0
        self.given = 0
        self.meanwhile: Any = lambda: None

    @property
    def is_over(self) -> bool:
        self.looks += 1
        return self.looks % IN_A_SLICE == 0

    async def next(self) -> None:
        self.given += 1
        self.meanwhile()


async def test_many_logs_are_described_in_turns() -> None:
    directory = SimpleNamespace(path="/a", is_online=True)
    names = [TopicPartition("t", index) for index in range(LOGS)]
    logs = {
        name: SimpleNamespace(topic_partition=name, directory=directory, size_bytes=7, closed=False)
        for name in names
    }
    turns = Turns()
    context: Any = SimpleNamespace(
        runtime=SimpleNamespace(turns=turns),
        partitions=SimpleNamespace(find=lambda _topic, _index: None),
        storage=SimpleNamespace(
            logs=SimpleNamespace(directories=[directory], logs=logs),
            disk_space=SimpleNamespace(spaces={}),
            moves=SimpleNamespace(futures=list),
        ),
    )

    def delete_the_last() -> None:
        gone = logs.pop(names[LOGS - turns.given])
        gone.closed = True

    turns.meanwhile = delete_the_last
    call: Any = SimpleNamespace(version=4)
    answer = await handle(context, DescribeLogDirsRequest(topics=None), call)
    assert turns.given == LOGS // IN_A_SLICE
    rows = answer.results[0].topics[0].partitions
    assert [row.partition_index for row in rows] == [*range(LOGS - turns.given)]


async def test_a_replica_on_its_way_to_another_directory_is_in_both() -> None:
    here: Any = SimpleNamespace(path="/a", is_online=True)
    there: Any = SimpleNamespace(path="/b", is_online=True)
    name, other = TopicPartition("t", 0), TopicPartition("u", 0)
    log = SimpleNamespace(topic_partition=name, directory=here, size_bytes=7, closed=False)
    futures = [FutureReplica(name, there, 5, 3), FutureReplica(other, there, 1, 1)]
    context: Any = SimpleNamespace(
        runtime=SimpleNamespace(turns=Turns()),
        partitions=SimpleNamespace(find=lambda _topic, _index: None),
        storage=SimpleNamespace(
            logs=SimpleNamespace(directories=[here, there], logs={name: log}),
            disk_space=SimpleNamespace(spaces={}),
            moves=SimpleNamespace(futures=lambda: futures),
        ),
    )
    call: Any = SimpleNamespace(version=4)
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[0])])
    answer = await handle(context, asked, call)
    rows = {
        (directory.log_dir, topic.name): (row.is_future_key, row.partition_size, row.offset_lag)
        for directory in answer.results
        for topic in directory.topics
        for row in topic.partitions
    }
    assert rows == {("/a", "t"): (False, 7, 0), ("/b", "t"): (True, 5, 3)}
