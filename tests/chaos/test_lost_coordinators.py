"""Clients of transactions go on when the coordinator of their group is lost, without help.

librdkafka 2.16 remembers a coordinator that Metadata has stopped naming, and waits for it without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from tests.chaos.committing_process import CommittingLife
from tests.chaos.conftest import MakeBed
from tests.chaos.killed_process import ToldProcess
from tests.chaos.testbed import Testbed
from tests.cluster_process import eventually
from tests.wire import Wire

pytestmark = pytest.mark.timeout(240)
TOPIC: Final = "with-offsets"
GROUP: Final = "committing"


class Commits:
    def __init__(self) -> None:
        self.count = 0
        self.told: list[dict[str, Any]] = []

    def listen(self, row: dict[str, Any]) -> None:
        self.told.append(row)
        self.count += "committed" in row

    def wait_for_more(self, number: int, seconds: float = 30) -> None:
        enough = self.count + number
        try:
            eventually(lambda: self.count >= enough, seconds, f"{number} more transactions are committed")
        except AssertionError as error:
            error.add_note(f"the client told: {self.told[-5:]}")
            raise


@contextmanager
def committing(bed: Testbed) -> Iterator[Commits]:
    # Led by all three, so that the client is connected to all: a new connection would wake what waits.
    bed.cluster.create_topic(TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
    commits = Commits()
    client = ToldProcess(CommittingLife(bed.cluster.bootstrap, TOPIC, GROUP).arguments(), commits.listen)
    try:
        commits.wait_for_more(6)
        yield commits
    finally:
        client.end(gently=False)


def coordinator(bed: Testbed) -> int:
    broker = next(broker for broker in bed.cluster.brokers.values() if broker.running)
    with Wire(broker.port, host=broker.place.address) as wire:
        found: FindCoordinatorResponse = wire.ask(
            FindCoordinatorRequest(key=GROUP, key_type=0), 3, FindCoordinatorResponse
        )
    assert found.error_code == 0
    return found.node_id


def test_while_the_coordinator_of_its_group_is_gone(make_bed: MakeBed, headrace_only: None) -> None:
    bed = make_bed()
    with committing(bed) as commits:
        victim = coordinator(bed)
        commits.wait_for_more(1)
        bed.cluster.kill(victim)
        commits.wait_for_more(4)
        assert coordinator(bed) != victim
        bed.cluster.restart(victim)
        commits.wait_for_more(4)


def test_after_all_brokers_were_killed(make_bed: MakeBed, headrace_only: None) -> None:
    bed = make_bed()
    with committing(bed) as commits:
        for number in bed.numbers:
            bed.cluster.kill(number)
        bed.heal()
        commits.wait_for_more(4)
