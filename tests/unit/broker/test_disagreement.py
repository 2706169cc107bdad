"""Who gives up its log when the leader has another: nobody who may lead after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.storage.quarantine import Quarantine
from headrace.core.ids import TopicPartition
from headrace.log.claims_file import FirstBatch

LEADER, HERE, THIRD = 1, 2, 3
DOUBTFUL = FirstBatch(7, 99)


class Log:
    closed = False
    doubtful = DOUBTFUL

    def __init__(self) -> None:
        self.vouched: list[FirstBatch | None] = []

    def vouch(self, doubtful: FirstBatch | None = None) -> None:
        self.vouched.append(doubtful)


def disagreement(isr: tuple[int, ...], elr: tuple[int, ...], **said: bool) -> tuple[int, Log]:
    """How often the log is given up, and the log."""
    given_up: list[Any] = []
    loop = SimpleNamespace(call_soon=lambda *call: given_up.append(call))
    topic = SimpleNamespace(isr=lambda _: isr, exceptional=lambda _: SimpleNamespace(elr=elr))
    metadata = SimpleNamespace(image=SimpleNamespace(topic_by_id=lambda _: topic))
    nothing = cast(Any, None)
    quarantine = Quarantine(
        cast(Any, SimpleNamespace(broker_id=HERE, loop=loop)), cast(Any, metadata), *[nothing] * 4
    )
    log = Log()
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
