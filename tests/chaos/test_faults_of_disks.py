"""Faults of disks and clocks under running and stopped brokers, by their numbers in the list of faults.

What only a loss of power can do (2, 3, 4) is in the simulation.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import time
from pathlib import Path

import pytest

from headrace.log import claims_file
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from headrace.protocol.messages.elect_leaders_response import ElectLeadersResponse
from tests.chaos.conftest import FURTHER_FORM, MakeBed
from tests.chaos.judged import judged
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import ANY_TIMESTAMP, TOPIC, TRIED_AGAIN
from tests.cluster_process import eventually
from tests.damage import flip_bit
from tests.host import Stopwatch
from tests.integration.real_client import read, send_all
from tests.wire import Wire

pytestmark = pytest.mark.timeout(240)
#: Segments as small as Kafka allows: a short load has cold ones.
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20)}
ALL_ON_ONE = [[1, 2, 3]]
PREFERRED, UNCLEAN = 0, 1


def in_sync(bed: Testbed) -> set[int]:
    return set(bed.cluster.partition(TOPIC).isr)


def test_fault_05_a_flipped_bit_that_recovery_finds_is_fetched_again(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        load.wait_acknowledged(200)
        bed.cluster.kill(1)
        load.wait_leader_other_than(1)
        (segment,) = bed.partition_dir(1, TOPIC).glob("*.log")
        flip_bit(segment, segment.stat().st_size // 2)
        bed.cluster.restart(1)
        bed.cluster.wait_in_sync(TOPIC)


def test_fault_05_a_flipped_bit_in_a_cold_segment_is_found_and_put_back(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    """Nobody reads cold segments at a start. It is found when another replica cannot use what it is given."""
    bed = make_bed()
    bed.cluster.create_topic("cold", ALL_ON_ONE, SMALL_SEGMENTS)
    values = [b"%d:" % number + b"x" * 1000 for number in range(3000)]
    producing = {**TRIED_AGAIN, "batch.num.messages": "50", "linger.ms": "20"}
    send_all(bed.cluster.bootstrap, "cold", values, settings=producing)
    bed.cluster.wait_in_sync("cold")
    bed.cluster.terminate(1)
    bed.cluster.wait_ended(1)
    first = sorted(bed.partition_dir(1, "cold").glob("*.log"))[0]
    whole = first.read_bytes()
    flip_bit(first, first.stat().st_size // 2)
    bed.cluster.restart(1)
    bed.cluster.wait_in_sync("cold")
    bed.cluster.kill(3)
    shutil.rmtree(bed.log_dir(3))
    elect_preferred(bed, "cold")
    eventually(lambda: bed.cluster.leader("cold") == 1, 20, "the damaged replica leads")
    bed.cluster.restart(3)
    bed.cluster.wait_in_sync("cold")
    eventually(lambda: first.read_bytes() == whole, 60, "the damaged range is put back from broker 2")
    assert not list(bed.log_dir(1).glob("cold-0.*-stray")), "nothing but the range was fetched again"
    bed.cluster.kill(2)  # what is read now comes from those that fetched it after the damage
    eventually(lambda: bed.cluster.ask(1, "cold").partitions["cold", 0].leader in (1, 3), 20, "one leads")
    assert [message.value() for message in read(bed.cluster.bootstrap, "cold", len(values))] == values


@pytest.mark.parametrize(
    "kind",
    [
        "index",
        "leader-epoch-checkpoint",
        pytest.param("timeindex", marks=FURTHER_FORM),
        pytest.param("snapshot", marks=FURTHER_FORM),
        pytest.param("checkpoints", marks=FURTHER_FORM),
    ],
)
def test_fault_06_a_flipped_bit_beside_the_log(make_bed: MakeBed, tmp_path: Path, kind: str) -> None:
    """What stands beside the log is made again from it, and nobody notices."""
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        load.wait_acknowledged(200)
        bed.cluster.terminate(1)
        bed.cluster.wait_ended(1)
        directory = bed.partition_dir(1, TOPIC)
        paths = {
            "leader-epoch-checkpoint": [directory / "leader-epoch-checkpoint"],
            "checkpoints": sorted(bed.log_dir(1).glob("*-checkpoint")),
        }.get(kind) or sorted(directory.glob(f"*.{kind}"))
        damaged = [path for path in paths if path.stat().st_size > 0]
        if kind != "timeindex":
            assert damaged, f"there is no {kind} to damage"
        for path in damaged:
            flip_bit(path, path.stat().st_size // 2)
        bed.cluster.restart(1)
        bed.cluster.wait_in_sync(TOPIC)
        load.wait_acknowledged(50)


def elect(bed: Testbed, topic: str, election_type: int) -> None:
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=[TopicPartitions(topic=topic, partitions=[0])],
        timeout_ms=10_000,
    )
    broker = bed.cluster.brokers[2]
    with Wire(broker.port, host=broker.place.address, timeout=20) as wire:
        wire.ask(request, 2, ElectLeadersResponse)


def elect_preferred(bed: Testbed, topic: str) -> None:
    elect(bed, topic, PREFERRED)


@pytest.mark.parametrize("cut", ["half", "missing", pytest.param("empty", marks=FURTHER_FORM)])
def test_fault_07_a_file_cut_short_after_a_crash(make_bed: MakeBed, tmp_path: Path, cut: str) -> None:
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        load.wait_acknowledged(200)
        bed.cluster.kill(1)
        (segment,) = bed.partition_dir(1, TOPIC).glob("*.log")
        if cut == "missing":
            segment.unlink()
        else:
            os.truncate(segment, segment.stat().st_size // 2 if cut == "half" else 0)
        load.wait_leader_other_than(1)
        bed.cluster.restart(1)
        bed.cluster.wait_in_sync(TOPIC)
        # It has what the others have, and may lead again.
        load.wait_acknowledged(50)


def fail_writes(bed: Testbed, path: Path) -> None:
    bed.faults[1].fail(writes=5, syncs=5)


def forbid(bed: Testbed, path: Path) -> None:
    """Open files stay open: what is forbidden is to make new ones."""
    for directory in (path, *path.iterdir()):
        if directory.is_dir():
            directory.chmod(0o500)


def test_fault_35_a_full_disk_refuses_producers_until_there_is_room(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    """The leader's disk has less room than a twentieth, its floor. The same process goes on by itself."""
    bed = make_bed(Equipment(disk_megabytes=40))
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        broker = bed.cluster.brokers[1]
        process = broker.pid
        bed.disks[1].fill(leave=1 << 20)
        eventually(
            lambda: "producers are refused" in broker.output.read_text(), 30, "it says that it is full"
        )
        bed.disks[1].free()
        eventually(lambda: "producers go on" in broker.output.read_text(), 30, "it says that there is room")
        load.wait_acknowledged(100)
        assert (broker.pid, bed.cluster.leader(TOPIC)) == (process, 1)
        assert "log directory offline" not in broker.output.read_text()


