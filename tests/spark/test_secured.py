"""A secured cluster (SASL_SSL, ACLs): Spark's own connector, and everything of ours that speaks to brokers.

Most tests do their work as the administrator whose files `headrace up --secure` writes. Passwords are looked
for in all that Spark and we show, log and keep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.client.acls import create_acls
from headrace.client.cluster import Cluster as ClusterClient
from headrace.security.acl import CLUSTER_NAME, AclRule, Operation, PatternType, Permission, ResourceType
from headrace.spark import DelegationToken, KafkaProperties, read_topic, stream_topic
from headrace.spark.audit.config import AuditConfig
from headrace.spark.audit.job import Auditor
from headrace.spark.kafka_client import UnknownProperty
from headrace.spark.lake import config as lake_configs
from headrace.spark.lake import job as lake_job
from headrace.spark.mirror import config as mirror_configs
from headrace.spark.mirror import job as mirror_job
from headrace.spark.mirror.reading import Reading
from headrace.spark.source.brokers import BrokersFailed
from headrace.spark.table import config as table_configs
from headrace.spark.table import job as table_job
from headrace.spark.tokens.admin import TokenFailed
from headrace.testing.cluster import Cluster
from tests.spark.shown import kept, plans
from tests.unit.cli.serving import Run, runner

_RECORDS = 20


def password_of(kafka: KafkaProperties) -> str:
    credentials = kafka.security().credentials
    assert credentials is not None
    return credentials.password.reveal()


class Secured:
    """The cluster, how its administrator connects, and what must not be seen anywhere."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.kafka = KafkaProperties.read(cluster.client_files.java)
        self.canary = password_of(self.kafka)

    def user_with(self, name: str, rules: Sequence[AclRule]) -> KafkaProperties:
        """Who may do this and nothing else."""
        file = Path(self.cluster.directory) / f"{name}.properties"
        admin = ("--command-config", str(self.cluster.client_files.java))
        runner(self.cluster.bootstrap)("user", "create", name, "--client-config", str(file), *admin)

        async def grant() -> None:
            client = ClusterClient(self.cluster.bootstrap, security=self.kafka.security())
            async with client:
                await create_acls(client, [rule._replace(principal=f"User:{name}") for rule in rules])

        asyncio.run(grant())
        return KafkaProperties.read(file)

    def with_password(self, password: str) -> KafkaProperties:
        jaas = self.kafka["sasl.jaas.config"].replace(self.canary, password)
        return KafkaProperties({**self.kafka, "sasl.jaas.config": jaas})

    def produce(self, topic: str) -> None:
        admin = AdminClient({**self.cluster.client_config})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        producer = Producer(self.cluster.client_config)
        for number in range(_RECORDS):
            producer.produce(topic, b'{"id": %d}' % number, b"k%d" % (number % 4))
        assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with Cluster({"delegation.token.secret.key": "the same on every broker"}, secure=True) as cluster:
        yield Secured(cluster)


@pytest.fixture
def topic(secured: Secured, new_topic: Callable[[], str]) -> str:
    """With a few records."""
    name = new_topic()
    secured.produce(name)
    return name


