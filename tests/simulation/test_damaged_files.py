"""Seeds with damaged files, and what they have found, each reduced to the few steps that it took.

HEADRACE_DAMAGE_SEEDS says how many; a failing one says how to replay it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pytest

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, claims_file, files
from headrace.log.claims_file import ClaimsFile
from headrace.protocol.batch import read_header
from headrace.protocol.records import encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.checker.history import History
from tests.simulation.client import TOPIC
from tests.simulation.cluster import SimulatedHost
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.damage_seeds import FIRST_DAMAGED
from tests.simulation.replicas import InvariantBroken
from tests.simulation.retention import Retention
from tests.simulation.run import run_seed
from tests.simulation.test_found_by_seeds import Scene, scene
from tests.simulation.test_seeds import all_hold
from tests.unit.log.material import records

COUNT = int(os.environ.get("HEADRACE_DAMAGE_SEEDS", "40"))
FIRST = int(os.environ.get("HEADRACE_DAMAGE_FIRST_SEED", str(FIRST_DAMAGED)))
PER_TEST = 20
METADATA = "/data/__cluster_metadata-0/00000000000000000000.log"


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_TEST))
def test_nothing_is_lost_while_a_whole_replica_is_there(first: int) -> None:
    all_hold(range(first, min(first + PER_TEST, FIRST + COUNT)))


def test_seeds_damage_something() -> None:
    """A verdict over nothing proves nothing."""
    outcomes = [run_seed(seed) for seed in range(FIRST_DAMAGED + 900, FIRST_DAMAGED + 920)]
    assert sum(outcome.damages for outcome in outcomes) > 40
    assert sum(outcome.acknowledged for outcome in outcomes) > 500


@pytest.mark.parametrize(
    "damage",
    [
        lambda disk: disk.flip(METADATA, 8 * 200),
        lambda disk: disk.put(METADATA, b""),
        lambda disk: disk.put(METADATA, disk.content(METADATA)[:300]),
        lambda disk: disk.put(METADATA, disk.content("/data/t-0/00000000000000000000.log")),
        lambda disk: disk.lose(METADATA),
        lambda disk: disk.lose("/data/__cluster_metadata-0"),
    ],
    ids=["bit flipped", "emptied", "cut short", "another's", "missing", "folder missing"],
)
def test_a_damaged_copy_of_the_metadata_is_fetched_anew(damage: Callable[[SimulatedDisk], None]) -> None:
    """The broker once did not start again, and asked for a backup of what its peers have."""
    with scene() as it:
        host = next(each for each in it.cluster.hosts if each not in it.active_controllers())
        host.before_start = lambda: damage(host.disk)
        host.stop()
        it.cluster.run_until(lambda: host.before_start is None, 10, "it has stopped, and starts again")
        it.cluster.run_until(it.is_whole, 30, "it is back and in sync")
        assert host.lives == 2, "one start is enough"


SMALL = {"internal.segment.bytes": "300"}
"""Of the topic: some batches fill a segment."""
OFTEN = {"log.flush.offset.checkpoint.interval.ms": "1000", "log.flush.scheduler.interval.ms": "500"}


def damage_while_down(
    host: SimulatedHost, key: tuple[str, int], damage: Callable[[SimulatedDisk], None]
) -> None:
    """It is killed, harmed, and started again later, by `start`."""
    host.wanted = False
    host.kill()
    host.damaged[key] = None
    damage(host.disk)


def nobody_leads_until_both_are_back(it: Scene, leader: SimulatedHost, follower: SimulatedHost) -> None:
    """The follower is there alone for a while, and is not trusted."""
    leader.wanted = False
    leader.kill()
    follower.start()
    it.cluster.run_for(15)
    assert it.row().leader < 0
    leader.start()
    it.cluster.run_until(it.is_whole, 40, "both are back")
    it.write(10)


def drop_first(partition: int) -> Callable[[SimulatedDisk], None]:
    return lambda disk: disk.lose(f"/data/{TOPIC}-{partition}/{files.numbered(0)}.log")


def drop_folder(partition: int) -> Callable[[SimulatedDisk], None]:
    return lambda disk: disk.lose(f"/data/{TOPIC}-{partition}")


@pytest.mark.parametrize("drop", [drop_first, drop_folder], ids=["a segment", "the folder"])
def test_a_broker_with_a_damaged_replica_vouches_for_the_others(
    drop: Callable[[int], Callable[[SimulatedDisk], None]],
) -> None:
    """It once was a stranger as a whole. Each of two brokers had lost another partition, so each partition
    had one whole replica, and none had a leader."""
    with scene(brokers=2, partitions=2, configs=SMALL, properties=OFTEN) as it:
        it.write(20)
        it.cluster.run_for(3)  # so that everything is checkpointed
        for index, host in enumerate(it.cluster.hosts):
            damage_while_down(host, (TOPIC, index), drop(index))
        for host in it.cluster.hosts:
            host.wanted = True
            host.start()
        it.cluster.run_until(it.is_whole, 40, "each has fetched from the other what it lacks")
        it.write(10)
        assert it.acknowledged() >= 40


CHECKPOINTS_ALONE = {"log.flush.offset.checkpoint.interval.ms": "1000"}
"""What is committed is known, and not synced."""


def cut_end(partition: int) -> Callable[[SimulatedDisk], None]:
    """Between two batches: nothing in the file itself says that more was there."""

    def cut(disk: SimulatedDisk) -> None:
        path = [path for path in disk.files(f"/data/{TOPIC}-{partition}/") if path.endswith(files.LOG)][-1]
        data = disk.content(path)
        disk.put(path, data[: read_header(data).size])

    return cut


NEVER = {
    "log.flush.offset.checkpoint.interval.ms": "600000",
    "replica.high.watermark.checkpoint.interval.ms": "600000",
}


@pytest.mark.parametrize(
    ("drop", "properties", "configs"),
    [
        (drop_first, OFTEN, SMALL),
        (drop_folder, OFTEN, SMALL),
        (drop_folder, NEVER, SMALL),
        (cut_end, CHECKPOINTS_ALONE, {}),
    ],
    ids=["a segment", "the folder", "a folder that no checkpoint knows", "the end"],
)
def test_a_damaged_replica_is_not_elected(
    drop: Callable[[int], Callable[[SimulatedDisk], None]],
    properties: Mapping[str, str],
    configs: Mapping[str, str],
) -> None:
    """Nor before the whole one is back, with an empty log in the place of the folder."""
    with scene(brokers=2, configs=configs, properties=properties) as it:
        it.write(20)
        it.cluster.run_for(3)
        (follower,) = it.followers()
        leader = it.cluster.hosts[it.row().leader - 1]
        damage_while_down(follower, (TOPIC, 0), drop(0))
        nobody_leads_until_both_are_back(it, leader, follower)


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_a_directory_that_is_put_back_from_a_copy_is_not_vouched_for(is_clean: bool) -> None:
    """The copy was made in the life of the process that ended then, and proved all that the directory itself
    would have: it led, and what was acknowledged since was gone."""
    with scene(brokers=2, configs=SMALL, properties=OFTEN) as it:
        (follower,) = it.followers()
        leader = it.cluster.hosts[it.row().leader - 1]
        copy = {path: follower.disk.content(path) for path in follower.disk.files("/data/")}
        it.write(20)
        it.cluster.run_for(3)
        follower.wanted = False
        if is_clean:
            follower.stop()
            it.cluster.run_until(lambda: follower.process is None, 20, "it has stopped")
        else:
            follower.kill()
        follower.damaged[TOPIC, 0] = None
        follower.disk.lose("/data")
        for path, content in copy.items():
            follower.disk.put(path, content)
        nobody_leads_until_both_are_back(it, leader, follower)


@pytest.mark.parametrize("has_claims", [True, False])
def test_a_damaged_log_start_deletes_nothing(has_claims: bool) -> None:
    """Retention followed it, here and at every follower."""
    with scene(configs=SMALL | {"retention.ms": "-1"}, properties=OFTEN) as it:
        it.write(30)
        it.cluster.run_for(3)
        leader = it.cluster.hosts[it.row().leader - 1]

        def raise_start(disk: SimulatedDisk) -> None:
            start = checkpoints.format_offsets({TopicPartition(TOPIC, 0): 25})
            disk.put(f"/data/{checkpoints.LOG_START_OFFSETS}", start)
            if not has_claims:
                disk.lose(f"/data/{claims_file.NAME}")

        damage_while_down(leader, (TOPIC, 0), raise_start)
        leader.start()
        it.cluster.run_until(it.is_whole, 40, "it is back")
        leader.wanted = True
        for other in it.cluster.hosts:
            if other is not leader:
                other.kill()
                other.start()
        it.cluster.run_until(it.is_whole, 40, "all are back")
        starts = [
            partition.log.log_start_offset
            for broker in it.cluster.brokers()
            for partition in broker.partitions
        ]
        assert starts == [0, 0, 0]


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_a_last_segment_of_another_partition_is_noticed(is_clean: bool) -> None:
    """As long as the right one. Its replica led, and gave out the other's records."""
    with scene(brokers=2, partitions=2, properties=OFTEN) as it:
        it.write(20)
        it.cluster.run_for(3)
        host = it.cluster.hosts[0]
        paths = [f"/data/{TOPIC}-{index}/{files.numbered(0)}.log" for index in range(2)]
        host.wanted = False
        if is_clean:
            host.stop()
            it.cluster.run_until(lambda: host.process is None, 20, "it has stopped")
        else:
            host.kill()
        first, second = (host.disk.content(path) for path in paths)
        host.disk.put(paths[0], second)
        host.disk.put(paths[1], first)
        host.damaged |= {(TOPIC, 0): None, (TOPIC, 1): None}
        host.start()
        it.cluster.run_until(it.is_whole, 40, "it has fetched both anew")
        assert all(it.invariants.is_whole(host, key) for key in host.damaged)


