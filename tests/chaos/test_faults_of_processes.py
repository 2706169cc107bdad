"""Faults of processes, by their numbers in the list of faults that a log must survive."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.chaos.conftest import MakeBed
from tests.chaos.judged import judged
from tests.chaos.raw_produce import RawProducer
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import TOPIC
from tests.checker.history import Outcome

pytestmark = pytest.mark.timeout(240)
#: A topic beside the judged load, led by broker 1: for single records whose fate a test wants to know.
ASIDE = "aside"


def make_aside(bed: Testbed) -> None:
    bed.cluster.create_topic(ASIDE, [[1, 2, 3]], {"min.insync.replicas": "2"})


def test_fault_01_kill_one_then_two_then_all(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed()
    with judged(bed, tmp_path) as load:
        for victims in ([bed.cluster.leader(TOPIC)], [1, 2], [1, 2, 3]):
            load.wait_acknowledged(100)
            for victim in victims:
                bed.cluster.kill(victim)
            time.sleep(1)
            bed.heal()
            load.wait_acknowledged(50)
            # The next round may only take what this one has given back.
            bed.cluster.wait_in_sync(TOPIC)


def test_fault_10_a_stopped_leader_acknowledges_nothing_when_it_wakes(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    bed = make_bed()
    make_aside(bed)
    with judged(bed, tmp_path, [[1, 2, 3]]) as load:
        ignorant = RawProducer(bed, 1)
        bed.cluster.pause(1)
        question = ignorant.send(ASIDE, 0, b"from a client that knows nothing")
        load.wait_leader_other_than(1)
        load.wait_acknowledged(200)
        bed.cluster.resume(1)
        assert ignorant.error_code(question) != 0
        ignorant.close()
        load.wait_acknowledged(100)


def test_fault_17_two_fast_changes_of_leader(make_bed: MakeBed, tmp_path: Path) -> None:
    """Each leader is stopped as soon as it is one, and wakes as soon as it has been replaced."""
    bed = make_bed(properties={"zookeeper.session.timeout.ms": "2000"})
    with judged(bed, tmp_path, [[1, 2, 3]], rate=500) as load:
        leader = bed.cluster.leader(TOPIC)
        for _ in range(2):
            bed.cluster.kill(leader)
            following = load.wait_leader_other_than(leader)
            bed.cluster.restart(leader, wait=False)
            leader = following
        for _ in range(2):
            bed.cluster.wait_in_sync(TOPIC)
            bed.cluster.pause(leader)
            following = load.wait_leader_other_than(leader)
            bed.cluster.resume(leader)
            leader = following
        load.wait_acknowledged(100)


def test_fault_23_a_rolling_restart_fails_no_write(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed()
    with judged(bed, tmp_path) as load:
        for number in bed.numbers:
            load.wait_acknowledged(50)
            bed.cluster.terminate(number)
            assert bed.cluster.wait_ended(number) in (0, 143)
            bed.cluster.restart(number)
            bed.cluster.wait_whole()
            bed.cluster.wait_in_sync(TOPIC)
    assert load.verdict is not None
    assert load.verdict.unknown == 0, load.unknown()[:5]
    sends = [one for one in load.recorder.history.operations if one.kind == "send"]
    assert all(one.outcome is Outcome.OK for one in sends)


def test_fault_27_a_hung_loop_is_replaced_though_its_session_lives(make_bed: MakeBed, tmp_path: Path) -> None:
    """A write that does not return hangs the loop of a broker, and not the thread that keeps its session."""
    bed = make_bed(Equipment(faults=True))
    make_aside(bed)
    with judged(bed, tmp_path, [[1, 2, 3]]) as load:
        ignorant = RawProducer(bed, 1)
        bed.faults[1].slow_disk(14)
        load.wait_leader_other_than(1, 20)
        bed.faults[1].heal_disk()
        question = ignorant.send(ASIDE, 0, b"from a client that knows nothing")
        assert ignorant.error_code(question) != 0
        ignorant.close()
        load.wait_acknowledged(100)
