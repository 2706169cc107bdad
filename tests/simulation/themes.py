"""Seeds of a character: each has a theme, which brings together what chance alone keeps apart.

Seeds below FIRST_THEMED know nothing of themes, so that the number of an older run still means that run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.simulation.generator import Plan

FIRST_THEMED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Theme:
    name: str
    coincidences: tuple[str, ...]
    beside: tuple[str, ...]
    """Ordinary faults that go with them; some of them are drawn."""
    pause: tuple[float, ...] = (0.05, 0.1, 0.3)
    """Of the producers: some mistakes need a busy partition, and some a quiet one."""
    brokers: tuple[int, ...] = (3, 3, 4)
    partitions: tuple[int, ...] = (1, 2, 3)
    directories: int = 1
    synced: bool | None = None
    """None: as it is drawn."""
    gap: tuple[float, ...] = (0.7, 1.5, 3.0)


THEMES: Final = (
    Theme(
        "late proposals",
        ("late ISR change", "overtaken ISR change"),
        ("suspect", "prefer", "stall", "reset", "one way", "bounce"),
    ),
    Theme(
        "decisions that nobody hears of",
        ("unheard ISR change",),
        ("suspect", "doubt", "reset", "bounce", "stall"),
        pause=(0.05, 0.1),
        brokers=(4,),
        partitions=(3, 4),
    ),
    Theme(
        "forgetful followers in quiet",
        ("forgetful follower",),
        ("power", "new disk", "slow path", "one way", "suspect"),
        pause=(1.0, 2.0, 4.0),
    ),
    Theme(
        "quick restarts, late words",
        ("late farewell", "late ISR change"),
        ("stop", "bounce", "stall", "slow path", "no ensemble"),
    ),
    Theme(
        "leaders that come back",
        ("same leader again",),
        ("suspect", "prefer", "stall", "slow path"),
        pause=(0.05, 0.1),
        gap=(2.0, 3.0),
    ),
    Theme(
        "two disks",
        ("directory lost at a stop",),
        ("kill", "stop", "bounce", "suspect", "power"),
        directories=2,
        partitions=(2, 3),
        gap=(1.5, 3.0),
    ),
    Theme(
        "only what is synced",
        ("power everywhere", "slow disk"),
        ("power", "bounce", "suspect", "stall"),
        synced=True,
        gap=(0.7, 1.5),
    ),
)


def draw_themed(random: Random) -> Plan:
    theme = random.choice(THEMES)
    plan = Plan.draw(random)
    beside = tuple(random.sample(theme.beside, k=random.randint(0, 3)))
    return replace(
        plan,
        brokers=random.choice(theme.brokers),
        partitions=random.choice(theme.partitions),
        pause=random.choice(theme.pause),
        seconds=random.uniform(8.0, 20.0),
        synced=plan.synced if theme.synced is None else theme.synced,
        faults=theme.coincidences + beside,
        gap=random.choice(theme.gap),
        directories=theme.directories,
        theme=theme.name,
    )
