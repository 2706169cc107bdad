"""Whether a batch is to be written, by what the target knows of its partitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.api import ConnectorFailure
from headrace.core.ids import TopicPartition


def is_there(ranges: Mapping[TopicPartition, tuple[int, int]], known: Mapping[TopicPartition, int]) -> bool:
    """A batch is written whole, or not at all. Raises ConnectorFailure where the target is elsewhere."""
    for partition, (first, end) in sorted(ranges.items()):
        if known.get(partition, first) not in (first, end):
            raise ConnectorFailure(
                f"the target has {partition} up to {known[partition]}, and this batch goes from {first} to "
                f"{end}: somebody else has written meanwhile"
            )
    ahead = {partition for partition, (_, end) in ranges.items() if known.get(partition) == end}
    if ahead and ahead != set(ranges):
        raise ConnectorFailure(
            f"the target has {', '.join(map(str, sorted(ahead)))} of this batch and not the rest of it: its "
            "positions were changed while the connector ran"
        )
    return bool(ahead)
