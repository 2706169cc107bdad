"""Faults of ZooKeeper, by their numbers in the list of faults that a log must survive."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.broker_process import HEADRACE
from tests.chaos.conftest import MakeBed
from tests.chaos.judged import judged
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import TOPIC

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("headrace_only")]


def leaders(bed: Testbed) -> list[tuple[int, int]]:
    rows = bed.cluster.view(TOPIC).partitions
    return [(row.leader, row.leader_epoch) for row in rows.values()]


def test_fault_13_without_a_quorum_data_goes_on_and_nobody_is_elected(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    bed = make_bed(Equipment(zookeepers=3), properties={"zookeeper.session.timeout.ms": "3000"})
    with judged(bed, tmp_path) as load:
        before = leaders(bed)
        nodes = bed.zookeeper.zookeeper.nodes
        for index in (0, 1):
            nodes[index].kill()
            bed.unhealthy_zookeepers.add(index)
        load.wait_acknowledged(100)
        time.sleep(7)  # more than two sessions
        load.wait_acknowledged(100, 5)
        assert leaders(bed) == before
        bed.heal_zookeeper()
        # It recovers by itself: what needs a commit is possible again.
        bed.cluster.create_topic("afterwards", [[1, 2, 3]])
        load.wait_acknowledged(100)
    assert load.verdict is not None
    assert load.verdict.unknown == 0, load.unknown()[:5]


def test_fault_13_a_change_of_zookeepers_leader(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Equipment(zookeepers=3))
    with judged(bed, tmp_path) as load:
        leader = bed.zookeeper.zookeeper.leader()
        leader.kill()
        bed.unhealthy_zookeepers.add(bed.zookeeper.zookeeper.nodes.index(leader))
        load.wait_acknowledged(200)
        bed.cluster.create_topic("meanwhile", [[1, 2, 3]])
        bed.heal_zookeeper()
        load.wait_acknowledged(100)


def test_fault_13_a_storm_of_sessions(make_bed: MakeBed, tmp_path: Path) -> None:
    """All sessions end at once: ZooKeeper stands still for longer than any of them lasts."""
    bed = make_bed(Equipment(zookeepers=1), properties={"zookeeper.session.timeout.ms": "2000"})
    with judged(bed, tmp_path) as load:
        (node,) = bed.zookeeper.zookeeper.nodes
        node.pause()
        bed.unhealthy_zookeepers.add(0)
        time.sleep(6)
        bed.heal_zookeeper()
        load.wait_acknowledged(100)
        bed.cluster.wait_whole(30)


def test_fault_29_zookeepers_data_is_lost_and_rebuilt(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Equipment(zookeepers=1))
    with judged(bed, tmp_path) as load:
        before = leaders(bed)
        for number in bed.numbers:
            bed.cluster.kill(number)
        (node,) = bed.zookeeper.zookeeper.nodes
        node.kill()
        data = node.directory / "data"
        shutil.rmtree(data / "version-2")
        node.launch()
        node.wait_ready()
        command = [str(HEADRACE), "cluster", "recover-metadata", "--zookeeper", node.address, "--yes"]
        for number in bed.numbers:
            command += ["--from", str(bed.log_dir(number))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        bed.heal()
        load.wait_acknowledged(100)
        for (_, old), (_, new) in zip(before, leaders(bed), strict=True):
            assert new > old, "an epoch was given twice"
