"""The proof at full size: a single record among a million, at each tier; and silence where nothing is wrong.

    python -m tests.spark.audit.campaign       # 1,000,000 records, 100 windows, 20 clean runs
    python -m tests.spark.audit.campaign --records 20000 --clean 2 --target kafka

Faults: one record lost, doubled, altered, at the producers, in the log and in the lake: told of otherwise,
stored otherwise, loaded otherwise than it was meant. Clean runs have several producers, records out of order
and late by whole windows, a lake that is behind, and passes of the audit while all that goes on; none may
raise anything, and at the end every window must be certified.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headrace.audit.verdict import Kind, State
from headrace.spark import session
from headrace.spark.audit.job import PassResult
from headrace.spark.audit.plan import first_difference
from tests.apache_kafka import CACHE, ApacheKafka
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.spark.audit.faults import tampered, tampered_rows
from tests.spark.audit.pipeline import BEGIN_MS, WINDOW_MS, Pipeline, Sent, Teller, made

PARTITIONS = 4
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}
TIERS = ("producers", "log", "lake")


class Campaign:
    def __init__(
        self, spark: SparkSession, bootstrap: str, directory: Path, records: int, windows: int
    ) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.directory = directory
        self.records = records
        self.windows = windows
        self.runs = 0
        self.failures: list[str] = []

    @property
    def end_ms(self) -> int:
        return BEGIN_MS + self.windows * WINDOW_MS

    def pipeline(self) -> Pipeline:
        self.runs += 1
        directory = self.directory / f"run-{self.runs}"
        return Pipeline(self.spark, self.bootstrap, directory, format="delta", partitions=PARTITIONS)

    def store(self, pipeline: Pipeline, records: Sequence[Sent]) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 20,
                "queue.buffering.max.messages": 500_000,
                "enable.idempotence": True,
            }
        )
        for number, record in enumerate(records):
            while True:
                try:
                    producer.produce(
                        pipeline.topic,
                        record.value,
                        record.key,
                        record.partition,
                        timestamp=record.timestamp_ms,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1_000 == 0:
                producer.poll(0)
        if producer.flush(300):
            raise RuntimeError("not all records were stored")

    def note(self, what: str, began: float, wrong: str | None) -> None:
        print(f"{what:<28} {time.monotonic() - began:6.1f} s  {wrong or 'as it should be'}", flush=True)
        if wrong:
            self.failures.append(f"{what}: {wrong}")

    # --- one record ---------------------------------------------------------------------------------------

    def fault(self, tier: str, kind: Kind, seed: int) -> None:
        began = time.monotonic()
        chance = random.Random(seed)
        pipeline = self.pipeline()
        records = made(self.records, self.windows, seed, PARTITIONS)
        at = chance.randrange(self.records)
        # A value that can be told from all others, so that the lake's one can be found by it.
        victim = records[at] = records[at]._replace(value=b"victim-%d" % seed)
        changed = tampered(records, at, kind)
        teller = Teller(pipeline.topic)
        teller.acknowledged(changed if tier == "producers" else records)
        teller.tell(self.end_ms, closing=True)
        self.store(pipeline, changed if tier == "log" else records)
        pipeline.tell(*teller.events)
        rows = pipeline.records()
        pipeline.load(tampered_rows(rows, victim, kind) if tier == "lake" else rows)
        # Silent after less than nothing: nobody is waited for who might still tell of what is too many.
        result = pipeline.auditor(silent_after_ms=-3_600_000).run_once()
        self.note(f"{tier}: {kind}", began, self._misjudged(result, tier, kind, victim))

    def _misjudged(self, result: PassResult, tier: str, kind: Kind, victim: Sent) -> str | None:
        found = first_difference(result.verdicts)
        if found is None:
            return "nothing was found"
        verdict, difference = found
        window = victim.timestamp_ms - victim.timestamp_ms % WINDOW_MS
        # What producers tell too little is too much in the log, and the other way round.
        seen = (
            {Kind.LOST: Kind.DOUBLED, Kind.DOUBLED: Kind.LOST}.get(kind, kind)
            if tier == "producers"
            else kind
        )
        expected = ("log" if tier == "producers" else tier, victim.partition, seen, window)
        named = (difference.tier, difference.partition, difference.kind, verdict.window_ms)
        others = [each for each in result.verdicts if each.differences and each is not verdict]
        if named != expected:
            return f"{named} was named, and it was {expected}"
        if others or len(verdict.differences) > 1:
            return f"{len(others)} other windows are said to differ"
        if sum(each.state is State.CERTIFIED for each in result.verdicts) < self.windows - 1:
            return "not all other windows are certified"
        return None

    # --- nothing wrong ------------------------------------------------------------------------------------

    def clean(self, seed: int) -> None:
        began = time.monotonic()
        chance = random.Random(seed)
        pipeline = self.pipeline()
        records = _disordered(made(self.records, self.windows, seed, PARTITIONS), chance)
        tellers = [Teller(pipeline.topic, f"producer-{number}", "here") for number in range(3)]
        auditor = pipeline.auditor(silent_after_ms=10**12)
        pipeline.load(pipeline.records().limit(0))
        pieces = 3
        wrong: str | None = None
        for piece in range(pieces):
            part = records[piece * self.records // pieces : (piece + 1) * self.records // pieces]
            self.store(pipeline, part)
            for number, teller in enumerate(tellers):
                teller.acknowledged(part[number :: len(tellers)])
                moment = BEGIN_MS + (piece + 1) * self.windows * WINDOW_MS // pieces
                event = teller.tell(moment, closing=piece == pieces - 1)
                # Not everybody is heard in time: the audit sees records of which nobody has told.
                if piece == pieces - 1 or chance.random() < 0.5:
                    pipeline.tell(*teller.events)
                    teller.events.clear()
                else:
                    assert event in teller.events
            if piece < pieces - 1:
                wrong = wrong or _alarm(auditor.run_once())
            _load_the_rest(pipeline)
        result = auditor.run_once()
        wrong = wrong or _alarm(result)
        if wrong is None and any(each.state is not State.CERTIFIED for each in result.verdicts):
            left = [each.headline for each in result.verdicts if each.state is not State.CERTIFIED]
            wrong = f"{len(left)} windows are not certified: {left[0]}"
        self.note(f"clean, seed {seed}", began, wrong)


def _alarm(result: PassResult) -> str | None:
    found = first_difference(result.verdicts)
    return None if found is None else f"a false alarm: {found[1]}"


def _disordered(records: Sequence[Sent], chance: random.Random) -> list[Sent]:
    """Neighbours exchanged, and one in twenty late by up to five windows."""
    lateness = 5 * WINDOW_MS
    keyed = [
        (
            record.timestamp_ms
            + chance.randrange(WINDOW_MS)
            + (chance.randrange(lateness) if chance.random() < 0.05 else 0),
            at,
        )
        for at, record in enumerate(records)
    ]
    return [records[at] for _, at in sorted(keyed)]


def _load_the_rest(pipeline: Pipeline) -> None:
    """As a lake does: from where its table ends."""
    table = pipeline.spark.read.format("delta").load(pipeline.table.location)
    loaded = table.groupBy("partition").agg((F.max("offset") + 1).alias("next"))
    rows = pipeline.records().join(F.broadcast(loaded), "partition", "left")
    pipeline.load(rows.where("next is null or offset >= next").select(*table.columns))


@contextmanager
def local_spark(directory: Path, memory: str) -> Iterator[SparkSession]:
    extra = {**_SETTINGS, "spark.driver.memory": memory}
    made_session = session(
        "campaign", master="local[2]", jar_directory=CACHE / "spark-jars", warehouse=directory, extra=extra
    )
    made_session.sparkContext.setLogLevel("ERROR")
    try:
        yield made_session
    finally:
        made_session.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--windows", type=int, default=100)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--tiers", nargs="*", choices=TIERS, default=list(TIERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=("headrace", "kafka"), default="headrace")
    parser.add_argument("--memory", default="2g")
    chosen = parser.parse_args()
    kind: type[BrokerProcess] = HeadraceProcess if chosen.target == "headrace" else ApacheKafka
    with (
        tempfile.TemporaryDirectory() as name,
        kind(Path(name) / "broker", {}) as broker,
        local_spark(Path(name) / "warehouse", chosen.memory) as spark,
    ):
        campaign = Campaign(spark, broker.bootstrap, Path(name), chosen.records, chosen.windows)
        for number, tier in enumerate(chosen.tiers):
            for other, fault in enumerate(Kind):
                campaign.fault(tier, fault, chosen.seed + 10 * number + other)
        for number in range(chosen.clean):
            campaign.clean(chosen.seed + 1_000 + number)
    print(f"{campaign.runs} runs of {chosen.records:,} records, {len(campaign.failures)} failures")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
