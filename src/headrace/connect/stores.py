"""The two topics that all workers follow: configurations, which any of them may write, and statuses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from headrace.client.errors import ClientFailure
from headrace.client.producer import Producer
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.client.state_topic import Pair, StateTopic
from headrace.client.topic_follower import TopicFollower
from headrace.connect import errors
from headrace.connect.cluster_config import ClusterConfig
from headrace.connect.config_records import TURN, Entry, LoggerLevel, decode, encode
from headrace.connect.errors import ConnectError
from headrace.connect.statuses import Statuses
from headrace.protocol.records import NewRecord, Record

T = TypeVar("T")
log: Final = logging.getLogger("headrace.connect")
_CLIENT: Final = "headrace-connect"


class Topics(NamedTuple):
    configs: str = "connect-configs"
    statuses: str = "connect-status"
    offsets: str = "connect-offsets"
    """Positions of sources: the decisions of their batches (docs/adr/0025-connect.md)."""


class ConfigStore(StateTopic):
    def __init__(
        self, bootstrap: str, topic: str, *, timeout: float = 30.0, security: ClientSecurity = PLAINTEXT
    ) -> None:
        super().__init__(
            bootstrap,
            topic,
            what="configurations",
            client_id=f"{_CLIENT}-configs",
            log=log,
            timeout=timeout,
            security=security,
        )
        self.state = ClusterConfig()
        self.on_level: Callable[[LoggerLevel], None] = lambda _: None
        """Called for each wish that comes, also for those from before the start."""
        self.transactional_id = f"headrace-connect-{topic}"

    async def write(self, decide: Callable[[ClusterConfig], tuple[Sequence[Entry], T]]) -> T:
        """The answer of `decide`, once its records are in the topic and in the state. It is asked again if
        the state that it decided on is not the newest. Raises ConnectError, also what `decide` raises."""

        def decided() -> tuple[list[Pair], T]:
            entries, answer = decide(self.state)
            return [encode(each) for each in entries], answer

        return await self.write_pairs(decided)

    def apply(self, record: Record) -> None:
        entry = decode(record.key, record.value)
        if isinstance(entry, LoggerLevel):
            self.on_level(entry)
        elif entry is not None:
            self.state.replay(entry, record.offset)

    def turn_record(self) -> Pair:
        return TURN

    def failure(self, reason: str, *, perhaps_written: bool) -> ConnectError:  # noqa: ARG002 - the reason says it
        return errors.failed(reason)

    def too_large(self, reason: str) -> ConnectError:
        return errors.bad_request(f"the configuration is too large: {reason}")


class StatusStore(TopicFollower):
    def __init__(
        self, bootstrap: str, topic: str, *, timeout: float = 30.0, security: ClientSecurity = PLAINTEXT
    ) -> None:
        super().__init__(
            bootstrap,
            topic,
            what="statuses",
            client_id=f"{_CLIENT}-status",
            log=log,
            timeout=timeout,
            security=security,
        )
        self.state = Statuses()
        self._producer = Producer(self._writing)

    async def tell(self, pairs: Sequence[Pair], now_ms: int) -> None:
        """Into the topic. A status that cannot be written is told of and left: work is worth more."""
        if not pairs:
            return
        records = [NewRecord(value, key, now_ms) for key, value in pairs]
        try:
            await self._producer.send_batch(self.partition, records)
        except ClientFailure as error:
            self.complain("a status cannot be written", error=str(error))

    def apply(self, record: Record) -> None:
        self.state.replay(record.key, record.value)
