"""The mirror as a station of the audit: certificates, and what is found where records are lost or doubled."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from headrace.audit.verdict import Kind, State
from headrace.spark.mirror import config as mirror_configs
from headrace.spark.mirror import job
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.loops import HEADER
from tests.broker_process import BrokerProcess
from tests.spark.audit.pipeline import BEGIN_MS, WINDOW_MS, Pipeline, Teller, made
from tests.spark.sink.reading import read


def _mirror(pipeline: Pipeline, target: str) -> MirrorConfig:
    text = f"""
    [source]
    "bootstrap.servers" = "{pipeline.bootstrap}"
    [target]
    "bootstrap.servers" = "{target}"
    [mirror]
    name = "{pipeline.topic}"
    [[topics]]
    name = "{pipeline.topic}"
    target = "copy.{{topic}}"
    """
    return mirror_configs.parse(text, Path("mirror.toml"))


def test_windows_are_certified_and_a_lost_or_doubled_record_is_found(
    spark: SparkSession, headrace: BrokerProcess, apache_kafka: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path)
    mirror = _mirror(pipeline, apache_kafka.bootstrap)
    copy = f"copy.{pipeline.topic}"
    records = made(200, 4)
    teller = Teller(pipeline.topic)
    teller.acknowledged(records)
    teller.tell(BEGIN_MS + 10 * WINDOW_MS, closing=True)
    pipeline.tell(*teller.events)
    pipeline.store(records[:100])
    job.run(spark, mirror, once=True)
    pipeline.store(records[100:])

    auditor = pipeline.auditor(lake=False, mirror=mirror)
    behind = auditor.run_once().verdicts
    assert [each.state for each in behind[:2]] == [State.CERTIFIED] * 2
    assert [each.state for each in behind[2:4]] == [State.INCOMPLETE] * 2
    assert "mirror has partition" in behind[2].headline

    # Somebody else writes a copy once more, as a mirror would that is not exactly once.
    first = read(apache_kafka.bootstrap, copy)[0]
    origin = dict(first.headers)[HEADER] or b""
    producer = Producer({"bootstrap.servers": apache_kafka.bootstrap})
    moment = BEGIN_MS + 3 * WINDOW_MS + 1
    producer.produce(copy, b"again", partition=0, timestamp=moment, headers=[(HEADER, origin)])
    producer.produce(copy, b"foreign", partition=0, timestamp=moment)
    producer.flush(60)
    job.run(spark, mirror, once=True)
    found = auditor.run_once().verdicts
    assert [(each.state, each.window_ms) for each in found] == [
        (State.CERTIFIED, BEGIN_MS + 2 * WINDOW_MS),
        (State.DIFFERENT, BEGIN_MS + 3 * WINDOW_MS),
    ]
    (difference,) = found[1].differences
    assert (difference.tier, difference.kind, difference.partition) == ("mirror", Kind.DOUBLED, 0)
    assert found[0].tiers["mirror"] == found[0].tiers["log"]

    # And some are taken away: books that begin anew see that too.
    admin, place = AdminClient({"bootstrap.servers": apache_kafka.bootstrap}), TopicPartition(copy, 1, 5)
    admin.delete_records([place])[place].result(120)
    anew = pipeline.auditor(lake=False, mirror=mirror, state=str(tmp_path / "other")).run_once().verdicts
    kinds = {each.kind for verdict in anew for each in verdict.differences}
    assert kinds == {Kind.LOST, Kind.DOUBLED}
