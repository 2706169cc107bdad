"""Who gives up its log when the leader has another: nobody who may lead after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.replicas.directory_choices import LOST
from headrace.broker.storage.quarantine import Quarantine
from headrace.core.ids import TopicPartition
from headrace.log.claims_file import FirstBatch

LEADER, HERE, THIRD = 1, 2, 3
DOUBTFUL = FirstBatch(7, 99)
TOPIC_ID = UUID(int=7)


class Log:
    closed = False
    doubtful = DOUBTFUL

    def __init__(self, lost_manifest: bool) -> None:
        self.manifest = SimpleNamespace(replaces_lost=lost_manifest)
        self.vouched: list[FirstBatch | None] = []

    def vouch(self, doubtful: FirstBatch | None = None) -> None:
        self.vouched.append(doubtful)


def quarantine_of(
    isr: tuple[int, ...], elr: tuple[int, ...], given_up: list[Any], declared: list[Any]
) -> Quarantine:
    loop = SimpleNamespace(call_soon=lambda *call: given_up.append(call))
    topic = SimpleNamespace(isr=lambda _: isr, exceptional=lambda _: SimpleNamespace(elr=elr))
    metadata = SimpleNamespace(image=SimpleNamespace(topic_by_id=lambda _: topic))
    log = SimpleNamespace(warning=lambda *_, **__: None)
    runtime = SimpleNamespace(broker_id=HERE, loop=loop, is_standalone=False, log=log)
    replicas = SimpleNamespace(directories=SimpleNamespace(declare=lambda *said: declared.append(said)))
    nothing = cast(Any, None)
    return Quarantine(cast(Any, runtime), cast(Any, metadata), nothing, nothing, cast(Any, replicas), nothing)


def disagreement(
    isr: tuple[int, ...], elr: tuple[int, ...], lost_manifest: bool = False, **said: bool
) -> tuple[int, Log]:
    """How often the log is given up, and the log."""
    given_up: list[Any] = []
    quarantine = quarantine_of(isr, elr, given_up, [])
    log = Log(lost_manifest)
    partition = SimpleNamespace(
        log=log,
        leader_id=LEADER,
        topic_id=None,
        topic_partition=TopicPartition("t", 0),
        isr=isr,
        **{"cannot_compare": False, "is_out_of_reach": False, **said},
    )
    quarantine.disagree(cast(Any, partition))
    return len(given_up), log


@pytest.mark.parametrize(
    ("isr", "elr", "given_up"),
    [((LEADER, THIRD), (), 1), ((LEADER,), (THIRD,), 1), ((LEADER, HERE), (), 0), ((LEADER,), (HERE,), 0)],
    ids=["out of sync", "another is eligible", "in sync", "eligible"],
)
def test_whoever_may_lead_keeps_its_log(isr: tuple[int, ...], elr: tuple[int, ...], given_up: int) -> None:
    """The leader alone was left, and damaged: the only good copy had given itself up on its word."""
    times, log = disagreement(isr, elr)
    assert (times, log.vouched) == (given_up, [])


def test_who_is_eligible_gives_up_a_log_whose_manifest_was_damaged_too() -> None:
    """It waited for ever, in doubt and not in sync."""
    assert disagreement((LEADER, THIRD), (HERE,), lost_manifest=True)[0] == 1


def test_who_is_eligible_begins_anew_where_the_leader_has_deleted_what_there_was_to_compare() -> None:
    assert disagreement((LEADER, THIRD), (HERE,), is_out_of_reach=True)[0] == 1


@pytest.mark.parametrize(
    ("isr", "elr", "vouched"),
    [((LEADER,), (HERE,), [DOUBTFUL]), ((LEADER,), (HERE, THIRD), []), ((LEADER, THIRD), (), [])],
    ids=["alone", "with another", "not eligible"],
)
def test_what_the_leader_has_lost_is_vouched_for_by_the_only_one_who_may_lead(
    isr: tuple[int, ...], elr: tuple[int, ...], vouched: list[FirstBatch]
) -> None:
    times, log = disagreement(isr, elr, cannot_compare=True)
    assert (times, log.vouched) == (0, vouched)


@pytest.mark.parametrize(
    ("isr", "elr", "doubtful", "lost", "refused"),
    [
        ((HERE,), (THIRD,), DOUBTFUL, True, True),
        ((HERE, THIRD), (), DOUBTFUL, True, True),
        ((HERE,), (), DOUBTFUL, True, False),
        ((HERE,), (THIRD,), DOUBTFUL, False, False),
        ((HERE,), (THIRD,), None, True, False),
    ],
    ids=["another is eligible", "another is in sync", "the only one", "after a crash", "compared since"],
)
def test_who_lost_its_manifest_leaves_the_lead_to_others_who_may(
    isr: tuple[int, ...], elr: tuple[int, ...], doubtful: FirstBatch | None, lost: bool, refused: bool
) -> None:
    """It led with a segment of another partition, and consumers were given that."""
    declared: list[Any] = []
    quarantine = quarantine_of(isr, elr, [], declared)
    log = SimpleNamespace(path="/data/t-0", doubtful=doubtful, manifest=SimpleNamespace(replaces_lost=lost))
    partition = SimpleNamespace(log=log, topic_id=TOPIC_ID, topic_partition=TopicPartition("t", 0))
    assert quarantine.refuses_doubt(cast(Any, partition)) is refused
    assert declared == ([(TOPIC_ID, 0, LOST)] if refused else [])