@pytest.fixture(autouse=True)
def log(spark: SparkSession, secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All that the driver logs meanwhile, at INFO: there Kafka's clients print what they are given."""
    path = tmp_path_factory.mktemp("log") / "driver.log"
    with _logged_to(spark, path):
        yield path
    assert secured.canary not in path.read_text(errors="replace")


@contextmanager
def _logged_to(spark: SparkSession, path: Path) -> Iterator[None]:
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    builder = log4j.core.appender.FileAppender.newBuilder()
    appender = builder.withFileName(str(path)).setName(path.parent.name).setLayout(layout).build()
    appender.start()
    spark.sparkContext.setLogLevel("INFO")
    root.addAppender(appender, None, None)
    context.updateLoggers()
    try:
        yield
    finally:
        root.removeAppender(path.parent.name)
        spark.sparkContext.setLogLevel("ERROR")
        appender.stop()


def test_spark_s_own_connector_with_the_file_that_is_printed_for_it(
    spark: SparkSession, secured: Secured, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # As the head of the file says.
    lines = secured.cluster.client_files.spark.read_text().splitlines()
    options = dict(line.split("=", 1) for line in lines if line[:1] != "#")
    rows = spark.range(5).selectExpr("cast(id as string) as value")
    rows.write.format("kafka").options(**options).option("topic", topic).save()
    frame = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
    assert frame.count() == _RECORDS + 5
    frame.explain(True)
    assert "kafka" in (shown := capsys.readouterr().out).lower()
    assert secured.canary not in shown
    assert secured.canary not in plans(spark)
    # No plan of Spark's own hides a private key, unless it is told to.
    keyed = {**options, "kafka.ssl.keystore.key": "a key", "subscribe": topic}
    spark.readStream.format("kafka").options(**keyed).load().explain(True)
    assert "kafka.ssl.keystore.key=*********(redacted)" in capsys.readouterr().out


def _rules(source: str, target: str, group: str) -> list[AclRule]:
    """What docs/pipeline/sink.md and source.md say that a query needs."""

    def allow(kind: ResourceType, name: str, *operations: Operation, prefix: bool = False) -> list[AclRule]:
        pattern = PatternType.PREFIXED if prefix else PatternType.LITERAL
        return [AclRule(kind, name, pattern, "", "*", each, Permission.ALLOW) for each in operations]

    topic = ResourceType.TOPIC
    return [
        *allow(topic, source, Operation.READ),
        *allow(ResourceType.GROUP, group, Operation.READ),
        *allow(topic, target, Operation.WRITE, Operation.CREATE),
        *allow(
            topic,
            "__headrace_sink",
            *(Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE_CONFIGS),
        ),
        *allow(ResourceType.TRANSACTIONAL_ID, "headrace-sink/", Operation.WRITE, prefix=True),
        *allow(ResourceType.CLUSTER, CLUSTER_NAME, Operation.DESCRIBE_CONFIGS),
    ]


def test_the_source_and_the_sink(
    spark: SparkSession,
    secured: Secured,
    topic: str,
    new_topic: Callable[[], str],
    tmp_path: Path,
    log: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy, group = new_topic(), f"group-{topic}"
    kafka = secured.user_with("pipeline", _rules(topic, copy, group))
    canary = password_of(kafka)
    read_topic(spark, topic, kafka=kafka).select("key", "value").write.format("headrace").options(
        **kafka.options
    ).option("topic", copy).mode("append").save()
    stream = stream_topic(spark, topic, kafka=kafka.options, group=group, max_bytes=10**6)
    stream.explain(True)
    query = (
        stream.select("key", "value")
        .writeStream.format("headrace")
        .options(**kafka.options)
        .option("topic", copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    frame = read_topic(spark, copy, kafka=secured.kafka)
    assert frame.count() == 2 * _RECORDS
    frame.explain(True)
    shown = capsys.readouterr().out + str(query.lastProgress) + repr(query.status) + plans(spark)
    assert copy in shown
    assert topic.encode() in (files := kept(tmp_path))
    logged = log.read_text()
    assert "sasl.jaas.config = [hidden]" in logged, "else no canary could be seen there"
    for secret in (canary, secured.canary):
        assert secret not in shown + logged
        assert secret.encode() not in files


def test_a_stream_that_fails_tells_no_password(
    spark: SparkSession, secured: Secured, topic: str, tmp_path: Path
) -> None:
    def fail(frame: DataFrame, number: int) -> None:
        raise ValueError(f"batch {number} of {len(frame.columns)} columns")

    # As the lake and tables read, which tell of what failed.
    bare = spark.readStream.format("kafka").options(**secured.kafka.options).option("subscribe", topic)
    frames = (
        stream_topic(spark, topic, kafka=secured.kafka),
        bare.option("startingOffsets", "earliest").load(),
    )
    for number, frame in enumerate(frames):
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / str(number)))
        query = writer.foreachBatch(fail).trigger(availableNow=True).start()
        with pytest.raises(PySparkException, match="batch 0 of") as failed:
            query.awaitTermination()
        failure = query.exception()
        assert failure is not None
        assert secured.canary not in f"{failed.value} {failure} {failure!r} {failure.__cause__}"


def test_lake_table_and_audit(spark: SparkSession, secured: Secured, topic: str, tmp_path: Path) -> None:
    file = secured.cluster.client_files.java
    head = f'[kafka]\ncommand_config = "{file}"\n'
    lake_toml, table_toml = tmp_path / "lake.toml", tmp_path / "table.toml"
    lake_toml.write_text(f'{head}[lake]\nformat = "delta"\nlocation = "lake"\n[[topics]]\nname = "{topic}"\n')
    table_toml.write_text(f'{head}[store]\nlocation = "tables"\n[[tables]]\ntopic = "{topic}"\nname = "t"\n')
    lake, table = lake_configs.load(lake_toml), table_configs.load(table_toml)
    (loaded,) = lake_job.run(spark, lake, once=True)
    assert loaded.new.rows == _RECORDS
    (latest,) = table_job.run(spark, table, once=True)
    assert latest.new.records == _RECORDS
    config = AuditConfig(
        secured.kafka, topics=(topic,), state=f"file://{tmp_path}/audit", with_producers=False
    )
    passed = Auditor(spark, config).run_once()
    assert passed.records == _RECORDS
    assert secured.canary not in f"{lake!r} {table!r} {config!r} {passed!r} {plans(spark)}"
    assert secured.canary.encode() not in kept(tmp_path)
    run: Run = runner("unused:1")
    for command, path in (("lake", lake_toml), ("table", table_toml)):
        shown = run(command, "status", "--config", str(path))
        assert topic in shown.stdout
        assert secured.canary not in shown.stdout


def test_a_wrong_password_is_told_without_it(spark: SparkSession, secured: Secured, topic: str) -> None:
    wrong = secured.with_password("wrong-canary-5b1e")
    with pytest.raises(BrokersFailed, match="invalid user or password") as refused:
        read_topic(spark, topic, kafka=wrong)
    with pytest.raises(PySparkException) as failed:
        spark.range(1).selectExpr("cast(id as string) as value").write.format("headrace").options(
            **wrong.options
        ).option("topic", topic).mode("append").save()
    assert "invalid user or password" in str(failed.value)
    said = f"{refused.value!r} {refused.value.__cause__!r} {failed.value!r} {failed.value}"
    assert "wrong-canary" not in said
    assert "wrong-canary" not in plans(spark)


def test_a_property_that_kafka_does_not_have_is_refused_by_name(
    spark: SparkSession, secured: Secured, topic: str
) -> None:
    given = {**secured.kafka, "ssl.truststore.loaction": "/ca.pem"}
    with pytest.raises(UnknownProperty, match=r"loaction: did you mean ssl\.truststore\.location\?"):
        read_topic(spark, topic, kafka=given)
    with pytest.raises(PySparkException, match=r"the sink does not know kafka\.ssl\.truststore\.loaction"):
        spark.range(1).selectExpr("cast(id as string) as value").write.format("headrace").options(
            **KafkaProperties(given).options
        ).option("topic", topic).mode("append").save()


def test_a_token_is_renewed_and_ended_by_who_obtained_it(
    spark: SparkSession, secured: Secured, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """test_secured_cluster.py has what the tasks do with it."""
    with DelegationToken.obtain(spark, secured.kafka.options, lifetime=timedelta(days=3)) as token:
        assert read_topic(spark, topic, kafka=token.kafka).count() == _RECORDS
        before = token.expires
        assert token.renew()
        assert before < token.expires < token.ends
        with pytest.raises(TokenFailed, match="whoever came with a token gets no other"):
            DelegationToken.obtain(spark, token.kafka)
    with pytest.raises(BrokersFailed, match="invalid user or password"):
        read_topic(spark, topic, kafka=token.kafka)
    assert password_of(token.kafka) not in f"{token!r} {token.kafka!r} {plans(spark)}"
    assert not [each for each in caplog.records if each.name.startswith("headrace.spark")]


def test_a_token_for_somebody_with_a_wrong_password(spark: SparkSession, secured: Secured) -> None:
    with pytest.raises(TokenFailed, match=r"did not give a delegation token: .*invalid user") as refused:
        DelegationToken.obtain(spark, secured.with_password("wrong-canary-5b1e"))
    assert "wrong-canary" not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_the_mirror_between_secured_brokers(
    spark: SparkSession, secured: Secured, topic: str, tmp_path: Path
) -> None:
    """Both sides are the one cluster that there is: the topic gets another name."""
    client = f'command_config = "{secured.cluster.client_files.java}"'
    text = f"""
    [source]
    {client}
    [target]
    {client}
    [mirror]
    name = "{topic}"
    [[topics]]
    name = "{topic}"
    target = "copy.{{topic}}"
    [groups]
    patterns = ["nobody"]
    [acls]
    """
    config = mirror_configs.parse(text, tmp_path / "mirror.toml")
    assert mirror_job.run(spark, config, once=True).records == _RECORDS
    copied = read_topic(spark, f"copy.{topic}", kafka=secured.kafka)
    assert copied.count() == _RECORDS
    assert asyncio.run(Reading.of(config)).translate(topic, 0, 7) == 7
    assert secured.canary not in plans(spark)
    assert secured.canary not in repr(config)
