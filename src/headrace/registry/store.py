"""The registry's state over its topic: follows the log, and writes to it as the only one that may."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.client.state_topic import Pair, StateTopic
from headrace.protocol.records import Record
from headrace.registry import errors
from headrace.registry.decision import Decision
from headrace.registry.deleting import highest_id
from headrace.registry.errors import RegistryError
from headrace.registry.records import UnreadableRecord, decode
from headrace.registry.state import State

T = TypeVar("T")
log = logging.getLogger("headrace.registry")


class Store(StateTopic):
    """Use `open`, then `state` for reading and `write` for changes, and `close`."""

    def __init__(
        self, bootstrap: str, topic: str, *, timeout: float = 30.0, security: ClientSecurity = PLAINTEXT
    ) -> None:
        super().__init__(
            bootstrap,
            topic,
            what="schemas",
            client_id="headrace-registry",
            log=log,
            timeout=timeout,
            security=security,
        )
        self.state = State()
        self.transactional_id = f"headrace-registry-{topic}"

    async def write(self, decide: Callable[[State], Decision[T]]) -> T:
        """The answer of `decide`, once its records are in the topic and in the state.

        It is asked again whenever the state that it decided on is not the newest any more.
        """
        # Most registrations are of schemas that are there. They need no turn.
        try:
            decision = decide(self.state)
        except errors.RegistryError:
            pass  # perhaps only because the state is behind
        else:
            if not decision.records:
                return decision.answer

        def decided() -> tuple[list[Pair], T]:
            decision = decide(self.state)
            return [entry.encode() for entry in decision.records], decision.answer

        return await self.write_pairs(decided)

    def apply(self, record: Record) -> None:
        try:
            entry = decode(record.key, record.value)
        except UnreadableRecord as error:
            # One bad record must not hide all the others, and it cannot be taken back either.
            self.complain(
                "a record cannot be read and is passed over", offset=record.offset, error=str(error)
            )
            return
        if entry is not None:
            self.state.replay(entry)

    def turn_record(self) -> Pair:
        return highest_id(self.state).encode()

    def failure(self, reason: str, *, perhaps_written: bool) -> RegistryError:
        return (errors.store_timed_out if perhaps_written else errors.store_failed)(reason)

    def too_large(self, reason: str) -> RegistryError:
        return errors.schema_too_large(reason)
