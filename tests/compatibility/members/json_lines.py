"""Members inside the programs around clients of other languages."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Collection, Mapping
from typing import Any

from tests.compatibility.clients.json_lines import JsonLinesClient
from tests.compatibility.members.member import HEARTBEAT_MS, Committed, Member, Membership, Read

_numbers = itertools.count()


class JsonLinesMember(Member):
    def __init__(self, program: JsonLinesClient, wanted: Membership) -> None:
        super().__init__()
        self._program = program
        self.name = f"member-{next(_numbers)}"
        self._assigned: set[int] = set()
        self._ask(
            "join",
            **wanted._asdict(),
            session_ms=wanted.session_ms,
            heartbeat_ms=HEARTBEAT_MS,
        )

    def _ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        return self._program.operate(operation, member=self.name, **arguments)

    def poll(self, seconds: float) -> list[Read]:
        answer = self._ask("poll", timeout_ms=int(seconds * 1000))
        self._assigned = set(answer["assignment"])
        self.revoked += [set(one) for one in answer["revoked"]]
        return [
            Read(one["partition"], one["offset"], base64.b64decode(one["value"])) for one in answer["records"]
        ]

    def assignment(self) -> set[int]:
        return self._assigned

    def commit(self, offsets: Mapping[int, int], metadata: str) -> None:
        self._ask("commit", offsets={str(at): one for at, one in offsets.items()}, metadata=metadata)

    def committed(self, partitions: Collection[int]) -> dict[int, Committed]:
        found = self._ask("committed", parts=sorted(partitions))["committed"]
        return {int(at): Committed(one["offset"], one["metadata"]) for at, one in found.items()}

    def seek(self, partition: int, offset: int) -> None:
        self._ask("seek", partition=partition, offset=offset)

    def pause(self, partition: int) -> None:
        self._ask("pause", partition=partition)

    def resume(self, partition: int) -> None:
        self._ask("resume", partition=partition)

    def close(self) -> None:
        self._ask("leave")
