"""What the HTTP routes call: the store, the formats, and the operations on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.registry import registering
from headrace.registry.content import Content
from headrace.registry.decision import Decision
from headrace.registry.formats import Formats
from headrace.registry.registering import Submission
from headrace.registry.state import Registered, State
from headrace.registry.store import Store

T = TypeVar("T")


class Service:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.formats = Formats()

    @property
    def state(self) -> State:
        return self._store.state

    async def write(self, decide: Callable[[State], Decision[T]]) -> T:
        return await self._store.write(decide)

    async def register(self, subject: str, submission: Submission) -> Registered:
        return await self.write(lambda state: registering.register(state, self.formats, subject, submission))

    def look_up(self, subject: str, submission: Submission, *, deleted: bool) -> Registered:
        return registering.look_up(self.state, self.formats, subject, submission, deleted=deleted)

    def objections(self, subject: str, submission: Submission, version: int | None) -> list[str]:
        return registering.compatibility(self.state, self.formats, subject, submission, version)

    def text(self, content: Content, format_name: str | None) -> str:
        """The schema's text, in another form if one is asked for."""
        if not format_name:
            return content.text
        return self.formats.parse(self.state, content).formatted(format_name)
