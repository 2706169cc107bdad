"""kill -9 in the middle of load: every acknowledged record is there after the restart, in order, once.

Ten rounds by default; HEADRACE_KILL_ROUNDS=100 for the long run. HEADRACE_KILL_SEED repeats the moments.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaTools
from tests.broker_process import HeadraceProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.log_dump import complaints
from tests.durability.load import Load, stored, value_of

ROUNDS = int(os.environ.get("HEADRACE_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("HEADRACE_KILL_SEED", str(int(time.time()))))
#: Kafka's tool prints every record: a long run would drown in its words.
DUMPED_ROUNDS = 20
PARTITIONS = 3
TOPIC = "load"


@pytest.mark.timeout(60 + ROUNDS * 20)
def test_acknowledged_records_survive(tmp_path: Path) -> None:
    source = random.Random(SEED)
    broker = HeadraceProcess(tmp_path / "broker").start()
    try:
        admin = ConfluentClient(broker.bootstrap)
        # Segments as small as Kafka allows: some kills meet a roll.
        admin.create_topic(TOPIC, PARTITIONS, {"segment.bytes": str(1 << 20), "index.interval.bytes": "4096"})
        created = {TOPIC}
        verified = [0] * PARTITIONS
        with Load(broker.bootstrap, TOPIC, PARTITIONS) as load:
            for number in range(ROUNDS):
                load.run()
                time.sleep(source.uniform(0.05, 0.6))
                name = f"made-in-round-{number}"
                admin.create_topic(name)
                created.add(name)
                if source.random() < 0.5:
                    time.sleep(source.uniform(0.0, 0.3))
                broker.kill()
                broker.start()
                load.pause()
                explain = f"seed {SEED}, round {number}"
                check(broker, load, verified, explain)
                known = set(admin._admin.list_topics(timeout=10).topics)
                assert created <= known, f"{explain}: topics lost: {created - known}"
        assert sum(verified) > ROUNDS * 100, "there was hardly any load to survive"
        broker.stop()
    finally:
        broker.kill()
    if ROUNDS > DUMPED_ROUNDS:
        return
    with KafkaTools("4.3.1") as tools:
        assert complaints(tools, broker.log_dir) == []


def test_a_lost_record_is_noticed(tmp_path: Path) -> None:
    """The proof that the test above can fail: the last byte of one segment is taken away."""
    with HeadraceProcess(tmp_path / "broker") as broker:
        ConfluentClient(broker.bootstrap).create_topic(TOPIC, PARTITIONS)
        with Load(broker.bootstrap, TOPIC, PARTITIONS) as load:
            load.run()
            time.sleep(0.2)
            load.pause()
            broker.kill()
            segment = broker.log_dir / f"{TOPIC}-1" / "00000000000000000000.log"
            with segment.open("r+b") as file:
                file.truncate(segment.stat().st_size - 1)
            broker.start()
            with pytest.raises(AssertionError, match="partition 1 holds 0 to"):
                check(broker, load, [0] * PARTITIONS, "a cut segment")


def check(broker: HeadraceProcess, load: Load, verified: list[int], explain: str) -> None:
    """Nothing was refused for good, so each partition holds exactly 0, 1, 2, ... and no more."""
    for partition in range(PARTITIONS):
        start, end = verified[partition], load.sent[partition]
        assert load.acked[partition].keys() >= set(range(start, end)), explain
        moved = {n: o for n, o in load.acked[partition].items() if n != o}
        assert not moved, f"{explain}: acknowledged at other offsets: {list(moved.items())[:5]}"
        values = stored(broker.bootstrap, load.topic, partition, start, end)
        for offset, value in enumerate(values, start):
            assert value == value_of(partition, offset), (
                f"{explain}: offset {offset} of partition {partition}"
            )
        verified[partition] = end
