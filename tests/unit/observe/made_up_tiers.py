"""Looks at clusters whose topics have history in an object store: well, and while the store is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from headrace.client.broker_health import BrokerHealth
from headrace.client.log_dirs import ReplicaFiles
from headrace.client.topics import TopicState
from headrace.config.health import TIER_FAILURE, TIER_LATE_SECONDS
from headrace.config.tier_report import LedTier
from headrace.config.tiering import ForkPoint
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import AllEnds, Ends
from headrace.observe.look import Look
from headrace.observe.tiers import TieredTopic, TierOffsets, Tiers
from tests.unit.observe.made_up import FIGURES, look, topic

BYTES: Final = 400
"""Of each record."""
FAILURE: Final = "the object store does not answer: http://127.0.0.1:8333: no answer within 30 s"
STOPPED: Final = "the manifest was there, and is gone"
PLAIN: Final = TieredTopic(True, None)
ORIGIN: Final = UUID(int=77)


def tiered_look(at: int = 0) -> Look:
    """Orders wait a little, clicks have nothing of their own on disks but what is written, ledger has one
    partition, a copy of it is a fork, legacy is copied no more, and sessions are not tiered."""
    topics = _topics()
    settings = {
        "clicks": PLAIN,
        "ledger": PLAIN,
        "ledger-test": TieredTopic(True, ForkPoint(ORIGIN, (80_000,))),
        "legacy": TieredTopic(False, None),
        "orders": PLAIN,
        "young": PLAIN,
    }
    places = {
        # start, local start, in the store to, sealed to, end
        "clicks": (5_000_000, 8_900_000, 8_990_000, 8_990_000, 9_000_000),
        "ledger": (0, 60_000, 90_000, 90_000, 100_000),
        "ledger-test": (0, 80_000, 80_000, 80_000, 81_000),
        "legacy": (0, 500, 700, 900, 1000),
        "orders": (100_000, 700_000, 880_000, 980_000, 1_000_000),
        "young": (0, 0, 0, 0, 0),
    }
    return _with_tiers(look(3, topics, at=at), settings, places)


def outage_look(at: int = 0) -> Look:
    """The store fails for two brokers, the third does not answer, and one partition waits for somebody."""
    made = tiered_look(at)
    assert not isinstance(made.health, Unknown)
    assert not isinstance(made.tiers, Unknown)
    failing = BrokerHealth(True, {**FIGURES, TIER_FAILURE: FAILURE, TIER_LATE_SECONDS: "4000"})
    silent = {place for place, number in _leaders(made.topics).items() if number == 3}
    led = {}
    for place, each in made.tiers.led.items():
        if place.topic == "orders":
            each = each._replace(waiting_ms=4_000_000)
        if place == TopicPartition("ledger", 0):
            each = each._replace(stopped=STOPPED)
        led[place] = each
    tiers = made.tiers._replace(
        led={place: each for place, each in led.items() if place not in silent},
        offsets={place: each for place, each in made.tiers.offsets.items() if place not in silent},
    )
    ends = {place: each for place, each in made.all_ends.ends.items() if place not in silent}
    health = made.health._replace(brokers={1: failing, 2: failing, 3: BrokerHealth(False)})
    return made._replace(tiers=tiers, health=health, all_ends=AllEnds(ends, {3: "it does not answer"}))


def _topics() -> list[TopicState]:
    made = [
        topic("orders", 6, (1, 2, 3), 3),
        topic("clicks", 3, (2, 1), 2),
        topic("ledger", 1, (1, 2, 3), 3)._replace(topic_id=ORIGIN),
        topic("ledger-test", 1, (2, 1, 3), 3),
        topic("legacy", 1, (2, 3), 2),
        topic("young", 1, (1,), 1),
        topic("sessions", 3, (1, 2, 3), 3),
        topic("__consumer_offsets", 1, (1,), 1),
    ]
    return sorted(made)


def _leaders(topics: Sequence[TopicState]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(each.name, state.partition): state.leader
        for each in topics
        for state in each.partitions
    }


def _with_tiers(
    made: Look, settings: dict[str, TieredTopic], places: dict[str, tuple[int, int, int, int, int]]
) -> Look:
    assert not isinstance(made.health, Unknown)
    ends, offsets, led = dict(made.all_ends.ends), {}, {}
    for each in made.topics:
        if each.name not in places:
            continue
        start, local, tiered, sealed, end = places[each.name]
        for state in each.partitions:
            place = TopicPartition(each.name, state.partition)
            more = 1000 * state.partition if end else 0
            ends[place] = Ends(start, end + more, end + more)
            offsets[place] = TierOffsets(local, tiered - 1)
            waits = sealed > tiered and settings[each.name].is_copied
            led[place] = LedTier(
                state.partition,
                BYTES * (tiered - start),
                BYTES * (end + more - local),
                sealed,
                BYTES * (sealed - tiered) if waits else 0,
                (sealed - tiered) // 10_000 if waits else 0,
                95_000 if waits else 0,
                "",
            )
    files = made.files
    assert not isinstance(files, Unknown)
    directories = {
        number: [
            each._replace(
                replicas={
                    place: ReplicaFiles(led[place].local_bytes if place in led else of.size, 0)
                    for place, of in each.replicas.items()
                }
            )
            for each in theirs
        ]
        for number, theirs in files.directories.items()
    }
    figures = {**FIGURES, TIER_FAILURE: "", TIER_LATE_SECONDS: "95"}
    health = made.health._replace(brokers=dict.fromkeys(made.health.brokers, BrokerHealth(True, figures)))
    return made._replace(
        all_ends=AllEnds(ends, {}),
        tiers=Tiers(settings, offsets, led),
        health=health,
        files=files._replace(directories=directories),
    )
