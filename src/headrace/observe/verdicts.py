"""Follows what the audit says, beside the looks: a long topic is read once, and keeps no look waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from headrace.audit.verdict import Verdict
from headrace.audit.verdict_topic import VerdictReader
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.offsets import partitions_of
from headrace.core.errors import HeadraceError
from headrace.doctor.model import Unknown
from headrace.protocol.error_codes import ErrorCode

_SECONDS: Final = 5.0
Verdicts = Mapping[tuple[str, int], Verdict]


class VerdictFollower:
    """`seen` is what was read to the end of the topic; None while there is no such topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self.seen: Verdicts | Unknown | None = None

    async def follow(self) -> None:
        reader: VerdictReader | None = None
        try:
            while True:
                try:
                    # The topic alone is asked for until there is one: a reader that polls holds a connection.
                    await partitions_of(self._cluster, self._topic)
                    reader = reader or VerdictReader(self._cluster, self._topic)
                    self.seen = dict(await reader.catch_up())
                except ClientFailure as error:
                    self.seen = None if _is_absent(error) else Unknown(f"the audit's verdicts: {error}")
                except HeadraceError as error:
                    self.seen = Unknown(f"the audit's verdicts: {error}")
                await asyncio.sleep(_SECONDS)
        finally:
            if reader is not None:
                await reader.close()


def _is_absent(error: ClientFailure) -> bool:
    return isinstance(error, Refused) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
