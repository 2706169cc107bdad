"""What one connector was told, with values of the right types: what its class is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.connect.settings import Settings


@dataclass(frozen=True)
class Config:
    """Travels to Spark's tasks, so it holds data only. Its repr shows no secret."""

    name: str
    """The connector's, unique on the cluster."""
    values: Mapping[str, Any] = field(repr=False)
    """Of each setting that its class declares, and of those of every connector. Secrets are in clear."""
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All that was said, as text, also under names that nobody declared; secrets are in clear."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How the worker reaches the brokers: `bootstrap.servers` and what security needs. For connectors that
    read or write topics besides what the runtime does for them."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        found = self.values.get(name)
        return default if found is None else found

    def text(self, name: str) -> str:
        """A setting that has a value. KeyError where it has none."""
        found = self.values[name]
        if found is None:
            raise KeyError(name)
        return str(found)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """What was given under names that begin so, without the prefix: for settings that are another's."""
        return {name[len(prefix) :]: value for name, value in self.given.items() if name.startswith(prefix)}


def config_of(
    name: str, settings: Settings, given: Mapping[str, str], kafka: Mapping[str, str] | None = None
) -> Config:
    """Raises BadSetting."""
    return Config(name, settings.parse(given), dict(given), dict(kafka or {}))
