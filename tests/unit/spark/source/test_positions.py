"""Both ends of a batch fit together, also while the topic grows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.brokers import Brokers, Spec
from headrace.spark.source.options import Start, Wish
from headrace.spark.source.positions import whole

WISH = Wish(("t",), {"bootstrap.servers": "localhost:9092"}, group="billing")
NEVER = datetime(2999, 1, 1, tzinfo=UTC)


class Growing:
    """Of a topic whose end is further on at each question. Its group reads all of it at once."""

    end = 100

    def partitions(self) -> list[tuple[str, int]]:
        return [("t", 0)]

    def offsets(self, partitions: Iterable[tuple[str, int]], spec: Spec) -> Offsets:
        self.end += 10
        return dict.fromkeys(partitions, 0 if spec == "earliest" else self.end)

    def committed(self, _group: str) -> Offsets:
        self.end += 10
        return {("t", 0): self.end}


def brokers() -> Brokers:
    return cast(Brokers, cast(Any, Growing()))


def test_a_time_that_no_record_has_reached_ends_where_the_batch_does() -> None:
    found = whole(brokers(), WISH, "earliest", NEVER)
    assert found == {"startingOffsets": '{"t": {"0": 0}}', "endingOffsets": '{"t": {"0": 120}}'}


@pytest.mark.parametrize(("start", "begin", "end"), [(NEVER, 120, 120), ("group", 110, 130)])
def test_a_start_at_the_end_of_a_growing_topic_is_not_refused(start: Start, begin: int, end: int) -> None:
    found = whole(brokers(), WISH, start, "latest")
    assert found == {
        "startingOffsets": f'{{"t": {{"0": {begin}}}}}',
        "endingOffsets": f'{{"t": {{"0": {end}}}}}',
    }
