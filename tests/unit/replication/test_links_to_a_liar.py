"""What no checksum covers in a source's answer may be damaged, or a lie: nothing is deleted here for it, and
the copy gets on once the source says the truth again."""

from __future__ import annotations

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.replication.linking import LinkOutcome
from headrace.replication.partition import Partition
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import append
from tests.unit.replication.test_linking import copy_all, exchange, leader, linked_to, served, without_epochs


@pytest.fixture
def source() -> Partition:
    return leader("/source", epoch=40)


@pytest.fixture
def target() -> Partition:
    return leader("/target", epoch=3)


@pytest.mark.parametrize(("start", "end"), [(1 << 62, 2), (0, -(1 << 63) + 2), (-2, 2)])
def test_a_start_beyond_the_end_deletes_nothing(
    source: Partition, target: Partition, start: int, end: int
) -> None:
    append(source, b"a", b"b")
    linked = linked_to(target)
    copy_all(source, linked)
    sent = linked.fetch_position()
    assert sent is not None
    lie = served(source, linked)._replace(log_start_offset=start, high_watermark=end)
    assert linked.on_fetched(sent, lie, NOW) == LinkOutcome.BACK_OFF
    assert linked.error_code == ErrorCode.CORRUPT_MESSAGE
    assert (target.log.log_start_offset, linked.source_end) == (0, 2)
    append(source, b"c")
    copy_all(source, linked)
    assert without_epochs(target) == without_epochs(source)


@pytest.mark.parametrize("epoch", [1 << 30, -5])
def test_an_epoch_that_the_source_cannot_have_is_not_named_to_it(
    source: Partition, target: Partition, epoch: int
) -> None:
    append(source, b"a")
    linked = linked_to(target)
    sent, data = linked.fetch_position(), served(source, linked)
    assert sent is not None
    batch = bytearray(data.records)
    batch[12:16] = epoch.to_bytes(4, "big", signed=True)
    assert linked.on_fetched(sent, data._replace(records=memoryview(batch)), NOW) == LinkOutcome.APPENDED
    position = linked.fetch_position()
    assert position is not None
    assert (position.fetch_offset, position.last_fetched_epoch) == (0, -1), "the last batch is compared"
    append(source, b"b")
    copy_all(source, linked)
    assert linked.last_source_epoch == 40
    assert without_epochs(target) == without_epochs(source)


def test_an_epoch_that_the_source_does_not_know_any_more_is_not_named_for_ever(
    source: Partition, target: Partition
) -> None:
    """Apache Kafka says that the offset is out of range, though it is not."""
    append(source, b"a")
    linked = linked_to(target)
    copy_all(source, linked)
    linked.last_source_epoch = 39
    assert linked.on_range(0, 1) == LinkOutcome.BACK_OFF
    position = linked.fetch_position()
    assert position is not None
    assert (position.fetch_offset, position.last_fetched_epoch) == (0, -1)
    append(source, b"b")
    assert exchange(source, linked) == LinkOutcome.APPENDED
    assert without_epochs(target) == without_epochs(source)
