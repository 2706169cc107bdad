"""A link as a file has it, and as a cluster has it: a copy of another cluster's topic.

Its values have the names of the file: source, topic, client-config, groups and state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.client import links

WIRE_NAMES: Final = {
    "source": links.BOOTSTRAP,
    "topic": links.SOURCE_TOPIC,
    "client-config": links.CLIENT_CONFIG,
    "groups": links.GROUPS,
    "state": links.STATE,
}
STATES: Final = (links.ACTIVE, links.PAUSED)
"""Those that a file may want. No file promotes."""


class Link(NamedTuple):
    source: str
    """Brokers of the other cluster, as those of this one reach them."""
    topic: str
    """Its name there."""
    client_config: str | None = None
    """A file of the brokers: they know how to log in there, and nobody else has to."""
    groups: str = ""
    """Patterns, as `joined` writes them."""
    state: str | None = None
    """None leaves it as it is."""
    replicas: int | None = None
    settings: Mapping[str, str] = {}
    """Of the copy. Those that are not named stay as they came from the source."""
    source_config: str | None = None
    """The file with which whoever makes the link looks at the source."""

    @property
    def values(self) -> dict[str, str]:
        said = {
            "source": self.source,
            "topic": self.topic,
            "client-config": self.client_config,
            "groups": self.groups,
            "state": self.state,
        }
        return {name: value for name, value in said.items() if value}


def joined(patterns: Iterable[str]) -> str:
    """Their order means nothing."""
    return ",".join(sorted({each.strip() for each in patterns} - {""}))


def told(values: Mapping[str, str]) -> dict[str, str]:
    """What a file can say of what the brokers tell of a link."""
    found = {name: values[wire] for name, wire in WIRE_NAMES.items() if values.get(wire)}
    if "groups" in found:
        found["groups"] = joined(found["groups"].split(","))
    return found


def is_promoted(values: Mapping[str, str]) -> bool:
    """Or is being promoted: it is an ordinary topic from then on."""
    return values.get("state") not in STATES
