"""DescribeLogDirs of a broker with thousands of logs: in turns, with what is there when they are over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headrace.broker.handlers.describe_log_dirs import handle
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest

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