def test_a_follower_with_another_log_begins_anew() -> None:
    """Its last batch is of the epoch that the leader is in, so both agreed. But what the leader sent next was
    of an older one, and could not follow: it asked again for ever, and was never in sync."""
    with scene(properties=OFTEN) as it:
        it.cluster.hosts[it.row().leader - 1].kill()
        it.cluster.run_until(lambda: it.row().leader_epoch > 0, 20, "another leads, and has written nothing")
        for host in it.cluster.hosts:
            host.start()
        it.cluster.run_until(it.is_whole, 40, "all are back")
        host = it.followers()[0]
        other = encode_batch(
            records(b"one of another", b"two"),
            base_offset=0,
            leader_epoch=it.row().leader_epoch,
        )

        def swap(disk: SimulatedDisk) -> None:
            folder = f"/data/{TOPIC}-0"
            for path in (*disk.files(f"{folder}/"), *disk.files("/data/headrace"), *disk.files("/data/re")):
                disk.lose(path)
            disk.put(f"{folder}/{files.numbered(0)}.log", bytes(other))

        damage_while_down(host, (TOPIC, 0), swap)
        it.cluster.run_until(lambda: it.in_sync() == 2, 20, "it is fenced")
        host.wanted = True
        host.start()
        it.cluster.run_until(it.is_whole, 40, "it is back and in sync")
        assert it.invariants.is_whole(host, (TOPIC, 0))


