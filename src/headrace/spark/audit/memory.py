"""What an audit knows from pass to pass beside its tallies: who produces, and on which terms it began.

It is written down with every pass. So neither a restart nor another option changes what windows mean that are
not settled yet.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from headrace.spark.audit import roster as rosters
from headrace.spark.audit.config import AuditConfig, AuditRefused
from headrace.spark.audit.roster import Roster


@dataclass
class Memory:
    roster: Roster = field(default_factory=Roster)
    window_ms: int | None = None
    #: The first window of each topic that is judged. None: whatever the topic holds.
    since: dict[str, int | None] = field(default_factory=dict)

    def agree(self, config: AuditConfig) -> None:
        """The first word stands. The log was read from there, and counted in those windows."""
        if self.window_ms is None:
            self.window_ms = config.window_ms
        if self.window_ms != config.window_ms:
            raise AuditRefused(
                f"{config.state} has windows of {self.window_ms} ms, not of {config.window_ms} ms: "
                "leave them as they are, or give the audit a new --state"
            )
        for topic in config.topics:
            self.since.setdefault(topic, config.since_ms)

    def encode(self) -> str:
        document = {"window_ms": self.window_ms, "since": self.since, "roster": self.roster.encode()}
        return json.dumps(document, separators=(",", ":"))


def decode(text: str | None) -> Memory:
    if text is None:
        return Memory()
    document = json.loads(text)
    try:
        return Memory(rosters.decode(document["roster"]), document["window_ms"], document["since"])
    except (KeyError, TypeError) as error:
        raise AuditRefused(
            "another version of the audit has written these books: give this one a new --state"
        ) from error
