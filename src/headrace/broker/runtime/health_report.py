"""What a broker tells of its own health: a few named figures, each with what it means.

They travel as settings of the broker that nobody can set. DescribeConfigs gives them to whoever asks for the
name `headrace.health`, and to nobody else: Kafka's clients and tools see nothing new, another broker answers
the same question with an empty list, and whoever may describe a broker may see how it is.

Add a figure with `add`; `headrace cluster status` and other readers find it under its name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from headrace.config.health import HEALTH


class Figure(NamedTuple):
    name: str
    value: str
    means: str


class HealthReport:
    def __init__(self) -> None:
        self._figures: dict[str, tuple[Callable[[], object], str]] = {}
        self._looks: list[Callable[[], Awaitable[object]]] = []

    def add(self, name: str, read: Callable[[], object], means: str) -> None:
        """`read` is called for each report, on the loop: it must be quick. None is not told."""
        self._figures[name] = (read, means)

    def look_first(self, look: Callable[[], Awaitable[object]]) -> None:
        """Await `look` before each report, for what is only known when somebody asks. It must end soon."""
        self._looks.append(look)

    async def tell(self) -> list[Figure]:
        for look in self._looks:
            await look()
        told = []
        for name, (read, means) in self._figures.items():
            value = read()
            if value is not None:
                told.append(Figure(f"{HEALTH}.{name}", _text(value), means))
        return told


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