@pytest.mark.parametrize("count", [3, 20], ids=["shorter", "as long"])
def test_another_logs_file_that_fits_is_told_by_what_the_leader_has(count: int) -> None:
    """The directory was put back as it was before there were records, and vouches for nothing. Offsets and
    epochs fit: it was in sync with another log's records, and the good ones were fetched from nobody when
    the last good replica was damaged (2024258)."""
    with scene() as it:
        it.write(20)
        host = it.followers()[0]
        batches = [
            encode_batch(records(b"of another"), base_offset=offset, leader_epoch=it.row().leader_epoch)
            for offset in range(count)
        ]

        def swap(disk: SimulatedDisk) -> None:
            folder = f"/data/{TOPIC}-0"
            for path in (*disk.files(f"{folder}/"), *disk.files("/data/headrace"), *disk.files("/data/re")):
                disk.lose(path)
            disk.put(f"{folder}/{files.numbered(0)}.log", b"".join(batches))

        damage_while_down(host, (TOPIC, 0), swap)
        it.cluster.run_until(lambda: it.in_sync() == 2, 20, "it is fenced")
        host.wanted = True
        host.start()
        it.cluster.run_until(it.is_whole, 40, "it is back and in sync")
        assert it.invariants.is_whole(host, (TOPIC, 0))


def test_a_leader_is_mended_by_the_replica_that_it_would_have_to_vouch_for() -> None:
    """Each waited for the other: nothing vouched for what the follower had, the leader had lost just that,
    and below min.insync.replicas nobody else was there to give it (2026899)."""
    with scene(brokers=2, configs=SMALL, properties=NEVER) as it:
        it.write(20)
        (follower,) = it.followers()
        leader = it.cluster.hosts[it.row().leader - 1]
        follower.wanted = False
        follower.kill()
        it.cluster.run_until(lambda: it.in_sync() == 1, 20, "it is fenced")
        leader.damaged[TOPIC, 0] = None
        for path in leader.disk.files(f"/data/{TOPIC}-0/"):
            if path.endswith(files.LOG):
                leader.disk.put(path, b"")
        follower.wanted = True
        follower.start()
        it.cluster.run_until(it.is_whole, 60, "the leader is mended, and both are in sync")


