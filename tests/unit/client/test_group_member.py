"""How a member shares partitions with others."""

from __future__ import annotations

import pytest

from headrace.client.group_member import assign_ranges, encode_assignment
from headrace.client.groups import classic_assignment
from headrace.core.ids import TopicPartition


def of(topic: str, *indexes: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in indexes]


@pytest.mark.parametrize(
    ("wishes", "given"),
    [
        ({"a": ["t"]}, {"a": of("t", 0, 1, 2, 3, 4)}),
        ({"b": ["t"], "a": ["t"]}, {"a": of("t", 0, 1, 2), "b": of("t", 3, 4)}),
        (
            {"a": ["t"], "b": ["t"], "c": ["t"]},
            {"a": of("t", 0, 1), "b": of("t", 2, 3), "c": of("t", 4)},
        ),
        ({"a": ["t", "u"], "b": ["u"]}, {"a": [*of("t", 0, 1, 2, 3, 4), *of("u", 0)], "b": []}),
        ({"a": [], "b": ["gone"]}, {"a": [], "b": []}),
    ],
)
def test_ranges(wishes: dict[str, list[str]], given: dict[str, list[TopicPartition]]) -> None:
    assert assign_ranges(wishes, {"t": of("t", 0, 1, 2, 3, 4), "u": of("u", 0)}) == given


def test_an_assignment_is_read_as_it_was_written() -> None:
    partitions = [*of("t", 0, 7), *of("u", 3)]
    assert classic_assignment(encode_assignment(partitions)) == partitions