def test_fault_08_a_broken_directory_costs_no_record(make_bed: MakeBed, tmp_path: Path) -> None:
    """The leader's only directory fails under load: another leads, and it comes back when it is mended."""
    bed = make_bed(Equipment(faults=True))
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        fail_writes(bed, bed.log_dir(1))
        load.wait_leader_other_than(1)
        # It cannot hear that it leads no more, and must not hold its clients until it does.
        eventually(lambda: not bed.cluster.brokers[1].running, 10, "the broker without a disk has ended")
        load.wait_acknowledged(100)


def test_fault_08_one_of_two_directories_fails_and_the_other_serves(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    """One of two directories may no longer be written: its partitions move, those of the other stay."""
    bed = make_bed(Equipment(directories=2, permissions=True))
    with judged(bed, tmp_path, [[1, 2, 3]] * 4, configs={**SMALL_SEGMENTS, "segment.ms": "1000"}) as load:
        first, second = bed.log_dirs(1)
        lost = [n for n in range(4) if (second / f"{TOPIC}-{n}").exists()]
        kept = [n for n in range(4) if (first / f"{TOPIC}-{n}").exists()]
        assert lost
        assert kept
        metadata = next(path for path in (first, second) if (path / "__cluster_metadata-0").exists())
        if metadata == second:
            lost, kept, second = kept, lost, first
        forbid(bed, second)

        def moved() -> bool:
            rows = bed.cluster.ask(2, TOPIC).partitions
            return all(rows[TOPIC, n].leader not in (1, -1) for n in lost)

        eventually(moved, 60, "the partitions of the broken directory have other leaders")
        assert all(bed.cluster.leader(TOPIC, n) == 1 for n in kept)
        load.wait_acknowledged(100)
        for directory in (second, *second.iterdir()):
            if directory.is_dir():
                directory.chmod(0o700)
        bed.cluster.kill(1)


def test_fault_09_a_slow_follower_leaves_the_isr(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Equipment(faults=True), properties={"replica.lag.time.max.ms": "2000"})
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        bed.faults[3].slow_disk(3)
        eventually(lambda: in_sync(bed) == {1, 2}, 30, "the slow one is out")
        watch = Stopwatch()
        load.wait_acknowledged(300)
        assert watch.seconds < 10, "writes wait for a replica that is not in sync"
        bed.faults[3].heal_disk()
        bed.cluster.wait_in_sync(TOPIC)


def test_fault_15_clocks_that_jump(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Equipment(faults=True))
    with judged(bed, tmp_path, configs=ANY_TIMESTAMP) as load:
        for offsets in ((86_400, -86_400, 0), (-0.7, 0.7, 30), (-1e6, -1e6, -1e6), (3600, 3600, 3600)):
            for number, offset in zip(bed.numbers, offsets, strict=True):
                bed.faults[number].set_clock(offset)
            load.wait_acknowledged(100)
        leader = bed.cluster.leader(TOPIC)
        bed.cluster.kill(leader)
        load.wait_leader_other_than(leader)
        load.wait_acknowledged(100)


def test_fault_24_out_of_descriptors(make_bed: MakeBed, tmp_path: Path) -> None:
    """Connections are refused, not data: the load goes on, and so does the broker afterwards."""
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        broker = bed.cluster.brokers[1]
        used = len(os.listdir(f"/proc/{broker.pid}/fd"))
        soft, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (used + 8, hard))
        crowd = []
        try:
            for _ in range(30):
                guest = socket.socket()
                guest.settimeout(0.2)
                crowd.append(guest)
                guest.connect_ex((broker.place.address, broker.port))
            load.wait_acknowledged(100)
            assert broker.running
        finally:
            for guest in crowd:
                guest.close()
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (soft, hard))
        load.wait_acknowledged(100)
        assert broker.running