def test_a_leader_epoch_of_the_metadata_that_was_changed_is_cut_off_and_fetched_again() -> None:
    """Of the last batch: no checksum covers it, nothing behind contradicts it. Nothing could follow it, and
    the broker tried for ever (2005906, 2006001)."""
    with scene() as it:
        follower = next(host for host in it.followers() if host not in it.active_controllers())
        follower.wanted = False
        follower.kill()
        content = bytearray(follower.disk.content(METADATA))
        last = at = 0
        while at < len(content):
            last, at = at, at + 12 + int.from_bytes(content[at + 8 : at + 12], "big")
        content[last + 14] ^= 1
        follower.disk.put(METADATA, bytes(content))
        it.cluster.run_until(lambda: it.in_sync() == 2, 20, "it is fenced, which is new metadata")
        follower.start()
        it.cluster.run_until(lambda: follower.process is None, 30, "it ends by itself")
        follower.start()
        it.cluster.run_until(it.is_whole, 30, "it is back")


def test_claims_that_were_lost_are_written_again_before_anybody_counts_on_the_replica() -> None:
    """A process that lived for a third of a second joined the ISR and was killed. The next one found no
    claims either, and was not trusted with what its replicas had (2007272)."""
    with scene() as it:
        it.cluster.run_for(3)  # their version is told
        (follower, _) = it.followers()
        claims = f"/data/{claims_file.NAME}"
        follower.kill()
        follower.disk.lose(claims)
        follower.start()
        it.cluster.run_until(it.is_whole, 20, "it is in sync")
        assert claims in follower.disk.files("/data/")


def test_the_last_reading_does_not_wait_where_everything_is_read() -> None:
    """It asked there as often as elsewhere, 400 ms each time, and was not done in its time (2000453)."""
    with scene(partitions=2, configs={"internal.segment.bytes": "200"}) as it:
        it.write(100)
        reader = SimulatedConsumer(it.cluster, "final", 2, History(), it.invariants)
        broker = it.cluster.brokers()[0]
        ends = {index: broker.partitions.get(TOPIC, index).log.end_offset for index in range(2)}
        reader.positions[0] = ends[0]
        reader.start_final_reads()
        it.cluster.run_until(lambda: reader.is_done, 2, "the rest is read")
        assert reader.positions == ends


@pytest.mark.parametrize("has_claims", [False, True], ids=["no claims", "claims of before"])
def test_a_broker_that_cannot_know_what_it_lacks_vouches_for_nothing(has_claims: bool) -> None:
    """It was killed before its first checkpoint, or before the first that named the log. It lost its copy of
    the metadata with the log's folder, made the log anew, and led with nothing in it (2000606, 2003438)."""
    with scene(
        brokers=2, properties=NEVER | {"replica.high.watermark.checkpoint.interval.ms": "600000"}
    ) as it:
        (follower,) = it.followers()
        leader = it.cluster.hosts[it.row().leader - 1]

        def drop(disk: SimulatedDisk) -> None:
            for path in (f"/data/{TOPIC}-0", "/data/__cluster_metadata-0", f"/data/{claims_file.NAME}"):
                if any(each.startswith(path) for each in disk.files("/data/")):
                    disk.lose(path)
            if has_claims:
                disk.put(f"/data/{claims_file.NAME}", claims_file.encode(ClaimsFile(0, {})))

        it.cluster.ensemble.versions.clear()  # as if the first of them had not been told yet
        damage_while_down(follower, (TOPIC, 0), drop)
        leader.wanted = False
        leader.kill()
        follower.start()
        it.cluster.run_for(15)
        leader.start()
        it.cluster.run_until(it.is_whole, 40, "both are back")
        assert it.invariants.is_whole(follower, (TOPIC, 0))


def test_a_damaged_offset_hides_nothing_of_what_a_log_keeps() -> None:
    """A mirror that it had led astray ended there. So retention seemed to have kept too little (2005323)."""
    with scene() as it:
        invariants, host = it.invariants, it.followers()[0]
        committed, replica = invariants.committed[TOPIC, 0], invariants._replicas[host][TOPIC, 0]
        entries = list(replica.mirror.entries)
        start, kept = entries[1].base_offset, sum(entry.size for entry in entries[1:])
        jumped = entries[3]._replace(base_offset=1 << 42, next_offset=(1 << 42) + 1)
        replica.mirror.entries = [*entries[:3], jumped]
        replica.log_start, replica.is_damaged = start, True
        invariants._retention = Retention(size=kept + 1)
        with pytest.raises(InvariantBroken, match="RetentionAlone"):
            invariants._check_log_start(replica, committed, "here")
        invariants._retention = Retention(size=kept)
        invariants._check_log_start(replica, committed, "here")
        assert committed.condemned == start
