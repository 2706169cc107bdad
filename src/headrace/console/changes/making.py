"""Makes a change: the plan once more, and only if it is the one that was agreed to. One after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigEntry
from headrace.client.errors import ClientFailure, ConnectionLost, TimedOut
from headrace.client.security import ClientSecurity
from headrace.config.secret import Secret
from headrace.console.changes.confirmations import Confirmations
from headrace.console.changes.journal import Entry, Journal, Outcome
from headrace.console.changes.planned import Plan, Planned
from headrace.console.changes.topics import settings_of

SECONDS: Final = 30.0
"""That a broker has for an answer."""


class Actor(NamedTuple):
    """Whoever asks for a change."""

    principal: str
    host: str
    login: tuple[str, Secret] | None = None
    """With which the console logs in at the brokers for them. None: as the console's own user."""


class Yes(NamedTuple):
    """What came with the button."""

    confirmation: str
    typed: str


class NotAgreed(Exception):
    """Nothing was changed; says why, and has the plan of now."""

    def __init__(self, sentence: str, planned: Planned) -> None:
        super().__init__(sentence)
        self.planned = planned


class Changes:
    """Of one console, if it may change anything."""

    def __init__(self, connect: Callable[[ClientSecurity], Cluster], security: ClientSecurity) -> None:
        self.journal = Journal()
        self._connect = connect
        self.security = security
        self._confirmations = Confirmations()
        self._turn = asyncio.Lock()

    def cluster(self, actor: Actor) -> Cluster:
        """With the rights of whoever asks."""
        if actor.login is None:
            return self._connect(self.security)
        return self._connect(self.security.as_user(*actor.login))

    async def plan(self, actor: Actor, plan: Plan, name: str, fields: Mapping[str, str]) -> Planned:
        """Raises ClientFailure."""
        async with self.cluster(actor) as cluster:
            return await plan(cluster, name, fields)

    async def settings(self, actor: Actor, topic: str) -> list[ConfigEntry]:
        """Raises ClientFailure."""
        async with self.cluster(actor) as cluster:
            return await settings_of(cluster, topic)

    def question(self, actor: Actor, path: str, planned: Planned) -> str:
        return self._confirmations.make(actor.principal, path, planned.fingerprint)

    async def make(
        self, actor: Actor, path: str, plan: Plan, name: str, fields: Mapping[str, str], yes: Yes
    ) -> int:
        """The number of its entry. Raises NotAgreed, and ClientFailure where not even a plan can be made."""
        async with self._turn:
            before = self._confirmations.change_of(yes.confirmation)
            if before is not None:
                return before
            async with self.cluster(actor) as cluster:
                planned = await plan(cluster, name, fields)
                self._require(actor, path, planned, yes)
                entry = self.journal.begin(_now_ms(), actor.principal, actor.host, planned)
                self._confirmations.use(yes.confirmation, entry.number)
                await self._carry_out(cluster, entry, planned)
                entry.left = None if planned.adds else await _left(cluster, plan, name, fields)
            return entry.number

    def _require(self, actor: Actor, path: str, planned: Planned, yes: Yes) -> None:
        if planned.refused or planned.changes_nothing:
            raise NotAgreed("Nothing was changed.", planned)
        if not self._confirmations.fits(yes.confirmation, actor.principal, path, planned.fingerprint):
            raise NotAgreed(
                "Nothing was changed: the cluster has changed since the plan was shown, or the console was"
                " started anew. This is the plan of now.",
                planned,
            )
        if planned.typed and yes.typed.strip() != planned.typed:
            raise NotAgreed(f"Nothing was changed: {planned.subject.words} has another name.", planned)

    async def _carry_out(self, cluster: Cluster, entry: Entry, planned: Planned) -> None:
        outcome, said = Outcome.UNKNOWN, "The console was stopped, or failed, before it heard the end."
        try:
            await planned.run(cluster, entry.steps.append)
            outcome, said = Outcome.DONE, ""
        except (ConnectionLost, TimedOut) as error:
            said = _sentence(error)
        except ClientFailure as error:
            outcome, said = Outcome.FAILED, _sentence(error)
        finally:
            self.journal.end(entry, _now_ms(), outcome, said)


async def _left(cluster: Cluster, plan: Plan, name: str, fields: Mapping[str, str]) -> list[str] | None:
    """What the same plan would still do. A topic that is gone cannot be looked at."""
    try:
        return (await plan(cluster, name, fields)).told
    except ClientFailure:
        return None


def _sentence(error: ClientFailure) -> str:
    hint = f" {error.hint[:1].upper()}{error.hint[1:]}." if error.hint else ""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}.{hint}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