def test_fault_28_a_disk_replaced_under_the_same_broker(make_bed: MakeBed, tmp_path: Path) -> None:
    """The empty one must neither lead nor count: with two of three gone nothing may be written or lost."""
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        load.wait_acknowledged(100)
        bed.cluster.kill(1)
        load.wait_leader_other_than(1)
        shutil.rmtree(bed.log_dir(1))
        bed.cluster.restart(1)
        bed.cluster.wait_in_sync(TOPIC)
        load.wait_acknowledged(100)


def serves(bed: Testbed, broker_id: int) -> bool:
    try:
        bed.cluster.ask(broker_id, TOPIC)
    except (EOFError, OSError):
        return False
    return True


def test_fault_28_the_last_of_the_isr_with_an_empty_disk_does_not_lead(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    bed = make_bed()
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        for number in (2, 3):
            bed.cluster.kill(number)
        time.sleep(1)
        bed.cluster.kill(1)
        shutil.rmtree(bed.log_dir(1))
        bed.cluster.restart(1)
        # Its disk is another one, so it waits until the session of the process before it has ended.
        eventually(lambda: serves(bed, 1), 30, "it is back")
        time.sleep(3)
        assert bed.cluster.ask(1, TOPIC).partitions[TOPIC, 0].leader != 1, "an empty replica leads"
        bed.heal()
        load.wait_acknowledged(50, 60)


def test_an_unclean_election_lets_the_longest_log_lead(make_bed: MakeBed) -> None:
    """Two of three lost everything, the third is behind. The first of the assignment is empty: elected, it
    would make the third cut off the only copy that is left."""
    bed = make_bed()
    cluster = bed.cluster
    cluster.create_topic(TOPIC, ALL_ON_ONE)
    send_all(cluster.bootstrap, TOPIC, [b"first"] * 50)
    cluster.kill(3)
    eventually(lambda: in_sync(bed) == {1, 2}, 60, "it is out of sync")
    send_all(cluster.bootstrap, TOPIC, [b"second"] * 50)
    for number in (1, 2):
        cluster.kill(number)
    for number in (1, 2):
        shutil.rmtree(bed.log_dir(number))
    bed.heal()
    eventually(lambda: cluster.alive() == {1, 2, 3}, 60, "all are back")
    eventually(lambda: cluster.partition(TOPIC).leader == -1, 60, "nobody may lead")

    def elected() -> bool:
        elect(bed, TOPIC, UNCLEAN)
        return cluster.partition(TOPIC).leader >= 0

    eventually(elected, 60, "somebody leads")
    assert cluster.partition(TOPIC).leader == 3
    assert [message.value() for message in read(cluster.bootstrap, TOPIC, 50)] == [b"first"] * 50
    cluster.wait_in_sync(TOPIC)


def test_nothing_is_set_aside_when_every_replica_lost_something(make_bed: MakeBed) -> None:
    """Each another segment. The metadata names a leader that has not looked at its own files yet: whoever
    believed it would begin anew, and could be elected empty later."""
    bed = make_bed()
    cluster = bed.cluster
    cluster.create_topic(TOPIC, ALL_ON_ONE, SMALL_SEGMENTS)
    send_all(cluster.bootstrap, TOPIC, [b"x" * 10_000] * 600)
    for number in bed.numbers:
        cluster.kill(number)
    left = {}
    for number in bed.numbers:
        folder = bed.partition_dir(number, TOPIC)
        sorted(folder.glob("*.log"))[number].unlink()
        left[number] = sorted(path.name for path in folder.glob("*.log"))
    bed.heal()
    eventually(lambda: cluster.alive() == {1, 2, 3}, 60, "all are back")
    eventually(lambda: cluster.partition(TOPIC).leader == -1, 60, "nobody may lead")
    for number in bed.numbers:
        kept = bed.partition_dir(number, TOPIC)
        assert sorted(path.name for path in kept.glob("*.log")) == left[number]
        assert not list(bed.log_dir(number).glob(f"{TOPIC}*-stray"))


def test_a_loss_on_every_replica_is_noticed(make_bed: MakeBed, tmp_path: Path) -> None:
    """The proof that the tests above can fail."""
    bed = make_bed()
    # Which anomaly it is depends on whether somebody wrote at the lost offsets again.
    with pytest.raises(AssertionError, match=r"unseen|lost write|inconsistent offset"):
        lose_half_of_everything(bed, tmp_path)


def lose_half_of_everything(bed: Testbed, tmp_path: Path) -> None:
    with judged(bed, tmp_path, ALL_ON_ONE) as load:
        load.wait_acknowledged(200)
        for number in bed.numbers:
            bed.cluster.kill(number)
        for number in bed.numbers:
            (segment,) = bed.partition_dir(number, TOPIC).glob("*.log")
            os.truncate(segment, segment.stat().st_size // 2)
            # All that could tell the brokers: they would refuse to serve, and nothing was there to be found.
            for path in (bed.log_dir(number) / claims_file.NAME, *bed.log_dir(number).glob("*-checkpoint")):
                path.unlink(missing_ok=True)
        bed.heal()
