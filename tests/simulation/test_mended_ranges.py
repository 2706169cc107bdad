"""Damage in a sealed segment is mended alone, of leaders and followers, in a simulated cluster."""

from __future__ import annotations

import pytest

from headrace.broker.storage.other_copies import OtherCopies
from headrace.log.range_repair import RangeRepair
from headrace.protocol.batch import read_header
from headrace.replication.partition import Partition
from tests.simulation.cluster import SimulatedHost
from tests.simulation.test_found_by_seeds import Scene, scene

SMALL_SEGMENTS = {"internal.segment.bytes": "400", "index.interval.bytes": "100"}
SCRUBBED = {
    "headrace.log.scrub.interval.ms": "500",
    "log.flush.scheduler.interval.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "500",
}
FIRST = "/data/t-0/00000000000000000000.log"


def strays(host: SimulatedHost) -> list[str]:
    return [path for path in host.disk.list("/data") if "stray" in path]


def leader(it: Scene) -> SimulatedHost:
    return it.cluster.hosts[it.row().leader - 1]


def filled(it: Scene) -> bytes:
    it.write(60)
    it.cluster.run_until(lambda: it.in_sync() == 3, 30, "all of them have everything")
    it.cluster.run_for(3.0)  # what is sealed is synced, and listed
    content = leader(it).disk.content(FIRST)
    assert all(host.disk.content(FIRST) == content for host in it.cluster.hosts)
    return content


def _third(content: bytes) -> int:
    """Where the third batch begins."""
    position = read_header(content).size
    return position + read_header(content[position:]).size


def _zeroed(content: bytes, begin: int, end: int) -> bytes:
    return content[:begin] + bytes(end - begin) + content[end:]


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("way", ["flipped", "cut short", "emptied", "zeroed over a base offset"])
def test_only_what_is_lost_is_fetched(leads: bool, way: str) -> None:
    """The rest of the replica stays where it is, it stays in sync, and a leader leads on."""
    with scene(configs=SMALL_SEGMENTS, properties=SCRUBBED) as it:
        whole = filled(it)
        host = leader(it) if leads else it.followers()[0]
        row = it.row()
        harmed = {
            "flipped": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
            "cut short": whole[: len(whole) // 2],
            "emptied": b"",
            # Checksums do not cover it: the batch is whole, and says that it has offset 0 (2026439).
            "zeroed over a base offset": _zeroed(whole, _third(whole) - 20, _third(whole) + 8),
        }[way]
        host.disk.put(FIRST, harmed)
        broker = host.broker
        assert broker is not None
        it.cluster.run_until(
            lambda: broker.runtime.metrics.scrub.ranges_mended == 1, 60, "the range is mended"
        )
        assert host.disk.content(FIRST) == whole
        it.cluster.run_for(5.0)
        assert strays(host) == []
        assert it.in_sync() == 3
        assert (it.row().leader, it.row().leader_epoch) == (row.leader, row.leader_epoch)
        assert broker.runtime.metrics.scrub.damage_found == 1
        assert broker.storage.integrity.unmended() == []


def test_it_is_tried_again_while_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that changes, or a broker that is slow, is no reason to fetch all of it."""
    unanswered = [1, 2]
    sources = OtherCopies.sources

    def soon(self: OtherCopies, partition: Partition) -> list[int]:
        return [] if unanswered and unanswered.pop() else sources(self, partition)

    monkeypatch.setattr(OtherCopies, "sources", soon)
    with scene(configs=SMALL_SEGMENTS, properties=SCRUBBED) as it:
        whole = filled(it)
        host = it.followers()[0]
        host.disk.put(FIRST, bytes(len(whole)))
        it.cluster.run_until(lambda: host.disk.content(FIRST) == whole, 60, "the range is mended")
        assert not unanswered
        assert strays(host) == []


def test_a_missing_file_still_makes_the_replica_be_fetched_anew() -> None:
    with scene(configs=SMALL_SEGMENTS, properties=SCRUBBED) as it:
        whole = filled(it)
        host = it.followers()[0]
        host.disk.lose(FIRST)
        it.cluster.run_until(lambda: bool(strays(host)), 60, "the replica is set aside")
        it.cluster.run_until(
            lambda: host.disk.exists(FIRST) and host.disk.content(FIRST) == whole and it.in_sync() == 3,
            60,
            "it is fetched anew",
        )


def test_what_the_source_has_lost_too_is_had_from_the_third() -> None:
    """The leader is mended from it, and the follower from the leader."""
    with scene(configs=SMALL_SEGMENTS, properties=SCRUBBED) as it:
        whole = filled(it)
        host = it.followers()[0]
        for each in (host, leader(it)):
            each.disk.put(FIRST, bytes(len(whole)))
        it.cluster.run_until(
            lambda: all(
                each.disk.exists(FIRST) and each.disk.content(FIRST) == whole for each in it.cluster.hosts
            ),
            120,
            "the third replica has it, and all get it",
        )
        assert not any(strays(each) for each in it.cluster.hosts)


@pytest.mark.parametrize("by_parts", [True, False], ids=["mended", "fetched anew"])
def test_replicas_with_the_same_damage_stay_until_a_whole_one_comes_back(
    by_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took the other for whole, because it was in sync, and gave itself up: nobody led."""
    if not by_parts:
        monkeypatch.setattr(RangeRepair, "take", lambda *_: None)
    with scene(configs=SMALL_SEGMENTS, properties=SCRUBBED) as it:
        whole = filled(it)
        third = it.followers()[-1]
        damaged = [host for host in it.cluster.hosts if host is not third]
        third.kill()
        it.cluster.run_until(lambda: it.in_sync() == 2, 60, "the third is out of sync")
        it.write(3)
        row = it.row()
        for each in damaged:
            each.disk.put(FIRST, whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        brokers = [each.broker for each in damaged]
        it.cluster.run_until(
            lambda: all(broker is not None and broker.storage.integrity.unmended() for broker in brokers),
            60,
            "both say what they refuse",
        )
        it.cluster.run_for(60.0)
        assert (it.row().leader, it.row().isr) == (row.leader, row.isr)
        assert all(broker is not None and not broker.storage.logs.quarantined for broker in brokers)
        it.write(3)
        third.start()
        it.cluster.run_until(
            lambda: (
                it.in_sync() == 3
                and all(
                    each.disk.exists(FIRST) and each.disk.content(FIRST) == whole for each in it.cluster.hosts
                )
            ),
            180,
            "the third is in sync, and the others have it from there",
        )
        if by_parts:
            assert it.row().leader_epoch == row.leader_epoch
            assert not any(strays(each) for each in damaged)
