"""How far a mirror is, as the offsets of a consumer group at its source: whatever shows the lag of groups
shows the mirror's. The position is the truth; a commit that fails is made up for by the next.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.group_offsets import commit_offsets
from headrace.core.ids import TopicPartition
from headrace.spark.lake.checkpoint import Offsets

_log = logging.getLogger(__name__)
#: Brokers forget the offsets of a group without members, by default after seven days.
_AGAIN_SECONDS: Final = 600.0


class GroupAtSource:
    def __init__(self, source: Cluster, group: str) -> None:
        self._source = source
        self._group = group
        self._told: Offsets = {}
        self._told_at = float("-inf")
        self._failing = False

    async def tell(self, offsets: Offsets) -> None:
        """Often: nothing happens without news."""
        now = time.monotonic()
        if not offsets or (offsets == self._told and now - self._told_at < _AGAIN_SECONDS):
            return
        try:
            wanted = {TopicPartition(*partition): offset for partition, offset in offsets.items()}
            await commit_offsets(self._source, self._group, wanted)
        except ClientFailure as error:
            if not self._failing:
                _log.warning("%s; the mirror goes on, and its group is told again", error)
            self._failing = True
            return
        self._told, self._told_at, self._failing = offsets, now, False
