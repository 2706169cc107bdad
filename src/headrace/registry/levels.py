"""Compatibility levels, and what each demands of a new schema."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from headrace.registry.parsed import Parsed


class Level(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier versions count, or only the last."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Consumers with the new schema must be able to read what is there."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Consumers that still have an earlier schema must be able to read what comes."""
        return self.value.startswith(("FORWARD", "FULL"))


DEFAULT = Level.BACKWARD


def objections(level: Level, new: Parsed, earlier: Sequence[tuple[int, Parsed]]) -> list[str]:
    """Why the new schema breaks the level, with the version that it breaks with; nothing if it does not.

    `earlier` are (version, schema) from the oldest to the newest. From the newest back, the first version
    that objects is told.
    """
    for version, old in reversed(earlier if level.transitive else earlier[-1:]):
        found = []
        if level.backward:
            found += [
                f"{{the new schema cannot read version {version}: {reason}}}" for reason in _reasons(new, old)
            ]
        if level.forward:
            found += [
                f"{{version {version} cannot read the new schema: {reason}}}" for reason in _reasons(old, new)
            ]
        if found:
            return [*found, f"{{compatibility: '{level}'}}"]
    return []


def _reasons(reader: Parsed, writer: Parsed) -> list[str]:
    if type(reader) is not type(writer):
        return ["Incompatible because of different schema type"]
    try:
        return reader.cannot_read(writer)
    except RecursionError:
        return ["the schemas are nested too deeply to be compared"]
