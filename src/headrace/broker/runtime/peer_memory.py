"""The memory that one broker spends on its peers: a whole, and the part of each kind of state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from headrace.config.broker import BrokerConfig
from headrace.core.memory import MemoryShare

PART_OF_MACHINE: Final = 4
"""The rest is for the page cache, the metadata, and other brokers of the same machine."""
REQUESTS: Final = 40
ANSWERS: Final = 15
FETCH_SESSIONS: Final = 10
GROUPS: Final = 15
TRANSACTIONS: Final = 10
PRODUCERS: Final = 4
OFFSETS: Final = 4
HELD: Final = 1
ANSWER_CACHE: Final = 1


class PeerMemory:
    __slots__ = (
        "_count_held",
        "answer_cache",
        "answers",
        "fetch_sessions",
        "groups",
        "held",
        "offsets",
        "producers",
        "requests",
        "transactions",
    )

    def __init__(self, config: BrokerConfig, machine_bytes: int) -> None:
        whole = config.headrace_peer_memory_bytes
        if whole < 0:
            whole = machine_bytes // PART_OF_MACHINE

        def share(kind: str, percent: int, given: int) -> MemoryShare:
            return MemoryShare(kind, given if given > 0 else whole * percent // 100)

        self.requests = share("requests", REQUESTS, config.queued_max_request_bytes)
        self.answers = share("unsent answers", ANSWERS, config.headrace_unsent_answer_bytes)
        self.fetch_sessions = share("fetch sessions", FETCH_SESSIONS, config.headrace_fetch_session_bytes)
        self.groups = share("groups", GROUPS, config.headrace_group_state_bytes)
        self.transactions = share("transactions", TRANSACTIONS, config.headrace_transaction_state_bytes)
        self.producers = share("producers", PRODUCERS, config.headrace_producer_state_bytes)
        self.offsets = share("committed offsets", OFFSETS, config.headrace_committed_offset_bytes)
        self.held = share("held requests", HELD, config.headrace_held_request_bytes)
        self.answer_cache = share("cached answers", ANSWER_CACHE, config.headrace_answer_cache_bytes)
        self._count_held: Callable[[], int] = lambda: 0
        """What is held is counted when somebody asks: each request that waits would have to pay for it."""

    def count_held_by(self, count: Callable[[], int]) -> None:
        self._count_held = count

    def __iter__(self) -> Iterator[MemoryShare]:
        yield self.requests
        yield self.answers
        yield self.fetch_sessions
        yield self.groups
        yield self.transactions
        yield self.producers
        yield self.offsets
        self.held.used_bytes = self._count_held()
        yield self.held
        yield self.answer_cache
