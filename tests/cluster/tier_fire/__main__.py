"""Producers and consumers that know nothing of a store, while brokers and the store are killed and stopped.

    poe tier-fire --minutes 25 --seed 7

At the end everything is read from offset 0, twice, by librdkafka, with all brokers killed between; then past
the brokers, from the bucket. Ends with 1 if anything is lost, doubled, changed, torn or out of order.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from headrace.arrow import read_topic
from tests.cluster.tier_fire.clients import (
    PARTITIONS,
    PLAIN,
    TRADED,
    ColdReader,
    HotReader,
    IdempotentProducer,
    Trader,
)
from tests.cluster.tier_fire.field import Field
from tests.cluster.tier_fire.ledger import Ledger
from tests.cluster.tier_fire.reading import Whole, look_into, read_all
from tests.cluster.tier_fire.strikes import Strikes
from tests.cluster.tiered_store import ENVIRONMENT

CALM_SECONDS = (1.0, 8.0)


class Fire:
    def __init__(self, field: Field, options: argparse.Namespace) -> None:
        self._field = field
        self._options = options
        self.ledger = Ledger()
        bootstrap = field.cluster.bootstrap
        self.producers = [IdempotentProducer(n, bootstrap, self.ledger, options.rate) for n in (1, 2, 3)]
        self.trader = Trader(bootstrap, self.ledger)
        self.cold = [ColdReader(n, bootstrap, self.ledger, self.ledger.ends) for n in (1, 2)]
        self._readers = [HotReader("hot reader", bootstrap, self.ledger), *self.cold]
        self.strikes = Strikes(field, self.ledger, random.Random(options.seed), options.outage_seconds)
        if options.only:
            self.strikes.all = {
                name: strike for name, strike in self.strikes.all.items() if options.only in name
            }

    def burn(self) -> None:
        clients = [*self.producers, self.trader, *self._readers]
        for client in clients:
            client.start()
        chance = random.Random(self._options.seed + 1)
        until = time.monotonic() + self._options.minutes * 60
        for name in self.strikes.order():
            time.sleep(chance.uniform(*CALM_SECONDS))
            if time.monotonic() > until:
                break
            begun = time.monotonic()
            self.strikes.strike(name)
            _say(f"{name}: {time.monotonic() - begun:.1f} s; {self.ledger.acknowledged} acknowledged")
        for client in clients:
            client.ending.set()
        for client in clients:
            client.join()

    def judge(self) -> None:
        self._field.wait_in_sync()
        self._field.wait_tiered()
        bootstrap = self._field.cluster.bootstrap
        first = read_all(bootstrap, self.ledger, "read_uncommitted")
        self._field.kill_all()
        second = read_all(bootstrap, self.ledger, "read_uncommitted")
        if first.digests != second.digests or first.ends != second.ends:
            self.ledger.accuse("two readings are not the same, byte for byte")
        committed = read_all(bootstrap, self.ledger, "read_committed")
        plain = [(PLAIN, n) for n in range(PARTITIONS[PLAIN])]
        self.ledger.judge_contiguous(plain, {each.writer: each.sent for each in self.producers})
        traded = {key: rows for key, rows in committed.rows.items() if key[0] == TRADED}
        self.ledger.judge_transactions(traded, self.trader.outcomes)
        read = {(key, offset) for key in traded for offset, _ in second.rows[key]}
        for key, offset in sorted(self.trader.acknowledged - read)[:20]:
            self.ledger.accuse(f"{key} has nothing at {offset}, which was acknowledged")
        self._judge_past_brokers(committed)
        for each in look_into(self._field.store, self._field.prefix, self.ledger):
            _say(f"in the bucket: {each}")

    def _judge_past_brokers(self, committed: Whole) -> None:
        os.environ.update(ENVIRONMENT)
        for topic in PARTITIONS:
            table = read_topic(
                topic,
                bootstrap=self._field.cluster.bootstrap,
                tier=f"s3://tests/{self._field.prefix}",
                endpoint=self._field.store.settings["s3.endpoint"],
                columns=["partition", "offset", "value"],
            ).read_all()
            for partition in range(PARTITIONS[topic]):
                mine = table.filter(table["partition"].to_numpy() == partition)
                offsets = [offset for offset, _ in committed.rows[topic, partition]][: mine.num_rows]
                if mine["offset"].to_pylist() != offsets:
                    self.ledger.accuse(f"{topic}-{partition} has other offsets in the bucket")
                for offset, value in zip(mine["offset"].to_pylist(), mine["value"].to_pylist(), strict=True):
                    self.ledger.on_read((topic, partition), offset, value)
                _say(f"past the brokers: {mine.num_rows} of {len(committed.rows[topic, partition])} records")

    def tell(self) -> None:
        trader = self.trader.outcomes.values()
        _say(
            f"{self.ledger.acknowledged} acknowledged, {self.ledger.read} read; strikes {self.strikes.counts}"
        )
        _say(f"zombies refused: {self.strikes.refused}")
        _say(f"transactions: { ({how: sum(o[1] is how for o in trader) for how in (True, False, None)}) }")
        _say(f"visits to history: {[(each.answered, each.unanswered) for each in self.cold]}")
        slow = [pair for each in self.producers for pair in each.slowest]
        for begun, ended, count in self.strikes.outages:
            worst = max((took for at, took in slow if begun < at < ended), default=-1)
            _say(f"store away {ended - begun:.0f} s: {count} acknowledged, the slowest after {worst:.3f} s")
        outputs = "".join(each.output.read_text() for each in self._field.cluster.brokers.values())
        _say(f"tracebacks in the brokers' logs: {outputs.count('Traceback')}")
        kinds: dict[str, list[str]] = {}
        for each in self.ledger.anomalies:
            kinds.setdefault(re.sub(r"\d+", "#", each)[:100], []).append(each)
        for same in kinds.values():
            _say(f"ANOMALY {len(same)} like: {same[0]}")
        _say(f"{len(self.ledger.anomalies)} anomalies")


def _say(what: str) -> None:
    print(time.strftime("%H:%M:%S"), what, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--rate", type=float, default=150, help="records a second of each producer")
    parser.add_argument("--outage-seconds", type=float, default=90)
    parser.add_argument("--only", help="strikes that have this in their name")
    parser.add_argument("--dir", type=Path, help="keeps the brokers' directories and logs")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary, Field(options.dir or Path(temporary)) as field:
        fire = Fire(field, options)
        try:
            fire.burn()
            fire.judge()
        finally:
            fire.tell()
        return 1 if fire.ledger.anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
