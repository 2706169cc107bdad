"""Faults of networks, by their numbers in the list of faults that a log must survive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.conftest import FURTHER_FORM, MakeBed
from tests.chaos.judged import epochs_seen, judged
from tests.chaos.raw_produce import RawProducer
from tests.chaos.relay import Weather
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import TOPIC
from tests.cluster_process import eventually

pytestmark = pytest.mark.timeout(240)
HOSTS = Equipment(hosts=True)
SHORT_SESSION = {"zookeeper.session.timeout.ms": "3000"}
ASIDE = "aside"


def from_the_others(bed: Testbed) -> None:
    assert bed.network is not None
    bed.network.cut([1], [2, 3])


def one_way_out(bed: Testbed) -> None:
    assert bed.network is not None
    bed.network.block(1, 2)
    bed.network.block(1, 3)


def one_way_in(bed: Testbed) -> None:
    assert bed.network is not None
    bed.network.block(2, 1)
    bed.network.block(3, 1)


def bridge(bed: Testbed) -> None:
    assert bed.network is not None
    bed.network.bridge(2)


SHAPES = (
    from_the_others,
    one_way_in,
    pytest.param(one_way_out, marks=FURTHER_FORM),
    pytest.param(bridge, marks=FURTHER_FORM),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_fault_11_partitions_have_one_leader_in_each_epoch(
    make_bed: MakeBed, tmp_path: Path, shape: Callable[[Testbed], None]
) -> None:
    """Clients and ZooKeeper reach everybody: only the brokers are cut from each other."""
    bed = make_bed(HOSTS, properties={**SHORT_SESSION, "replica.lag.time.max.ms": "3000"})
    bed.cluster.create_topic(ASIDE, [[1, 2, 3]], {"min.insync.replicas": "2"})
    with judged(bed, tmp_path, [[1, 2, 3], [2, 3, 1], [3, 1, 2]]) as load:
        alone = RawProducer(bed, 1)
        shape(bed)
        question = alone.send(ASIDE, 0, b"to one that hears nobody", timeout_ms=4000)
        seen = epochs_seen(bed, 7)
        assert all(len(leaders) == 1 for leaders in seen.values()), seen
        if shape in (from_the_others, one_way_in):
            assert alone.error_code(question) != 0, "the minority has acknowledged a record"
        alone.close()
        assert bed.network is not None
        bed.network.heal()
        load.wait_acknowledged(100)


def test_fault_11_a_silent_host_is_replaced(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(HOSTS, properties=SHORT_SESSION)
    with judged(bed, tmp_path, [[1, 2, 3]]) as load:
        assert bed.network is not None
        bed.network.silence(1)
        load.wait_leader_other_than(1, 12)
        load.wait_acknowledged(100)


@pytest.mark.parametrize("is_active", [True, False], ids=["controller", "other"])
@pytest.mark.usefixtures("headrace_only")
def test_fault_12_a_leader_without_zookeeper_is_replaced(
    make_bed: MakeBed, tmp_path: Path, is_active: bool
) -> None:
    """Also if it is the controller, which has to hear from the others that it is one no more: otherwise it
    would go on telling clients that it leads."""
    bed = make_bed(HOSTS, properties=SHORT_SESSION)
    controller = bed.cluster.view().controller
    leader = controller if is_active else controller % 3 + 1
    others = [number for number in (1, 2, 3) if number != leader]
    with judged(bed, tmp_path, [[leader, *others]]) as load:
        assert bed.network is not None
        bed.network.forbid_ports(leader, bed.zookeeper_ports)
        load.wait_leader_other_than(leader, 20)
        load.wait_acknowledged(100)
        bed.network.heal()
        load.wait_acknowledged(100)


def test_fault_14_loss_of_packets(make_bed: MakeBed, tmp_path: Path) -> None:
    """TCP turns losses into repetitions, late arrivals and other orders between connections."""
    bed = make_bed(HOSTS)
    with judged(bed, tmp_path) as load:
        assert bed.network is not None
        for number in bed.numbers:
            bed.network.lose(number, 8)
        load.wait_acknowledged(200, 60)


@pytest.mark.parametrize(
    "weather",
    [
        Weather(delay_ms=100, jitter_ms=200),
        Weather(resets=0.05),
        pytest.param(Weather(bytes_per_second=30_000), marks=FURTHER_FORM),
    ],
    ids=["delay", "resets", "throttle"],
)
def test_fault_14_bad_weather(make_bed: MakeBed, tmp_path: Path, weather: Weather) -> None:
    bed = make_bed(Equipment(relays=True))
    with judged(bed, tmp_path) as load:
        for relay in bed.cluster.relays.values():
            relay.set(weather)
        load.wait_acknowledged(150, 60)


@FURTHER_FORM
def test_fault_14_a_stall_of_the_leader(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Equipment(relays=True))
    with judged(bed, tmp_path, [[1, 2, 3]]) as load:
        bed.cluster.relays[1].set(Weather(stalled=True))
        time.sleep(4)
        bed.cluster.relays[1].set(Weather())
        load.wait_acknowledged(100)


def test_fault_16_a_change_of_leader_between_a_record_and_its_repetition(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    """The leader stores records, and dies before a client hears of it: the next one must know them."""
    bed = make_bed(Equipment(relays=True))
    with judged(bed, tmp_path, [[1, 2, 3]], rate=500) as load:
        for _ in range(3):
            leader = bed.cluster.leader(TOPIC)
            # Answers stay on the way, and so do the fetches of followers: some records have a copy, some not.
            bed.cluster.relays[leader].set(Weather(delay_ms=60, jitter_ms=60))
            load.wait_acknowledged(100)
            timer = threading.Timer(
                0.05, lambda at=leader: bed.cluster.relays[at].set(Weather(refusing=True))
            )
            timer.start()
            timer.join()
            bed.cluster.kill(leader)
            bed.cluster.relays[leader].set(Weather())
            load.wait_leader_other_than(leader)
            bed.cluster.restart(leader)
            load.wait_acknowledged(100)
            eventually(lambda: len(bed.cluster.partition(TOPIC).isr) == 3, 30, "all are in sync")
